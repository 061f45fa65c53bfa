"""Takeovers at random moments, from a seed: nothing that was typed before one is read after it, and none is uncounted."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ownkeeper import AGENT, HUMAN, OTHER, OwnKeeper
from tests.support.soak import Rounds

SECOND = {"operator": "op_second", "kind": "agent", "name": "second"}

# Reads nothing by itself. Told "d", it reads all that has come and gives it back; told "w", it waits for some first.
PROGRAM = """
import os, select, struct, sys, tty
if os.isatty(0):
    tty.setraw(0)
told, out = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY)
while command := os.read(told, 1):
    data = b""
    while select.select([0], [], [], None if command == b"w" and not data else 0)[0]:
        data += os.read(0, 65536)
    data = struct.pack(">I", len(data)) + data
    while data:
        data = data[os.write(out, data):]
"""


class Soak:
    """One keeper, some hands on it, and what each of them typed since the last takeover."""

    def __init__(self, keeper: OwnKeeper, rng: random.Random, told: int, read: int) -> None:
        self.keeper, self.rng, self.told, self.read = keeper, rng, told, read
        self.turn = 0  # takeovers so far: every text names the one it was typed after
        self.typed = self.seen = self.flushed = 0
        self.held = False

    def send(self, who: dict[str, str]) -> None:
        """Through the host, as `hold send` does: free controls are held for its duration alone."""
        data = b"<%d:%s>" % (self.turn, b"x" * self.rng.choice((0, 1, 40, 3000)))
        answer = self.keeper.host.act("input", data=base64.b64encode(data).decode(), **{"as": who})
        if "ok" in answer:
            self.typed += len(data)
        else:
            assert self.held, answer
            assert answer["error"]["code"] == "conflict"

    def take(self, who: dict[str, str]) -> None:
        done = self.keeper.host.act("take", force=True, **{"as": who})["ok"]
        self.flushed += done["flushed"]
        self.turn, self.held = self.turn + 1, True

    def give_up(self, who: dict[str, str]) -> None:
        if self.held:
            assert "ok" in self.keeper.host.act("release", **{"as": who})
            self.held = False

    def look(self, command: bytes = b"d") -> None:
        os.write(self.told, command)
        size = int.from_bytes(self._exactly(4), "big")
        data = self._exactly(size)
        self.seen += size
        turns = {int(n) for n in re.findall(rb"<(\d+):", data)}
        assert turns <= {self.turn}, f"after takeover {self.turn} the program read what {turns} typed"

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(self.read, size - len(data))
        return data


@contextlib.contextmanager
def soaked(path: Path, pipes: bool, rng: random.Random) -> Iterator[Soak]:
    names = [str(path / name) for name in ("told", "read")]
    for name in names:
        os.mkfifo(name)
    with OwnKeeper(path, sys.executable, "-c", PROGRAM, *names, pipes=pipes, lease_s=600) as keeper:
        told, read = os.open(names[0], os.O_WRONLY), os.open(names[1], os.O_RDONLY)  # a terminal is raw by then
        try:
            yield Soak(keeper, rng, told, read)
        finally:
            os.close(told)
            os.close(read)


@pytest.mark.parametrize("pipes", [True, False], ids=["pipes", "terminal"])
def test_at_random_moments_a_takeover_is_a_border(tmp_path: Path, pipes: bool, rounds: Rounds) -> None:
    with soaked(tmp_path, pipes, rounds.random) as soak:
        for n in range(rounds.count(400)):
            if n % 1000 == 999:  # as a host does, or the keeper would refuse what it cannot record
                soak.keeper.host.act("ack", upto=soak.keeper.host.act("status")["ok"]["spool"]["last"])
            taker = soak.rng.choice((HUMAN, HUMAN, AGENT))
            for _ in range(soak.rng.randrange(4)):
                soak.send(soak.rng.choice((AGENT, SECOND, OTHER)))
            if soak.rng.random() < 0.3:
                soak.look()
            soak.take(taker)
            for _ in range(soak.rng.randrange(3)):
                soak.send(soak.rng.choice((taker, taker, AGENT, OTHER)))
            if soak.rng.random() < 0.7:
                soak.look()
            soak.give_up(taker)
        soak.take(HUMAN)
        soak.send(HUMAN)
        soak.look(b"w")
        soak.look()
        assert soak.flushed > 0
        if pipes:  # a pipe is counted to the byte: what was typed was read, or taken back, or is still under way
            assert soak.seen + soak.flushed == soak.typed
