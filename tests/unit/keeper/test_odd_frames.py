"""Whatever a client sends, its line may end; the keeper and everybody else's lines go on."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.wire import keeper_frames
from holdfast.wire.socket_address import reachable
from tests.support.ownkeeper import AGENT, HUMAN, OwnKeeper

OPS = (
    "status",
    "sample",
    "input",
    "drop",
    "reply",
    "resize",
    "end_input",
    "take",
    "release",
    "hand",
    "seen",
    "revoke",
    "events",
    "ack",
    "signal",
    "stop",
    "",
    "no such thing",
)
KEYS = (
    "as",
    "to",
    "data",
    "hold",
    "what",
    "exec_id",
    "epoch",
    "why",
    "via",
    "size",
    "target",
    "force",
    "detach",
    "note",
    "operator",
    "grant",
    "after",
    "max",
    "now",
    "upto",
    "quick",
    "members",
    "id",
)
# A program that no byte ends: neither an end-of-file character nor an interrupt.
UNMOVED = "trap '' INT QUIT TSTP; stty raw -echo -isig; while :; do cat > /dev/null; sleep 0.05; done"
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnKeeper]:
    with OwnKeeper(tmp_path_factory.mktemp("odd"), "sh", "-c", UNMOVED) as own:
        yield own


def odd(rng: random.Random) -> Any:
    return rng.choice(
        (
            None,
            True,
            False,
            0,
            -1,
            1,
            2**63,
            2**64,
            10**400,
            -(10**400),
            1.5,
            float("nan"),
            float("inf"),
            float("-inf"),
            "",
            "x",
            "\ud800",
            "\x00",
            "x" * 2000,
            "SIGNONE",
            "YQ==",
            "é",
            [],
            [1],
            [[]],
            ["a", 1],
            [1e308, -1],
            [None] * 50,
            {},
            {"a": 1},
            {"operator": 1, "kind": "human", "name": "x"},
            {"operator": "", "kind": "human"},
            {"operator": "op_x", "kind": "god"},
            AGENT,
        )
    )


def request(rng: random.Random) -> bytes:
    op = rng.choice(OPS)
    value: dict[str, Any] = {"id": odd(rng), "op": op if rng.random() < 0.95 else odd(rng)}
    value |= {key: odd(rng) for key in rng.sample(KEYS, rng.randrange(6))}
    if value["op"] == "stop":  # the only ones that would rightly end the session
        value["grace_s"] = rng.choice(("x", -1, float("inf"), float("nan"), [], {}, True, 1e300))
    if value["op"] == "signal":
        value["signal"] = rng.choice(
            (None, "", "KILL", "sigkill", "SIG_DFL", "NSIG", "Signals", 9, [], {}, "__class__")
        )
    return json.dumps(value).encode()


def frame(rng: random.Random) -> bytes:
    kind = rng.choice((2, 3, 4, 5, 5, 5, 5, 6, 1, 0, 7, 65, 255))
    if kind == keeper_frames.ACT and rng.random() < 0.9:
        return keeper_frames.frame(kind, request(rng))
    if kind == keeper_frames.ACT:
        return keeper_frames.frame(
            kind, rng.choice((b"", b"[]", b"1", b"{", DEEP.encode(), b'{"op":' + DEEP.encode(), b"\xff\xfe{}", b"null"))
        )
    payload = rng.randbytes(rng.choice((0, 1, 4, 8, 15, 16, 17, 30, 200)))
    if kind == keeper_frames.INPUT and rng.random() < 0.5:
        payload = struct.pack(">QQ", rng.choice((0, 1, 2**64 - 1)), rng.choice((0, 1, 2**64 - 1))) + b"x"
    return keeper_frames.frame(kind, payload)


def alive(keeper: OwnKeeper) -> None:
    with keeper.line(role="host") as line:
        status = line.act("status")["ok"]
        assert status["exit"] is None
        assert not status["stopping"]
        json.dumps(status, allow_nan=False)
    assert keeper.complaints() == ""


@pytest.mark.parametrize("role", ["operator", "host"])
@pytest.mark.parametrize("seed", range(8))
def test_no_frame_hurts_the_keeper(keeper: OwnKeeper, seed: int, role: str) -> None:
    rng = random.Random(f"{seed} {role}")
    for _ in range(60):
        with keeper.line(AGENT, role=role, attach=bool(rng.randrange(2))) as line:
            try:
                line.sock.sendall(b"".join(frame(rng) for _ in range(rng.randrange(1, 12))))
                line.sock.shutdown(socket.SHUT_WR)
                answers = b""
                while data := line.sock.recv(65536):
                    answers += data
            except ConnectionError:
                continue
            for kind, payload in keeper_frames.Decoder().feed(answers):
                if kind in (keeper_frames.RESULT, keeper_frames.EVENT):
                    keeper_frames.parse_json(payload)  # and no NaN comes back
    alive(keeper)


@pytest.mark.parametrize(
    "hello",
    [
        {"rights": 5},
        {"rights": "type"},
        {"rights": [[]]},
        {"rights": ["x"] * 1000},
        {"rights": {"type": 1}},
        {"grants": [1]},
        {"operator": None},
        {"operator": 7},
        {"operator": ""},
        {"operator": "x" * 5000},
        {"kind": "god"},
        {"kind": None},
        {"name": []},
        {"until": "soon"},
        {"until": -1},
        {"until": 10**400},
        {"until": float("nan")},
        {"until": True},
        {"client": {}},
        {"via": 3},
        {"token": None},
        {"token": "wrong"},
        {"token": ["secret"]},
        {"why": 3},
    ],
    ids=lambda hello: str(hello)[:40],
)
def test_a_malformed_hello_ends_the_line(keeper: OwnKeeper, hello: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, ConnectionError)):
        keeper.line(HUMAN, **hello)
    alive(keeper)


def test_a_second_hello_makes_nobody_someone_else(keeper: OwnKeeper) -> None:
    with keeper.line(AGENT) as line:
        line.sock.sendall(
            keeper_frames.message(keeper_frames.HELLO, {"v": 1, "token": "secret", "rights": ["type"], **HUMAN})
        )
        assert line.closed()
    alive(keeper)


def test_nothing_is_heard_before_hello(keeper: OwnKeeper) -> None:
    for first in (
        keeper_frames.message(keeper_frames.ACT, {"id": 1, "op": "stop"}),
        keeper_frames.input_frame(1, 0, b"x"),
        keeper_frames.read(0),
        b"\xff" * 64,
    ):
        address, folder = reachable(keeper.folder.keeper_socket)
        with socket.socket(socket.AF_UNIX) as raw:
            raw.settimeout(60)
            raw.connect(address)
            raw.sendall(first)
            try:
                assert raw.recv(10) == b""
            except ConnectionError:
                pass
        if folder >= 0:
            os.close(folder)
    alive(keeper)


def test_an_endless_frame_is_not_waited_for(keeper: OwnKeeper) -> None:
    with keeper.line() as line:
        line.sock.sendall(struct.pack(">I", 1 << 30) + b"\x05")
        assert line.closed()
    alive(keeper)


def test_a_reader_of_nonsense_ranges_harms_nothing(keeper: OwnKeeper) -> None:
    with keeper.line() as line:
        for start, to in ((2**64 - 1, 2**64 - 1), (2**64 - 1, 0), (5, 3), (2**63, 2**64 - 1), (0, 0)):
            line.sock.sendall(keeper_frames.read(start, to))
        line.sock.sendall(keeper_frames.u64_frame(keeper_frames.WATCH, 2**64 - 1))
        assert "ok" in line.act("status")
    alive(keeper)
