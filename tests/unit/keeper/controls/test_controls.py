"""The controls at a real keeper: who gets them, who is told, what ends them, and what no longer lands."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.limits import CHANNELS_FOR_PEOPLE, CHANNELS_MAX, RECORD_BURST
from holdfast.system.process_tree import read_stat
from holdfast.wire import keeper_frames
from tests.support import home
from tests.support.keeperline import KeeperLine
from tests.support.ownkeeper import AGENT, HUMAN, OTHER, OwnKeeper


@pytest.fixture
def cat(tmp_path: Path) -> Iterator[OwnKeeper]:
    with OwnKeeper(tmp_path, "cat", pipes=True) as keeper:
        yield keeper


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[OwnKeeper]:
    """A program on pipes that reads nothing until it is told to by a file."""
    go = tmp_path / "go"
    with OwnKeeper(tmp_path, "sh", "-c", f"while ! [ -e {go} ]; do sleep 0.05; done; exec cat", pipes=True) as keeper:
        yield keeper


def until(condition: Callable[[], object]) -> None:
    home.until(condition, 60)  # the machine may be busy with others


def go(keeper: OwnKeeper) -> None:
    (Path(keeper.home.path) / "go").touch()


def output(keeper: OwnKeeper) -> bytes:
    out = Path(keeper.folder.out)
    return b"".join(p.read_bytes() for p in sorted(out.glob("*.out"))) if out.exists() else b""


def controls(line: KeeperLine) -> dict[str, Any]:
    answer: dict[str, Any] = line.act("status")["ok"]["controls"]
    return answer


def changed(holder: dict[str, str] | None) -> Any:
    wanted = holder["operator"] if holder else None
    return lambda e: e["event"] == "controls" and e["controls"]["holder"] == wanted


def send(keeper: OwnKeeper, data: bytes, who: dict[str, str], **more: object) -> dict[str, Any]:
    return keeper.host.act("input", data=base64.b64encode(data).decode(), **{"as": who}, **more)


def test_typing_takes_free_controls_and_everyone_else_is_told_who_has_them(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as ada, cat.line(OTHER, attach=True) as bob, cat.line(AGENT) as bot:
        assert ada.type(b"a\n") == {}
        for other in (bob, bot):
            refused = other.type(b"b\n")
            assert refused["code"] == "conflict"
            assert "ada (human) holds the controls since" in refused["message"]
            assert refused["controls"]["holder"] == HUMAN["operator"]
            assert refused["controls"]["since"] > 0
        assert send(cat, b"c\n", OTHER)["error"]["code"] == "conflict"
    until(lambda: output(cat) == b"a\n")


def test_a_human_preempts_an_agent_at_once_and_nothing_of_the_agents_lands_afterwards(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot, cat.line(attach=True) as ada:
        assert bot.type(b"a\n") == {}
        until(lambda: output(cat) == b"a\n")  # read by the program, so not flushed
        old = controls(bot)["epoch"]
        assert ada.act("take")["error"]["code"] == "conflict"
        taken = ada.act("take", force=True, why="mine now")["ok"]
        assert taken["controls"]["epoch"] == old + 1
        bot.event(changed(HUMAN))
        assert bot.type(b"b\n", epoch=old)["code"] == "stale_epoch"
        assert bot.type(b"c\n")["code"] == "conflict"
        for op, more in (
            ("input", {"data": "Yw=="}),
            ("end_input", {}),
            ("signal", {"signal": "SIGTERM"}),
            ("stop", {}),
            ("hand", {"to": OTHER}),
        ):
            assert bot.act(op, **more)["error"]["code"] == "conflict", op
            assert bot.act(op, **more, epoch=old)["error"]["code"] == "stale_epoch", op
            answer = cat.host.act(op, **more, **{"as": AGENT})
            assert answer.get("error", {}).get("code") == "conflict", op
        assert bot.act("take", force=True)["error"]["code"] == "conflict"
        assert ada.type(b"d\n") == {}
        until(lambda: output(cat) == b"a\nd\n")
    (preempt,) = [e for e in cat.entries() if e["kind"] == "preempt"]
    assert (preempt["operator"], preempt["from"], preempt["why"]) == (HUMAN["operator"], AGENT, "mine now")


def test_only_the_holder_sizes_the_terminal_and_an_old_size_does_not_come_later(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat") as cat, cat.line(OTHER, attach=True) as bob, cat.line(attach=True) as ada:
        bob.type(b"a\r")
        old = controls(bob)["epoch"]
        ada.act("take", force=True, insist=True)
        assert bob.act("resize", size=[90, 20])["error"]["code"] == "conflict"
        assert bob.act("resize", size=[90, 20], epoch=old)["error"]["code"] == "stale_epoch"
        ada.act("release")
        bob.sock.sendall(keeper_frames.resize(90, 20))  # sent before it knows, for all that the keeper can tell
        assert bob.act("status")["ok"]["size"] == [80, 24]
        bob.act("seen", epoch=old + 1)
        bob.sock.sendall(keeper_frames.resize(91, 21))
        assert bob.act("status")["ok"]["size"] == [91, 21]


def test_what_was_queued_and_unread_at_a_takeover_is_discarded_and_counted(sleeper: OwnKeeper) -> None:
    with sleeper.line(AGENT) as bot, sleeper.line(attach=True) as ada:
        for _ in range(4):
            bot.type(b"x" * 50_000)
        assert ada.act("take", force=True)["ok"]["flushed"] == 200_000
        assert ada.type(b"mine\n") == {}
        go(sleeper)
        until(lambda: output(sleeper) == b"mine\n")
    assert [e["flushed"] for e in sleeper.entries() if e["kind"] == "preempt"] == [200_000]


@pytest.mark.parametrize("pipes", [True, False], ids=["pipes", "terminal"])
def test_a_takeover_of_free_controls_takes_back_what_an_older_epoch_typed(tmp_path: Path, pipes: bool) -> None:
    """A send holds free controls only while it types; its text is not to be read after somebody took over."""
    read = f"while ! [ -e {tmp_path / 'go'} ]; do sleep 0.05; done; exec cat"
    with OwnKeeper(tmp_path, "sh", "-c", read, pipes=pipes) as busy, busy.line(attach=True) as ada:
        assert "ok" in send(busy, b"deploy --prod\n", AGENT)
        assert controls(ada)["holder"] is None
        taken = ada.act("take", force=True)["ok"]
        assert taken["flushed"] == len(b"deploy --prod\n")
        assert ada.type(b"mine\n") == {}
        go(busy)
        until(lambda: output(busy).endswith(b"mine\n" if pipes else b"mine\r\nmine\r\n"))  # echoed, then printed
        if pipes:
            assert output(busy) == b"mine\n"
        else:
            assert output(busy).count(b"deploy") == 1  # the echo of the typing
        (entry,) = [e for e in busy.entries() if e["kind"] == "take"]
        assert (entry["from"], entry["flushed"]) == (None, taken["flushed"])


def test_sends_that_share_free_controls_take_nothing_back_from_each_other(sleeper: OwnKeeper) -> None:
    assert "ok" in send(sleeper, b"one\n", AGENT)
    assert "ok" in send(sleeper, b"two\n", HUMAN)
    with sleeper.line(OTHER, attach=True) as bob:
        assert bob.type(b"three\n") == {}
        go(sleeper)
        until(lambda: output(sleeper) == b"one\ntwo\nthree\n")


def test_takeovers_that_took_something_back_are_told_one_by_one(sleeper: OwnKeeper) -> None:
    for _ in range(RECORD_BURST + 3):
        send(sleeper, b"x" * 10, AGENT)
        assert sleeper.host.act("take", **{"as": HUMAN})["ok"]["flushed"] == 10
        sleeper.host.act("release", **{"as": HUMAN})
    told = [e["flushed"] for e in sleeper.entries() if e["kind"] == "take"]
    assert told == [10] * (RECORD_BURST + 3)


def test_a_pending_end_of_input_does_not_outlive_its_epoch(sleeper: OwnKeeper) -> None:
    with sleeper.line(AGENT) as bot, sleeper.line(attach=True) as ada:
        bot.type(b"x" * 60_000)
        bot.type(b"x" * 60_000)
        assert "ok" in bot.act("end_input")
        assert ada.act("take", force=True)["ok"]["flushed"] == 120_000
        go(sleeper)
        assert ada.type(b"still open\n") == {}
        until(lambda: output(sleeper) == b"still open\n")


def test_an_end_of_input_comes_after_all_that_was_typed_before_it(sleeper: OwnKeeper) -> None:
    with sleeper.line(acks=True) as ada:
        ada.type(b"x" * 60_000)
        ada.type(b"y" * 60_000)
        assert "ok" in ada.act("end_input")
        assert ada.type(b"late")["code"] == "input_closed"
        go(sleeper)
        until(lambda: output(sleeper) == b"x" * 60_000 + b"y" * 60_000)
        ada.event(lambda e: e["event"] == "exit")


def test_a_line_that_lost_the_controls_is_refused_until_it_says_that_it_knows(cat: OwnKeeper) -> None:
    with cat.line(OTHER, attach=True) as bob, cat.line(attach=True) as ada:
        bob.type(b"a\n")
        until(lambda: output(cat) == b"a\n")
        epoch = ada.act("take", force=True, insist=True)["ok"]["controls"]["epoch"]
        ada.act("release")
        assert controls(ada)["holder"] is None
        assert bob.type(b"stale\n")["code"] == "conflict"
        assert bob.act("seen", epoch=epoch - 1)["ok"] == {"barred": True}
        assert bob.type(b"stale\n")["code"] == "conflict"
        assert bob.act("seen", epoch=epoch)["ok"] == {"barred": False}
        assert bob.type(b"b\n") == {}
        assert controls(ada)["holder"] == OTHER["operator"]
        until(lambda: output(cat) == b"a\nb\n")
        ada.act("take", force=True, insist=True)
        ada.act("release")
        assert bob.type(b"stale\n")["code"] == "conflict"
        assert "ok" in bob.act("take")
        assert bob.type(b"c\n") == {}
        until(lambda: output(cat) == b"a\nb\nc\n")


def test_a_clean_detach_frees_at_once_and_a_lost_line_after_the_grace_time(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True, grace_s=0.7) as cat:
        with cat.line(attach=True) as ada:
            ada.type(b"a")
            ada.act("release", detach=True)
            assert controls(cat.host)["holder"] is None
        with cat.line(attach=True) as ada:
            ada.type(b"b")
        cat.host.event(lambda e: e["event"] == "channels" and not e["attached"])
        with cat.line(OTHER) as bob:
            cat.host.event(changed(None))
            assert bob.type(b"c") == {}
    # The daemon is not needed for any of that; the record tells it in order.


def test_a_human_whose_line_is_lost_still_holds_them_and_may_come_back(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True, grace_s=600) as cat:
        with cat.line(attach=True) as ada:
            ada.type(b"a")
            epoch = controls(ada)["epoch"]
        with cat.line(AGENT) as bot, cat.line(attach=True) as again:
            assert bot.type(b"x")["code"] == "conflict"
            assert again.type(b"b") == {}
            assert controls(again)["epoch"] == epoch
            again.act("release", detach=True)
            assert bot.type(b"y") == {}


def test_detaching_one_window_leaves_the_operators_other_holds(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as one, cat.line(attach=True) as two:
        one.type(b"a")
        two.type(b"b")
        one.act("release", detach=True)
        assert controls(two)["holder"] == HUMAN["operator"]
        two.act("release", detach=True)
        assert controls(two)["holder"] is None


def test_an_agents_hold_ends_with_its_lease_and_with_it_what_it_had_queued(tmp_path: Path) -> None:
    go_file = tmp_path / "go"
    with OwnKeeper(
        tmp_path, "sh", "-c", f"while ! [ -e {go_file} ]; do sleep 0.05; done; exec cat", pipes=True, lease_s=0.7
    ) as keeper:
        with keeper.line(AGENT) as bot, keeper.line(attach=True) as ada:
            bot.type(b"x" * 1000)
            bot.event(changed(None))
            assert bot.type(b"y" * 1000)["code"] == "conflict"
            assert ada.type(b"mine\n") == {}
            go(keeper)
            until(lambda: output(keeper) == b"mine\n")
        (expired,) = [e for e in keeper.entries() if e["kind"] == "expire"]
        assert (expired["operator"], expired["flushed"]) == (AGENT["operator"], 1000)


def test_a_humans_take_lasts_until_released(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True, lease_s=0.1, grace_s=0.1) as cat:
        cat.host.act("take", **{"as": HUMAN})
        with cat.line(AGENT) as bot:
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                assert bot.type(b"x")["code"] == "conflict"
            cat.host.act("release", **{"as": HUMAN})
            bot.event(changed(None))
            assert bot.type(b"x") == {}


def test_a_takeover_outlives_its_line_and_comes_with_the_client_that_returns(tmp_path: Path) -> None:
    """A phone that sleeps: the agent does not get the controls, and the person is warned once."""
    with OwnKeeper(tmp_path, "cat", pipes=True, grace_s=0.3) as cat, cat.line(AGENT) as bot:
        bot.type(b"a\n")
        with cat.line(attach=True, client="phone") as ada:
            taken = ada.act("take", force=True)["ok"]["controls"]
            assert taken["from"] == AGENT
        warned = cat.host.event(lambda e: e["event"] == "controls" and e["controls"]["ends_at"])["controls"]
        assert warned["holder"] == HUMAN["operator"]
        assert warned["ends_at"] > time.time() + 11 * 3600
        refused = bot.type(b"b\n")
        assert refused["code"] == "conflict"
        assert "ada (human) holds the controls since" in refused["message"]
        with cat.line(attach=True, client="phone") as again:
            back = again.event(changed(HUMAN))["controls"]
            assert (back["ends_at"], back["epoch"]) == (None, taken["epoch"])
            assert again.type(b"c\n") == {}
            (away,) = [e for e in cat.entries() if e["kind"] == "away"]
            assert (away["operator"], away["ends_at"]) == (HUMAN["operator"], warned["ends_at"])


def test_a_takeover_ends_after_its_longest_time_away(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True, grace_s=0.1, takeover_max_s=0.6) as cat, cat.line(AGENT) as bot:
        bot.type(b"a\n")
        with cat.line(attach=True) as ada:
            ada.act("take", force=True)
            ada.type(b"b\n")
        cat.host.event(changed(None))
        assert bot.act("take")["ok"]["controls"]["holder"] == AGENT["operator"]
        assert [e["kind"] for e in cat.entries() if e["kind"] in ("away", "expire")] == ["away", "expire"]


def test_a_setting_that_comes_with_a_line_counts_from_then_on(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True, grace_s=0.1) as cat:
        cat.host.act("take", **{"as": HUMAN})
        with cat.line(OTHER, takeover_max_s=0.3):
            cat.host.event(changed(None))


def test_a_clean_detach_hands_a_takeover_back_to_whom_it_was_taken_from(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot:
        bot.type(b"a\n")
        with cat.line(attach=True) as ada:
            ada.act("take", force=True)
            ada.type(b"b\n")
            ada.act("release", detach=True)
        told = bot.event(lambda e: e["event"] == "controls" and e.get("from"))
        assert (told["from"], told["controls"]["holder"]) == (HUMAN, AGENT["operator"])
        assert told["controls"]["from"] is None  # given back: owed to nobody
        assert bot.act("seen", epoch=told["controls"]["epoch"])["ok"] == {"barred": False}
        assert bot.type(b"c\n") == {}
        with cat.line(attach=True) as ada:
            ada.act("take", force=True)
            ada.act("release", detach=True, keep=True)
        with cat.line(attach=True) as ada:  # another client: it did not take them, and leaves them where they are
            ada.type(b"d\n")
            ada.act("release", detach=True)
        assert controls(cat.host)["holder"] == HUMAN["operator"]
        (hand,) = [e for e in cat.entries() if e["kind"] == "hand"]
        assert (hand["operator"], hand["to"], hand["why"]) == (HUMAN["operator"], AGENT, "detached")


def test_a_takeover_of_free_controls_is_free_again_after_a_clean_detach(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as ada:
        ada.act("take", force=True)
        ada.act("release", detach=True)
        assert controls(ada)["holder"] is None


def test_a_takeover_moves_to_the_window_that_the_person_types_in(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot, cat.line(attach=True) as one, cat.line(attach=True) as two:
        bot.type(b"a\n")
        one.act("take", force=True)
        two.type(b"b\n")
        one.act("release", detach=True)
        assert controls(two)["holder"] == HUMAN["operator"]
        two.act("release", detach=True)
        assert controls(bot)["holder"] == AGENT["operator"]


def test_a_human_takes_from_a_human_only_by_insisting_and_that_is_recorded(cat: OwnKeeper) -> None:
    with cat.line(OTHER, attach=True) as bob, cat.line(attach=True) as ada:
        bob.type(b"a\n")
        refused = ada.act("take", force=True)["error"]
        assert (refused["code"], "--force" in refused["hint"]) == ("conflict", True)
        assert ada.act("take", force=True, insist=True)["ok"]["controls"]["from"] == OTHER
        bob.event(changed(HUMAN))
        (entry,) = [e for e in cat.entries() if e["kind"] == "preempt"]
        assert (entry["from"], entry["forced"]) == (OTHER, True)
        with cat.line(AGENT) as bot:
            assert bot.act("take", force=True, insist=True)["error"]["code"] == "conflict"


@contextlib.contextmanager
def agents_process() -> Iterator[tuple[subprocess.Popen[bytes], dict[str, int]]]:
    """A process that an agent's hold is for, and how the host names it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        seen = read_stat(process.pid)
        assert seen is not None
        try:
            yield process, {"pid": process.pid, "started": seen.started}
        finally:
            process.kill()


def test_a_dead_agent_holds_nothing_and_none_of_its_input_lands(sleeper: OwnKeeper) -> None:
    with agents_process() as (process, named), sleeper.line(AGENT, process=named) as bot:
        bot.type(b"x" * 500)
        process.kill()
        told = sleeper.host.event(changed(None))
        assert told["flushed"] == 500
        (entry,) = [e for e in sleeper.entries() if e["kind"] == "expire"]
        assert (entry["operator"], entry["why"]) == (AGENT["operator"], "its process has ended")


def test_an_agent_that_lives_keeps_the_controls_past_its_lease_stopped_or_without_its_line(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True, lease_s=0.2) as cat, agents_process() as (process, named):
        with cat.line(AGENT, process=named) as bot:
            bot.type(b"a\n")
        process.send_signal(signal.SIGSTOP)
        with cat.line({**AGENT, "operator": "op_timed"}, attach=True) as clock:  # what has no process lapses meanwhile
            assert "ok" in cat.host.act("take", force=True, **{"as": {**AGENT, "process": named}})
            assert clock.type(b"b\n")["code"] == "conflict"
            cat.host.act("release", **{"as": AGENT})
            assert clock.act("take")["ok"]
            clock.event(changed(None))
            assert "ok" in cat.host.act("take", force=True, **{"as": {**AGENT, "process": named}})
            deadline = time.monotonic() + 0.5  # twice and a half its lease
            while time.monotonic() < deadline:
                assert controls(clock)["holder"] == AGENT["operator"]
            process.kill()
            clock.event(changed(None))


def test_controls_do_not_go_back_to_an_agent_that_died_meanwhile(cat: OwnKeeper) -> None:
    with agents_process() as (process, named), cat.line(attach=True) as ada:
        cat.host.act("take", **{"as": {**AGENT, "process": named}})
        assert ada.act("take", force=True)["ok"]["controls"]["from"] == AGENT
        process.kill()
        process.wait()
        until(lambda: controls(ada)["from"] is None)
        ada.act("release", detach=True)
        assert controls(ada)["holder"] is None
        refused = cat.host.act("take", **{"as": {**AGENT, "process": named}})["error"]
        assert refused["code"] == "conflict"


def watched(keeper: OwnKeeper) -> int:
    links = [os.readlink(f"/proc/{keeper.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper.pid}/fd")]
    return sum("pidfd" in link for link in links)


def test_processes_are_watched_only_while_they_hold_something(cat: OwnKeeper) -> None:
    with agents_process() as (_, named), cat.line() as ada, cat.line(AGENT, process=named) as bot:
        ada.act("take")
        assert bot.type(b"x")["code"] == "conflict"
        assert "error" in cat.host.act("take", **{"as": {**AGENT, "process": named}})
        assert watched(cat) == 0
        ada.act("release")
        assert bot.type(b"x") == {}
        assert watched(cat) == 1
        bot.act("release")
        assert watched(cat) == 0


def test_a_text_in_pieces_waits_a_while_for_the_next_host(tmp_path: Path) -> None:
    """The host died between two pieces: the rest may come through the next one, and the hold does not stay for ever."""
    with OwnKeeper(tmp_path, "cat", pipes=True, grace_s=0.5) as cat, cat.line(OTHER) as bob:
        with KeeperLine(cat.home, cat.id, role="host", **HUMAN) as host:
            assert "ok" in host.act("input", data="YQ==", hold="snd_1", what="send", **{"as": AGENT})
            bob.event(changed(AGENT))
        assert bob.type(b"b")["code"] == "conflict"
        bob.event(changed(None))
        assert bob.type(b"b") == {}


def test_hand_gives_the_controls_with_a_note_under_a_new_epoch(sleeper: OwnKeeper) -> None:
    with sleeper.line(AGENT) as bot, sleeper.line(attach=True) as ada:
        assert bot.act("hand", to=HUMAN)["error"]["code"] == "conflict"
        bot.type(b"x" * 500)
        epoch = controls(bot)["epoch"]
        handed = bot.act("hand", to=HUMAN, note="your turn", why="done")["ok"]
        assert (handed["controls"]["holder"], handed["controls"]["epoch"]) == (HUMAN["operator"], epoch + 1)
        assert handed["flushed"] == 500
        told = ada.event(changed(HUMAN))
        assert (told["note"], told["from"]) == ("your turn", AGENT)
        assert bot.type(b"y")["code"] == "conflict"
        assert ada.type(b"mine\n") == {}
        go(sleeper)
        until(lambda: output(sleeper) == b"mine\n")
    (entry,) = [e for e in sleeper.entries() if e["kind"] == "hand"]
    assert (entry["operator"], entry["to"], entry["note"], entry["why"]) == (
        AGENT["operator"],
        HUMAN,
        "your turn",
        "done",
    )


def test_revoking_an_operator_ends_its_lines_its_hold_and_its_queue(sleeper: OwnKeeper) -> None:
    with sleeper.line(AGENT) as bot, sleeper.line(AGENT, attach=True) as watching, sleeper.line() as ada:
        bot.type(b"x" * 500)
        assert ada.act("revoke", operator=AGENT["operator"])["error"]["code"] == "not_allowed"
        done = sleeper.host.act("revoke", operator=AGENT["operator"])["ok"]
        assert done == {"closed": 2, "freed": True, "flushed": 500}
        bot.event(lambda e: e == {"event": "closed", "reason": "revoked"})
        assert bot.closed()
        assert watching.closed()
        assert ada.type(b"mine\n") == {}
        go(sleeper)
        until(lambda: output(sleeper) == b"mine\n")


def test_revoking_a_grant_ends_the_lines_admitted_under_it(cat: OwnKeeper) -> None:
    with cat.line(AGENT, grants=["gr_1", "gr_2"]) as one, cat.line(AGENT, grants=["gr_3"]) as other:
        one.type(b"a")
        assert cat.host.act("revoke", grant="gr_2")["ok"]["closed"] == 1
        assert one.closed()
        assert controls(cat.host)["holder"] is None
        assert other.type(b"b")["code"] == "conflict"
        assert other.act("seen", epoch=controls(other)["epoch"])["ok"] == {"barred": False}
        assert other.type(b"b") == {}
        assert cat.host.act("revoke")["error"]["code"] == "invalid"


def test_a_revoked_operators_queued_input_goes_also_when_it_let_the_controls_go(sleeper: OwnKeeper) -> None:
    send(sleeper, b"x" * 60_000, OTHER)
    send(sleeper, b"y" * 40_000, AGENT)
    send(sleeper, b"z" * 40_000, OTHER)
    assert sleeper.host.act("revoke", operator=AGENT["operator"])["ok"]["flushed"] > 30_000
    go(sleeper)
    until(lambda: len(output(sleeper)) >= 100_000)
    assert output(sleeper).count(b"z") == 40_000
    assert output(sleeper).count(b"x") == 60_000


def test_a_channels_rights_end_by_the_clock(cat: OwnKeeper) -> None:
    with cat.line(AGENT, until=time.time() + 1.5, attach=True) as bot, cat.line() as ada:
        with contextlib.suppress(AssertionError):  # on a machine so busy that the time is over before it is typed
            bot.type(b"a")
        bot.event(lambda e: e == {"event": "closed", "reason": "expired"})
        assert bot.closed()
        assert controls(ada)["holder"] is None
    with cat.line(AGENT, until=time.time() - 5) as late:
        assert late.closed()
    assert cat.host.act("status")["ok"]["exit"] is None


@pytest.mark.parametrize(
    ("right", "op", "request_"),
    [
        ("type", "input", {"data": "YQ=="}),
        ("type", "end_input", {}),
        ("type", "take", {}),
        ("resize", "resize", {"size": [90, 20]}),
        ("signal", "signal", {"signal": "SIGCONT"}),
        ("stop", "stop", {}),
        ("view", "status", {}),
        ("view", "sample", {}),
    ],
)
def test_each_act_needs_its_right(cat: OwnKeeper, right: str, op: str, request_: dict[str, Any]) -> None:
    others = [r for r in ("view", "type", "resize", "signal", "stop") if r != right]
    with cat.line(rights=others) as line:
        assert line.act(op, **request_)["error"]["code"] == "not_allowed"
        if right == "type":
            assert line.type(b"x")["code"] == "not_allowed"
        if right == "view":
            line.sock.sendall(keeper_frames.read(0))
            assert line.closed()
    if op != "stop":
        with cat.line(rights=[right]) as line:
            assert "ok" in line.act(op, **request_)


def test_only_the_host_ends_holds_it_named_reads_the_record_and_answers_queries(cat: OwnKeeper) -> None:
    send(cat, b"a", HUMAN, hold="exe_1", what="exec")
    with cat.line(AGENT) as bot:
        for op in ("drop", "reply", "revoke", "events", "ack"):
            assert bot.act(op, hold="exe_1", data="", operator="op_ada", upto=1)["error"]["code"] == "not_allowed"
        assert bot.act("release")["error"]["code"] == "conflict"
        assert bot.act("input", data="YQ==", **{"as": HUMAN})["error"]["code"] == "conflict"
        assert controls(bot)["holder"] == HUMAN["operator"]
        cat.host.act("drop", hold="exe_1")
        assert controls(bot)["holder"] is None


def test_a_command_that_lost_the_controls_types_no_more_even_when_they_are_free(cat: OwnKeeper) -> None:
    assert "ok" in send(cat, b"a\n", AGENT, hold="exe_1")
    until(lambda: output(cat) == b"a\n")
    with cat.line() as ada:
        ada.act("take", force=True)
        ada.act("release")
    refused = send(cat, b"b\n", AGENT, hold="exe_1")["error"]
    assert refused["code"] == "conflict"
    assert "ok" in send(cat, b"c\n", AGENT, hold="exe_2")
    until(lambda: output(cat) == b"a\nc\n")


def test_an_agent_may_stop_what_nobody_holds_and_a_human_always(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as ada, cat.line(AGENT) as bot:
        ada.type(b"a")
        assert bot.act("stop")["error"]["code"] == "conflict"
        with cat.line(OTHER) as bob:
            assert "ok" in bob.act("stop", grace_s=5)
            bob.event(lambda e: e["event"] == "ended")


def test_input_through_the_host_is_bounded_and_it_hears_when_there_is_room(sleeper: OwnKeeper) -> None:
    sent = 0
    while "ok" in (answer := send(sleeper, b"x" * 60_000, HUMAN)):
        sent += 60_000
        assert sent < 2_000_000
    assert answer["error"]["code"] == "busy"
    assert sleeper.host.act("status")["ok"]["queued_input"] <= 256 << 10
    go(sleeper)
    sleeper.host.event(lambda e: e["event"] == "room")
    assert "ok" in send(sleeper, b"y" * 60_000, HUMAN)
    until(lambda: len(output(sleeper)) == sent + 60_000)
    assert "invalid" in send(sleeper, b"x" * 70_000, HUMAN)["error"]["code"]


def test_a_client_that_floods_and_never_reads_costs_a_bounded_outbox(cat: OwnKeeper) -> None:
    with cat.line(attach=True) as ada, cat.line(AGENT) as bot:
        ada.type(b"a")
        frame = b"".join(keeper_frames.input_frame(n, 0, b"x") for n in range(1, 2000))
        bot.sock.settimeout(30)
        for _ in range(10):
            bot.sock.sendall(frame)
        before = Path(f"/proc/{cat.pid}/status").read_text()
        assert ada.act("status")["ok"]["controls"]["holder"] == HUMAN["operator"]
        rss = int(before.split("VmRSS:")[1].split()[0])
        assert rss < 40_000  # kB
        assert ada.act("status")["ok"]["attached"]
    assert cat.complaints() == ""


def test_acts_with_free_controls_do_not_disturb_those_who_watch(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat") as cat, cat.line(OTHER, attach=True) as bob, cat.line(AGENT) as bot:
        bot.act("resize", size=[90, 20])
        bob.event(lambda e: e["event"] == "resize")
        bot.act("input", data="YQ==")
        bob.act("status")
        assert [e for e in bob.events if e["event"] == "controls"] == []
        assert cat.host.event(lambda e: e["event"] == "controls")["controls"]["holder"] is None


def test_epochs_never_go_back_when_the_keeper_is_killed(tmp_path: Path) -> None:
    highest = 0
    for generation in range(1, 4):
        with OwnKeeper(tmp_path, "cat", pipes=True, generation=generation) as cat:
            for _ in range(70):  # past one reserved block
                taken = cat.host.act("take", **{"as": HUMAN})["ok"]["controls"]["epoch"]
                assert taken > highest
                highest = taken
                cat.host.act("release", **{"as": HUMAN})
            cat.kill()


def test_nobody_hands_the_controls_to_one_whom_the_host_did_not_introduce(cat: OwnKeeper) -> None:
    """An agent cannot make up a person: neither one who is not there, nor one of another kind than the host said."""
    with cat.line(AGENT) as bot, cat.line(OTHER, rights=["view"]), cat.line({**AGENT, "operator": "op_b"}) as second:
        bot.type(b"x")
        for made_up in ({"operator": "op_nobody", "kind": "human", "name": "ada"}, OTHER):
            assert bot.act("hand", to=made_up)["error"]["code"] == "not_allowed"
        handed = bot.act("hand", to={"operator": "op_b", "kind": "human", "name": "ada"})["ok"]
        assert (handed["controls"]["kind"], handed["controls"]["name"]) == (AGENT["kind"], AGENT["name"])
        assert second.type(b"y") == {}


def test_a_channel_without_the_right_to_ask_for_the_controls_takes_only_free_ones(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot, cat.line(rights=["view", "type"]) as typist:
        bot.type(b"x")
        assert typist.act("take", force=True)["error"]["code"] == "conflict"
        bot.act("release")
        assert typist.act("take", force=True)["ok"]["controls"]["holder"] == HUMAN["operator"]


def test_a_service_does_not_stop_what_a_person_holds(cat: OwnKeeper) -> None:
    with cat.line() as ada, cat.line({**AGENT, "kind": "service"}) as service:
        ada.type(b"x")
        assert service.act("stop")["error"]["code"] == "conflict"
        assert "ok" in ada.act("status")


def test_an_operator_s_numbers_do_not_stand_in_for_another_s(cat: OwnKeeper) -> None:
    """The same client id, said by an agent who typed first: the person's typing is not taken for a retry."""
    with cat.line(AGENT, client="same") as bot:
        bot.sock.sendall(keeper_frames.input_frame(2**63, 0, b"a"))
        bot.next(keeper_frames.ACK)
        bot.act("release")
    with cat.line(client="same") as ada:
        assert ada.type(b"b") == {}
    until(lambda: output(cat) == b"ab")


def test_an_agent_that_opens_all_channels_leaves_some_for_people(cat: OwnKeeper) -> None:
    with contextlib.ExitStack() as lines:
        opened = 0
        with contextlib.suppress(AssertionError, ConnectionError):
            for _ in range(CHANNELS_MAX):
                lines.enter_context(cat.line(AGENT))
                opened += 1
        assert CHANNELS_MAX - CHANNELS_FOR_PEOPLE - 2 <= opened < CHANNELS_MAX - 2
        assert "ok" in lines.enter_context(cat.line()).act("status")
