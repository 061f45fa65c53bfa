"""The spool: nothing of it is lost by a death, a torn or damaged line costs that line, and it stays small."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.log import act_spool as module
from holdfast.log.act_spool import Spool, entries
from holdfast.model.limits import SPOOL_BYTES_MAX, SPOOL_SLACK_BYTES


def numbers(found: list[dict[str, object]]) -> list[object]:
    return [e["n"] for e in found]


def filled(path: Path, count: int) -> Spool:
    spool = Spool(str(path))
    for i in range(count):
        spool.append({"kind": "signal", "mark": i})
    return spool


def test_entries_are_numbered_and_read_back_in_order(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s", 5)
    assert numbers(spool.after(0, 100)) == [1, 2, 3, 4, 5]
    assert numbers(spool.after(2, 2)) == [3, 4]
    assert numbers(spool.after(4, 100)) == [5]
    assert numbers(entries(str(tmp_path / "s"), 3)) == [4, 5]


def test_a_range_is_one_entry_whose_end_was_written_later(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "s"))
    n = spool.append({"kind": "input", "offset": 10})
    assert spool.after(0, 10, before=n) == []
    spool.amend(n, {"to_offset": 20, "until": 5.0})
    spool.append({"kind": "release"})
    first, second = spool.after(0, 10)
    assert (first["n"], first["offset"], first["to_offset"], first["until"]) == (1, 10, 20, 5.0)
    assert (second["n"], second["kind"]) == (2, "release")


def test_a_missing_file_is_an_empty_spool(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "s"))
    assert (spool.first, spool.last, spool.after(0, 10)) == (1, 0, [])
    assert not (tmp_path / "s").exists()


def test_the_next_generation_goes_on_counting(tmp_path: Path) -> None:
    filled(tmp_path / "s", 3)
    spool = Spool(str(tmp_path / "s"))
    assert (spool.first, spool.last) == (1, 3)
    assert spool.append({"kind": "stop"}) == 4
    assert numbers(spool.after(0, 10)) == [1, 2, 3, 4]


def test_a_number_that_somebody_has_seen_is_never_given_again(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "s"), floor=40)
    assert spool.append({"kind": "stop"}) == 41
    again = Spool(str(tmp_path / "s"))
    assert (again.first, again.last) == (41, 41)
    assert numbers(again.after(0, 10)) == [41]


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_tail_costs_the_last_line_only(tmp_path: Path, cut: int) -> None:
    filled(tmp_path / "s", 3)
    whole = (tmp_path / "s").read_bytes()
    (tmp_path / "s").write_bytes(whole[:-cut])
    spool = Spool(str(tmp_path / "s"))
    assert numbers(spool.after(0, 10)) == [1, 2]
    assert spool.append({"kind": "stop"}) == 3
    assert numbers(entries(str(tmp_path / "s"))) == [1, 2, 3]


def test_a_flipped_bit_costs_one_entry_and_no_number_is_used_twice(tmp_path: Path) -> None:
    filled(tmp_path / "s", 5)
    data = bytearray((tmp_path / "s").read_bytes())
    at = data.index(b'"mark":2')
    for position in (at, at + 7):
        damaged = bytearray(data)
        damaged[position] ^= 4
        (tmp_path / "s").write_bytes(damaged)
        spool = Spool(str(tmp_path / "s"))
        assert numbers(spool.after(0, 10)) == [1, 2, 4, 5]
        assert spool.append({"kind": "stop"}) == 6


def test_what_is_acknowledged_is_not_handed_out_by_the_next_generation_once_written_anew(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "s"))
    while os.path.getsize(tmp_path / "s") < SPOOL_SLACK_BYTES + 4096 if spool.last else True:
        spool.append({"kind": "signal", "why": "x" * 200})
    keep = spool.last - 3
    spool.after(0, keep)
    spool.acknowledge(keep)
    assert os.path.getsize(tmp_path / "s") < 4096
    assert numbers(spool.after(0, 100)) == [keep + 1, keep + 2, keep + 3]
    again = Spool(str(tmp_path / "s"))
    assert (again.first, again.last) == (keep + 1, keep + 3)
    assert spool.append({"kind": "stop"}) == keep + 4
    spool.acknowledge(10**9)
    assert (spool.first, spool.last) == (keep + 5, keep + 4)
    assert spool.after(0, 100) == spool.after(keep + 4, 100) == []


def test_an_acknowledgement_of_the_past_changes_nothing(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s", 5)
    spool.acknowledge(3)
    spool.acknowledge(1)
    assert spool.first == 4
    assert numbers(spool.after(3, 10)) == [4, 5]


def fill(spool: Spool, *, spare: bool = False) -> None:
    for _ in range(10_000):
        try:
            spool.append({"kind": "signal", "why": "x" * 8000}, spare=spare)
        except OSError:
            return
    pytest.fail("it takes more than it should")


def test_a_full_spool_takes_only_what_cannot_be_refused_until_it_is_acknowledged(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "s"))
    fill(spool)
    assert spool.full
    assert os.path.getsize(tmp_path / "s") < SPOOL_BYTES_MAX + 16384
    spool.append({"kind": "preempt"}, spare=True)
    fill(spool, spare=True)
    spool.acknowledge(spool.last)
    assert not spool.full
    spool.append({"kind": "signal"})


def test_an_answer_is_bounded_and_the_next_one_goes_on(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "s"))
    for _ in range(200):
        spool.append({"kind": "signal", "why": "x" * 8000})
    seen: list[object] = []
    while found := spool.after(int(str(seen[-1])) if seen else 0, 1000):
        assert len(found) < 100
        seen += numbers(found)
    assert seen == list(range(1, 201))


def test_a_disk_that_takes_half_a_line_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = filled(tmp_path / "s", 2)
    size = os.path.getsize(tmp_path / "s")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    with pytest.raises(OSError, match="space") as refused:
        spool.append({"kind": "stop"})
    assert refused.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert os.path.getsize(tmp_path / "s") == size
    assert spool.append({"kind": "stop"}) == 3
    assert numbers(entries(str(tmp_path / "s"))) == [1, 2, 3]


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from holdfast.log.act_spool import Spool
spool = Spool(sys.argv[2])
while True:
    n = spool.append({"kind": "input"})
    print(n, flush=True)
    spool.amend(n, {"until": 1.0})
    if n % 50 == 0:
        spool.after(0, 1000); spool.acknowledge(n - 20)
"""


@pytest.mark.parametrize("rounds", [5])
def test_what_was_written_survives_kill_9_of_the_writer(tmp_path: Path, rounds: int) -> None:
    path, src = tmp_path / "s", Path(module.__file__).parents[2]
    for i in range(1, rounds + 1):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(src), str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            said = 0
            for _ in range(100 * i + 7):
                said = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            said = int(([str(said).encode(), *writer.stdout.read().split()])[-1])
        last = Spool(str(path)).last
        assert last in (said, said + 1)
        found = entries(str(path), last - 5, 100)
        assert numbers(found) == list(range(last - 4, last + 1))
        assert all("until" in e for e in found[:-1])
