"""Output: byte-exact, by absolute offset, whoever reads and however often they are cut off."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.client._async.host import AsyncHost, AsyncSession
from holdfast.model.errors import HoldfastError
from tests.support.home import HOLD, HomeForTests, read_all, until

pytestmark = pytest.mark.home("file")

MEGABYTE = 1 << 20


def test_fifty_megabytes_of_random_bytes_survive_twenty_disconnects_of_alternating_clients(
    hold: HomeForTests, tmp_path: Path
) -> None:
    source = tmp_path / "random"
    source.write_bytes(os.urandom(50 * MEGABYTE))
    expected = hashlib.sha256(source.read_bytes()).hexdigest()
    s = hold.run("sh", "-c", f"stty raw -echo; cat {source}; stty sane; read x")
    rng, digest, at = random.Random(5), hashlib.sha256(), 0
    cuts = [*sorted(rng.sample(range(1, 50 * MEGABYTE), 20)), 50 * MEGABYTE]
    for n, cut in enumerate(cuts):
        channel = s.open(read_only=True)
        if n % 2:
            for chunk in channel.read(at, None):
                data = chunk.data[: cut - at]
                digest.update(data)
                at += len(data)
                if at >= cut:
                    break  # in the middle of a chunk, with more on its way
        else:
            command = [*HOLD, "logs", s.id, "--raw", "-f", "--from", str(at)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, env=hold.env) as client:
                assert client.stdout is not None
                data = client.stdout.read(cut - at)
                client.kill()
            digest.update(data)
            at += len(data)
        channel.close()
    assert at == 50 * MEGABYTE
    assert digest.hexdigest() == expected


async def test_the_async_client_reads_the_same_bytes(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "seq 1 20000; read x")
    assert s.wait(text="20000\r\n", timeout=30).event != "timeout"
    async with AsyncHost(str(hold.path)) as host:
        session = AsyncSession(host, s.id, s.name)
        assert (await session.status()).pid == s.status().pid
        data = b"".join([c.data async for c in session.output()])
    assert data == b"".join(b"%d\r\n" % n for n in range(1, 20001))


def test_a_pruned_range_comes_back_as_an_explicit_gap_and_the_screen_is_whole(hold: HomeForTests) -> None:
    size = 40 * MEGABYTE  # more than this session keeps
    s = hold.run(
        "sh",
        "-c",
        f"head -c {size} /dev/zero | tr '\\0' 'x' | fold -w 79; echo; echo THE END; read x",
        log_max=16 * MEGABYTE,
    )
    assert s.wait(text="THE END", timeout=100).event != "timeout"
    chunks = s.output()
    first = next(chunks)
    assert first.gap is not None
    assert first.gap[0] == 0
    start = s.status().output.start
    assert first.gap[1] == start
    assert "THE END" in s.screen().text


def test_offsets_are_checked(hold: HomeForTests) -> None:
    s = hold.run("echo", "hi")
    assert s.wait(exit=True, timeout=20).event != "timeout"
    with pytest.raises(HoldfastError, match="offset"):
        list(s.output(-1))
    assert list(s.output(10_000)) == []


def test_a_stalled_client_slows_nobody_and_a_flood_is_interrupted_at_once(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "trap 'echo interrupted; exit 0' INT; yes 'flood flood flood'")
    stalled = [s.open(read_only=True) for _ in range(3)]
    for channel in stalled:
        channel._line.send(b"\0\0\0\x11\x02" + bytes(8) + b"\xff" * 8)  # READ from 0 for ever, and never received
    assert s.wait(text="flood", timeout=20).event != "timeout"
    before = s.status().output.end
    until(lambda: s.status().output.end > before + MEGABYTE)
    status = Path(f"/proc/{hold.keeper_pid(s)}/status").read_text()  # while it runs: a zombie has no memory to tell of
    assert int(status.split("VmRSS:")[1].split()[0]) < 64 * 1024  # kilobytes: bounded, whatever was printed
    s.send(b"\x03")
    assert s.wait(text="interrupted", start=before, timeout=20).event != "timeout"
    for channel in stalled:
        channel.close()


def test_output_after_the_main_programs_end_is_kept(hold: HomeForTests) -> None:
    # The child leaves the terminal's session before the parent ends (the kernel would hang it up), and prints when it has.
    program = (
        "import os\nleft, leave = os.pipe()\nends, end = os.pipe()\n"
        "if os.fork() == 0:\n os.setsid()\n os.close(end)\n os.write(leave, b'x')\n os.read(ends, 1)\n print('late', flush=True)\n"
        "else:\n os.read(left, 1)\n"
    )
    s = hold.run(sys.executable, "-c", program)
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    assert read_all(s) == b"late\r\n"


def test_a_program_that_closes_its_terminal_makes_nobody_spin(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "exec </dev/null >/dev/null 2>&1; sleep 1000")
    keeper = hold.keeper_pid(s)
    until(lambda: s.status().files == [] or all(f.kind != "tty" for f in s.status().files))
    before = _cpu_ticks(keeper)
    assert s.wait(quiet=0.5, timeout=20).event != "timeout"
    assert _cpu_ticks(keeper) - before < 20


def test_a_stopped_terminal_holds_output_back_and_loses_none(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "read x; seq 1 50000; read y")
    s.send(b"\x13go\n")  # Ctrl-S, then the line that starts the flood
    assert s.wait(quiet=0.3, timeout=20).event != "timeout"
    s.send(b"\x11")
    assert s.wait(text="50000\r\n", timeout=60).event != "timeout"
    numbers = [int(x) for x in read_all(s).split() if x.isdigit()]
    assert numbers == list(range(1, 50001))


def test_a_canonical_line_that_does_not_fit_is_refused_and_not_cut(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "read x; echo ${#x}")
    assert s.wait(input=True, timeout=20).event != "timeout"
    with pytest.raises(HoldfastError, match="4095"):
        s.send(b"x" * 5000 + b"\n")
    s.send(b"y" * 4000 + b"\n")
    assert s.wait(exit=True, timeout=20).event != "timeout"
    assert b"4000\r\n" in read_all(s)


def test_many_long_lines_reach_a_program_that_reads_slowly(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty -echo; echo go; sleep 0.2; wc -lc")
    assert s.wait(text="go", timeout=20).event != "timeout"
    line = b"z" * 3000 + b"\n"
    s.send(line * 100)
    s.send(b"\x04")
    assert s.wait(exit=True, timeout=60).event != "timeout"
    assert read_all(s).split()[1:] == [b"100", str(len(line) * 100).encode()]


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
