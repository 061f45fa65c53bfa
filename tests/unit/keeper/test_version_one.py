"""What the protocol has before it is frozen: the actor, deliberate takeovers, requests by id, echo, own answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.wire import keeper_frames
from tests.support.home import until
from tests.support.ownkeeper import AGENT, HUMAN, OTHER, OwnKeeper


@pytest.fixture
def cat(tmp_path: Path) -> Iterator[OwnKeeper]:
    with OwnKeeper(tmp_path, "cat", pipes=True) as keeper:
        yield keeper


def printed(keeper: OwnKeeper) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(Path(keeper.folder.out).glob("*.out")))


def entries(keeper: OwnKeeper, kind: str) -> list[dict[str, Any]]:
    return [e for e in keeper.entries() if e["kind"] == kind]


def test_every_entry_names_the_client_process_that_acted(cat: OwnKeeper) -> None:
    with cat.line({**AGENT, "actor": "100.7"}, attach=True) as one, cat.line({**AGENT, "actor": "200.8"}) as two:
        assert one.type(b"a") == {}
        assert two.type(b"b") == {}  # the same operator: the controls are its own
        assert two.act("release")["ok"]["controls"]["holder"] is None
    with cat.line(HUMAN, role="host") as host:
        acts = {"as": {**OTHER, "actor": "300.9"}}
        assert "ok" in host.act("input", data="Yw==", what="send", **acts)
    typed = [(e["operator"], e.get("actor")) for e in entries(cat, "input")]
    assert typed == [
        (AGENT["operator"], "100.7"),
        (AGENT["operator"], "200.8"),
        (OTHER["operator"], "300.9"),
    ]
    assert [e.get("actor") for e in entries(cat, "attach")] == ["100.7"]


def test_a_takeover_says_that_it_is_one_and_whom_it_was_taken_from(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot, cat.line() as ada:
        assert bot.type(b"a") == {}
        assert bot.act("status")["ok"]["controls"]["deliberate"] is False
        done = ada.act("take", force=True)["ok"]
        assert (done["from"], done["controls"]["from"], done["controls"]["deliberate"]) == (AGENT, AGENT, True)
        again = ada.act("take", force=True)["ok"]
        assert again["from"] is None
        ada.act("release")
        assert ada.act("take", force=True, deliberate=False)["ok"]["controls"]["deliberate"] is False
    (preempted,) = entries(cat, "preempt")
    assert (preempted["from"], preempted["deliberate"]) == (AGENT, True)
    assert all("deliberate" not in e for e in entries(cat, "take"))


def test_a_hold_that_was_not_deliberate_ends_with_its_client(cat: OwnKeeper) -> None:
    with cat.line() as watching:
        with cat.line(OTHER, attach=True) as bob:
            bob.act("take", deliberate=False)
            assert watching.act("status")["ok"]["controls"]["holder"] == OTHER["operator"]
            bob.act("release", detach=True)
        assert watching.act("status")["ok"]["controls"]["holder"] is None


@pytest.mark.parametrize("op", ["take", "release", "hand", "signal"])
def test_a_request_that_was_carried_out_is_not_carried_out_again(cat: OwnKeeper, op: str) -> None:
    with cat.line(HUMAN, role="host") as host:
        acts: dict[str, Any] = {"as": HUMAN, "request": "req_1"}
        more: dict[str, dict[str, Any]] = {"hand": {"to": AGENT}, "signal": {"signal": "SIGCONT"}}
        about = more.get(op, {})
        if op in ("release", "hand"):
            assert "ok" in host.act("take", **{"as": HUMAN})
        first = host.act(op, **about, **acts)["ok"]
        epoch = host.act("status")["ok"]["controls"]["epoch"]
        again = host.act(op, **about, **acts)["ok"]
        assert again == {**first, "repeated": True}
        assert host.act("status")["ok"]["controls"]["epoch"] == epoch
    assert len(entries(cat, op)) == 1


ASKING = "stty -echo; printf ready; head -n 1 > /dev/null; stty echo; printf shown; exec cat"


def test_an_acknowledgement_says_whether_echo_was_off(tmp_path: Path) -> None:
    with (
        OwnKeeper(tmp_path, "sh", "-c", ASKING) as asking,
        asking.line(HUMAN, role="host") as host,
        asking.line() as ada,
    ):
        until(lambda: b"ready" in printed(asking))
        ada.sock.sendall(keeper_frames.input_frame(1, 0, b"s3"))
        assert keeper_frames.parse_ack(ada.next(keeper_frames.ACK)) == (1, 1, True)
        ada.act("release")
        secret = {"data": base64.b64encode(b"cr3t\n").decode(), "what": "send", "as": OTHER}
        assert host.act("input", **secret)["ok"]["echo_off"] is True
        until(lambda: b"shown" in printed(asking))
        assert host.act("input", **secret)["ok"]["echo_off"] is False
        ada.sock.sendall(keeper_frames.input_frame(2, 0, b"x"))
        assert keeper_frames.parse_ack(ada.next(keeper_frames.ACK))[2] is False


def test_an_acknowledgement_without_flags_or_with_more_of_them_is_read() -> None:
    plain = keeper_frames.ack(7, 9, True)[5:]
    assert keeper_frames.parse_ack(plain) == (7, 9, True)
    assert keeper_frames.parse_ack(plain[:16]) == (7, 9, False)
    assert keeper_frames.parse_ack(plain[:16] + b"\x06rest") == (7, 9, False)


def test_the_welcome_names_the_questions_that_the_keeper_answers_itself(cat: OwnKeeper) -> None:
    with cat.line() as ada:
        assert ada.act("status")["ok"]["answers"] == ["OSC 7501"]
