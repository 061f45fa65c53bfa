"""What the keeper records: every act once, with its operator and epoch, typing as ranges, and never what was typed."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.log.act_spool import entries
from holdfast.wire import keeper_frames
from tests.support.home import until
from tests.support.ownkeeper import AGENT, HUMAN, OTHER, OwnKeeper


@pytest.fixture
def cat(tmp_path: Path) -> Iterator[OwnKeeper]:
    with OwnKeeper(tmp_path, "cat") as keeper:
        yield keeper


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [e["kind"] for e in found]


def test_a_story_is_recorded_in_order_with_operator_epoch_and_reason(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "sleep", "600") as cat:  # it reads nothing, so nothing that is typed ends it
        tell_a_story(cat)


def tell_a_story(cat: OwnKeeper) -> None:
    with cat.line(attach=True, via="cli", why="to look") as ada, cat.line(AGENT) as bot:
        ada.type(b"secret\r")
        ada.act("resize", size=[90, 20], why="wider")
        ada.act("signal", signal="SIGCONT", target="main", why="go on")
        ada.act("hand", to=AGENT, note="yours")
        bot.type(b"x", epoch=cat.host.act("status")["ok"]["controls"]["epoch"])
        ada.act("take", force=True, why="no, mine")
        ada.act("release", detach=True)
    cat.host.event(lambda e: e["event"] == "channels" and not e["attached"])
    cat.host.act("end_input", **{"as": OTHER})
    found = cat.entries()
    assert kinds(found) == [
        "attach",
        "take",
        "input",
        "resize",
        "signal",
        "hand",
        "input",
        "preempt",
        "release",
        "detach",
        "end_input",
    ]
    assert [e["n"] for e in found] == list(range(1, 12))
    attach, take, typed, resize, signal, hand, agents, preempt = found[:8]
    assert (attach["via"], attach["mode"], attach["why"]) == ("cli", "control", "to look")
    assert (take["from"], take["epoch"]) == (None, typed["epoch"])
    assert (typed["operator"], typed["operator_kind"], typed["name"]) == ("op_ada", "human", "ada")
    assert (typed["via"], typed["what"], typed["generation"]) == ("cli", "keys", 1)
    assert typed["at"] <= typed["until"]
    assert typed["offset"] <= typed["to_offset"]
    assert (resize["size"], resize["why"]) == ([90, 20], "wider")
    assert (signal["signal"], signal["target"]) == ("SIGCONT", "main")
    assert (hand["to"], hand["epoch"]) == (AGENT, typed["epoch"] + 1)
    assert (agents["operator"], agents["epoch"]) == ("op_bot", hand["epoch"])
    assert (preempt["from"], preempt["epoch"], preempt["why"]) == (AGENT, hand["epoch"] + 1, "no, mine")


def test_typing_without_pauses_is_one_range_and_costs_no_write_per_keystroke(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as ada:
        typed = [bytes([byte]) for byte in b"password-which-nobody-may-keep\r"]
        ada.sock.sendall(b"".join(keeper_frames.input_frame(n, 0, key) for n, key in enumerate(typed, 1)))
        for _ in typed:
            ada.next(keeper_frames.ACK)
        found = cat.entries()
        # A busy machine may have paused for a second in the middle; then there are two ranges. Never one per key.
        assert 1 <= len([e for e in found if e["kind"] == "input"]) <= 3
        spooled = Path(cat.folder.spool).read_bytes()
        assert b"assword" not in spooled
        assert b"length" not in spooled


def test_a_pause_ends_a_range_by_itself(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as ada:
        ada.type(b"a")
        told = cat.host.event(lambda e: e["event"] == "spooled")  # of the attach
        found = cat.entries(now=False)
        while not found or found[-1]["kind"] != "input":
            told = cat.host.event(lambda e: e["event"] == "spooled")
            found = cat.entries(now=False)
        assert told["last"] == found[-1]["n"]
        assert found[-1]["until"] >= found[-1]["at"]


def test_the_host_is_told_once_until_it_asks(cat: OwnKeeper) -> None:
    for _ in range(5):
        cat.host.act("resize", size=[90, 20], **{"as": HUMAN})
        cat.host.act("resize", size=[91, 20], **{"as": HUMAN})
    assert len([e for e in cat.host.events if e["event"] == "spooled"]) == 1
    assert len(cat.entries()) == 10
    cat.host.events.clear()
    cat.host.act("resize", size=[92, 20], **{"as": HUMAN})
    cat.host.event(lambda e: e["event"] == "spooled" and e["last"] == 11)


def test_what_is_acknowledged_is_gone_and_numbers_go_on_in_the_next_generation(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat") as first:
        for n in range(6):
            first.host.act("resize", size=[90 + n, 20], **{"as": HUMAN})
        assert first.host.act("ack", upto=4)["ok"] == {"first": 5, "last": 6}
        assert first.host.act("status")["ok"]["spool"] == {"first": 5, "last": 6, "lost": 0}
        assert [e["n"] for e in first.entries()] == [5, 6]
    kept = entries(first.folder.spool)
    assert kinds(kept)[-2:] == ["stop", "ended"]
    assert kept[-1]["exit"]["signal"] is not None
    with OwnKeeper(tmp_path, "cat", generation=2, spooled=kept[-1]["n"]) as second:
        assert second.host.welcome["spool"] == {"first": kept[-1]["n"] + 1, "last": kept[-1]["n"], "lost": 0}
        second.host.act("resize", size=[99, 20], **{"as": HUMAN})
        (entry,) = second.entries(after=kept[-1]["n"])
        assert (entry["n"], entry["generation"]) == (kept[-1]["n"] + 1, 2)


def test_an_input_is_named_on_disk_before_it_is_written_even_if_the_keeper_is_killed(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat") as cat, cat.line(AGENT) as bot:
        bot.type(b"x\r")
        until(lambda: b"x" in b"".join(p.read_bytes() for p in Path(cat.folder.out).glob("*.out")), 60)
        cat.kill()
    found = entries(cat.folder.spool)
    assert kinds(found) == ["take", "input"]
    assert found[-1]["operator"] == "op_bot"


def test_sends_execs_and_answers_say_what_they_were(cat: OwnKeeper) -> None:
    data = base64.b64encode(b"y\r").decode()
    cat.host.act("input", data=data, what="send", why="it asked", **{"as": HUMAN})
    cat.host.act("input", data=data, what="answer", via="inbox", **{"as": HUMAN})
    cat.host.act("input", data=data, what="exec", hold="exe_1", **{"as": AGENT})
    cat.host.act("input", data=data, hold="exe_1", **{"as": AGENT})
    assert cat.host.act("input", data=data, what="else", **{"as": AGENT})["error"]["code"] == "invalid"
    send, answer, run = cat.entries()
    assert (send["what"], send["why"], send["via"]) == ("send", "it asked", "host")
    assert (answer["what"], answer["via"]) == ("answer", "inbox")
    assert (run["what"], run["exec_id"], run["operator"]) == ("exec", "exe_1", "op_bot")
    assert send["epoch"] < answer["epoch"] < run["epoch"]


def test_a_full_record_refuses_input_until_the_host_has_it(cat: OwnKeeper) -> None:
    why = "\N{OLD ITALIC LETTER A}" * 1000  # twelve bytes each, as JSON
    for n in range(1000):  # one hand alone would be counted
        who = {**AGENT, "operator": f"op_{n}"}
        answer = cat.host.act("signal", signal="SIGCONT", target="main", why=why, **{"as": who})
        if "error" in answer:
            break
    assert answer["error"]["code"] == "busy"
    with cat.line(attach=True) as ada:
        assert ada.type(b"x")["code"] == "busy"
        assert ada.act("resize", size=[90, 20])["error"]["code"] == "busy"
        assert "ok" in ada.act("take", force=True)  # a takeover is never refused for that
        last = cat.entries()[-1]["n"]
        cat.host.act("ack", upto=last)
        assert ada.type(b"x") == {}
    assert os.path.getsize(cat.folder.spool) < 1 << 20
