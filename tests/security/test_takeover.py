"""A takeover is a border: what an agent typed before it and was not read, or types after it, reaches nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import until
from tests.support.keeperline import KeeperLine
from tests.support.ownkeeper import AGENT, HUMAN, OTHER, OwnKeeper

ROOT = Path(__file__).parents[2]
ROUNDS = 125  # of each kind: with two kinds, two sizes, terminal and pipes that is 1,000

# Reads its input only when told: "r" reads up to the next ">" and gives it back; "f" reads on and on up to "!", says
# of each ">" that it has come (an answer of no bytes), and gives all back at the end.
PROGRAM = """
import os, struct, sys, tty
if os.isatty(0):
    tty.setraw(0)
told, out = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY)
while command := os.read(told, 1):
    end = b">" if command == b"r" else b"!"
    seen = []
    while not seen or end not in seen[-1]:
        seen.append(os.read(0, 65536))
        if command == b"f":
            os.write(out, struct.pack(">I", 0) * seen[-1].count(b">"))
    data = b"".join(seen)
    os.write(out, struct.pack(">I", len(data)))
    while data:
        data = data[os.write(out, data):]
"""


class Reader:
    """The program's two pipes: what tells it to read, and what it read."""

    def __init__(self, path: Path) -> None:
        self.paths = [str(path / "told"), str(path / "read")]
        for name in self.paths:
            os.mkfifo(name)

    def open(self) -> None:
        self._told, self._read = open(self.paths[0], "wb", buffering=0), open(self.paths[1], "rb")  # noqa: SIM115

    def tell(self, command: bytes) -> None:
        self._told.write(command)

    def answer(self) -> bytes:
        size = int.from_bytes(self._read.read(4), "big")
        return self._read.read(size)

    def close(self) -> None:
        self._told.close()
        self._read.close()


@contextmanager
def recorder(path: Path, pipes: bool, **facts: Any) -> Iterator[tuple[OwnKeeper, Reader]]:
    reader = Reader(path)
    with OwnKeeper(path, sys.executable, "-c", PROGRAM, *reader.paths, pipes=pipes, **facts) as keeper:
        reader.open()  # returns when the program has opened them too: a terminal is raw by then
        try:
            yield keeper, reader
        finally:
            reader.close()


@contextmanager
def flooding(keeper: OwnKeeper, size: int, *mode: str) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    words = [sys.executable, "-m", "tests.support.flooder", keeper.home.path, keeper.id, str(size), *mode]
    with subprocess.Popen(words, env=env, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def agent_types(human: KeeperLine) -> None:
    """Until the agent holds the controls and has typed at least once."""
    human.event(lambda e: e["event"] == "controls" and e["controls"]["holder"] == AGENT["operator"])


def takes(human: KeeperLine) -> int:
    return int(human.act("take", force=True)["ok"]["flushed"])


@pytest.mark.parametrize("pipes", [False, True], ids=["terminal", "pipes"])
@pytest.mark.parametrize("size", [1, 65536], ids=["1 byte", "64 KiB"])
def test_no_byte_of_a_flooding_agent_crosses_a_takeover(tmp_path: Path, size: int, pipes: bool) -> None:
    with recorder(tmp_path, pipes) as (keeper, reader), keeper.line() as human:
        with flooding(keeper, size) as agent:
            flushed = 0
            for n in range(
                ROUNDS
            ):  # the program reads nothing before the grant: all of the agent's is queued and unread
                agent_types(human)
                flushed += takes(human)
                assert human.type(b"<%d>" % n) == {}
                reader.tell(b"r")
                assert reader.answer() == b"<%d>" % n
                human.act("release")
            assert flushed >= ROUNDS if pipes else flushed > 0
            reader.tell(b"f")
            for n in range(
                ROUNDS
            ):  # the program reads all the time: nothing comes between two bytes of the human's turn
                agent_types(human)
                flushed += takes(human)
                assert human.type(b"<%d-" % n) == {}
                assert human.type(b"%d>" % n) == {}
                assert reader.answer() == b""  # read: the next takeover will not take it back
                human.act("release")
            agent_types(human)
            flushed += takes(human)
            assert human.type(b"!") == {}
            data = reader.answer()
            agent.send_signal(signal.SIGTERM)
            assert agent.stdout is not None
            accepted = int(agent.stdout.read())
        turns = re.sub(rb"<(\d+)-\1>", b"", data)
        assert turns.strip(b"a") == b"!"
        assert [int(n) for n in re.findall(rb"<(\d+)-", data)] == list(range(ROUNDS))
        received = data.count(b"a")
        if pipes:  # a pipe is counted to the byte: what was accepted was read by the program or taken back
            assert received + flushed == accepted
        else:
            assert received + flushed <= accepted
        assert received > 0
        everyone: dict[int, set[str]] = {}
        for entry in keeper.entries():
            if entry["kind"] == "input":
                everyone.setdefault(entry["epoch"], set()).add(entry["operator"])
        assert all(len(operators) == 1 for operators in everyone.values())
        assert set.union(*everyone.values()) == {AGENT["operator"], HUMAN["operator"]}


@pytest.mark.parametrize("pipes", [False, True], ids=["terminal", "pipes"])
def test_a_holder_stopped_past_its_lease_lands_nothing_when_it_goes_on(tmp_path: Path, pipes: bool) -> None:
    with recorder(tmp_path, pipes, lease_s=0.5) as (keeper, reader), keeper.line() as human:
        with flooding(keeper, 7, "deaf") as agent:
            agent_types(human)
            human.event(lambda e: e["event"] == "controls" and e["controls"]["holder"] is None)
            assert human.type(b"<1>") == {}
            until(lambda: "T (stopped)" in Path(f"/proc/{agent.pid}/status").read_text(), timeout=60)
            agent.send_signal(signal.SIGCONT)
            keeper.host.event(lambda e: e["event"] == "channels" and e["attached"] == [])  # all that it sent was heard
            assert human.type(b"<2>") == {}
        reader.tell(b"r")
        read = reader.answer()
        if read == b"<1>":
            reader.tell(b"r")
            read += reader.answer()
        assert read == b"<1><2>"
        kinds = [e["kind"] for e in keeper.entries() if e["operator"] == AGENT["operator"]]
        assert "expire" in kinds
        assert kinds.count("take") == 1


def test_free_controls_are_not_taken_by_what_was_sent_before_they_were_lost(tmp_path: Path) -> None:
    """The human has come and gone while the agent stood still; its old bytes find the controls free, and are refused."""
    with recorder(tmp_path, True, lease_s=60) as (keeper, reader), keeper.line() as human:
        with flooding(keeper, 7, "deaf") as agent:
            agent_types(human)
            until(lambda: "T (stopped)" in Path(f"/proc/{agent.pid}/status").read_text(), timeout=60)
            takes(human)
            human.act("release")
            agent.send_signal(signal.SIGCONT)
            keeper.host.event(lambda e: e["event"] == "channels" and e["attached"] == [])
        assert human.act("status")["ok"]["controls"]["holder"] is None
        assert human.type(b"<1>") == {}
        reader.tell(b"r")
        assert reader.answer() == b"<1>"


@pytest.mark.parametrize("force", [False, True], ids=["asking", "forcing"])
def test_of_two_humans_who_take_at_the_same_moment_one_wins_and_the_other_is_told(tmp_path: Path, force: bool) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True) as keeper, keeper.line() as ada, keeper.line(OTHER) as bob:
        for _ in range(40):
            both = threading.Barrier(2)
            answers: dict[str, dict[str, Any]] = {}

            def take(name: str, line: KeeperLine, both: threading.Barrier = both, answers: Any = answers) -> None:
                both.wait(60)
                answers[name] = line.act("take", force=force, insist=force)

            threads = [threading.Thread(target=take, args=who) for who in (("ada", ada), ("bob", bob))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            won = [name for name, answer in answers.items() if "ok" in answer]
            if force:  # the second takes from the first, who hears of it
                first, last = sorted(answers, key=lambda name: answers[name]["ok"]["controls"]["epoch"])
                line = ada if first == "ada" else bob
                told = line.event(lambda e: e["event"] == "controls")
                while told["controls"]["name"] != last:
                    told = line.event(lambda e: e["event"] == "controls")
            else:
                assert len(won) == 1
                last = won[0]
                lost = answers["bob" if last == "ada" else "ada"]["error"]
                assert lost["code"] == "conflict"
                assert f"{last} (human) holds the controls since" in lost["message"]
            holder = keeper.host.act("status")["ok"]["controls"]
            assert holder["name"] == last
            assert "ok" in (ada if last == "ada" else bob).act("release")
            for line in (ada, bob):
                line.events.clear()
