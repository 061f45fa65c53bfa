"""The same act in a loop does not fill the record, and every one of them is still accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.log.act_spool import entries
from holdfast.model import limits
from tests.support.home import until
from tests.support.ownkeeper import AGENT, HUMAN, OwnKeeper

TIMES = 300


@pytest.fixture
def cat(tmp_path: Path) -> Iterator[OwnKeeper]:
    with OwnKeeper(tmp_path, "sleep", "600") as keeper:
        yield keeper


def told(found: list[dict[str, Any]], kind: str, operator: str) -> int:
    return sum(e.get("repeated", 1) for e in found if (e["kind"], e["operator"]) == (kind, operator))


def test_who_takes_and_releases_in_a_loop_fills_no_journal(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot:
        epochs = []
        for _ in range(TIMES):
            epochs.append(bot.act("take")["ok"]["controls"]["epoch"])
            bot.act("release")
        me = AGENT["operator"]
        found = until(lambda: (e := cat.entries()) and told(e, "release", me) == TIMES and e, 60)
        assert told(found, "take", me) == TIMES
        assert len(found) < TIMES
        last = max((e for e in found if e["kind"] == "take"), key=lambda e: e.get("to_epoch") or e["epoch"])
        assert (found[0]["epoch"], last["to_epoch"]) == (epochs[0], epochs[-1])
        assert last["epoch"] <= last["to_epoch"]
        assert last["at"] <= last["until"]


def test_sizes_and_reasons_without_end_are_joined_too_and_a_takeover_never_is(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot, cat.line(HUMAN) as ada:
        bot.act("take")
        for n in range(TIMES):
            bot.act("resize", size=[80 + n % 2, 24])
            bot.act("input", data="", why=f"because of {n}")
        rounds = limits.RECORD_BURST + 10
        for _ in range(rounds):
            ada.act("take", force=True)
            ada.act("release")
            bot.act("take")
        found = until(lambda: (e := cat.entries()) and told(e, "release", HUMAN["operator"]) == rounds and e, 60)
        assert len([e for e in found if e["kind"] == "preempt"]) == rounds
        assert told(found, "resize", AGENT["operator"]) == TIMES - 1  # the first was the size that it had
        assert told(found, "input", AGENT["operator"]) == TIMES
        assert len(found) < 2 * TIMES


def test_what_was_only_counted_is_told_before_the_end(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "sleep", "600") as sleep, sleep.line(AGENT) as bot:
        for _ in range(TIMES):
            bot.act("take")
            bot.act("release")
        sleep.host.act("stop", grace_s=0, **{"as": HUMAN})
        path = sleep.folder.spool
        found = until(lambda: (e := entries(path, most=10_000)) and e[-1]["kind"] == "ended" and e, 60)
        assert told(found, "take", AGENT["operator"]) == TIMES


def test_each_signal_is_told_by_its_own_name_however_many_there_are(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot:
        rounds = limits.RECORD_BURST + 10
        for _ in range(rounds):
            bot.act("signal", signal="SIGCONT", target="main")
        bot.act("signal", signal="SIGWINCH", target="main")
        bot.act("signal", signal="SIGCONT", target="main")
        found = until(lambda: (e := cat.entries()) and told(e, "signal", AGENT["operator"]) == rounds + 2 and e, 60)
        names = [e["signal"] for e in found if e["kind"] == "signal" for _ in range(e.get("repeated", 1))]
        assert (names.count("SIGCONT"), names.count("SIGWINCH")) == (rounds + 1, 1)


def test_every_command_is_told_by_its_own_id_however_many_there_are(cat: OwnKeeper) -> None:
    with cat.line(AGENT) as bot:
        bot.act("take")
        wanted = [f"exe_{n}" for n in range(limits.RECORD_BURST + 10)]
        for one in wanted:
            bot.act("input", data="", what="exec", exec_id=one)
        found = until(lambda: (e := cat.entries()) and told(e, "input", AGENT["operator"]) >= len(wanted) and e, 60)
        # The next host tells by these which commands were really begun.
        assert [e.get("exec_id") for e in found if e["kind"] == "input"] == wanted
