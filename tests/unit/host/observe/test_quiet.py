"""Silence is judged by a clock that nobody sets, whatever an hour's jump of the time of day does to the rest."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.host.exec.command import Command
from holdfast.host.exec.results_file import Results
from holdfast.host.observe.quiet import Silence, output_age_s
from holdfast.host.observe.wait import Waits
from holdfast.host.sessions.session import Session
from holdfast.host.sessions.state import State
from holdfast.keeper.controls import controls
from holdfast.model.limits import CLOCK_LOOK_S
from tests.support.home import until
from tests.support.ownkeeper import OwnKeeper

Json = dict[str, Any]
HOUR = 3600.0


class Silent:
    """A line to a keeper whose program prints nothing more; the clock was set by `jump` since it last did."""

    end = 5

    def __init__(self, jump: float, age: float | None) -> None:
        self.status: Json = {"output": {"end": 5}, "output_at": time.time() - jump - (age or 0.0)}
        if age is not None:
            self.status["output_age"] = age

    async def act(self, op: str, **request: object) -> Json:
        return self.status

    async def grown(self, past: int) -> int:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def unasked(*_: Any) -> Any:
    raise AssertionError("nobody looks at the kernel here")


async def waited(session: Session, line: Silent, spec: str, timeout: float) -> str:
    session.move_to(State.CONNECTED, line)  # type: ignore[arg-type]
    return str((await Waits(unasked, unasked).wait(session, spec, None, timeout))["event"])


async def test_quiet_is_quiet_also_when_the_clock_was_set_back(session: Session) -> None:
    assert await waited(session, Silent(-HOUR, age=10), "quiet=2", 30) == "quiet"


async def test_quiet_is_not_reached_by_setting_the_clock_forward(session: Session) -> None:
    assert await waited(session, Silent(HOUR, age=0), "quiet=1000", 0.2) == "timeout"


@pytest.mark.parametrize("jump", [-HOUR, 0, HOUR])
async def test_an_older_keepers_silence_is_waited_for_by_our_own_clock(session: Session, jump: float) -> None:
    assert await waited(session, Silent(jump, age=None), "quiet=0.1", 30) == "quiet"
    assert await waited(session, Silent(jump, age=None), "quiet=1000", 0.2) == "timeout"


def test_silence_begins_anew_with_every_output() -> None:
    silence = Silence()
    assert silence.seen({"output": {"end": 0}}, 100.0) == 0
    assert silence.seen({"output": {"end": 0}}, 103.0) == 3
    assert silence.seen({"output": {"end": 1}}, 104.0) == 0
    assert silence.seen({"output": {"end": 1}, "output_age": 0.5}, 110.0) == 0.5


def test_the_age_of_the_last_output_is_the_keepers_word_and_never_below_nothing() -> None:
    assert output_age_s({"output_at": 1000.0 + HOUR, "output_age": 7.0}, 1000.0) == 7
    assert output_age_s({"output_at": 1000.0 + HOUR}, 1000.0) == HOUR  # set back meanwhile: it was not this moment


def test_a_keeper_counts_since_its_last_output(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat", pipes=True) as keeper, keeper.line() as line:
        began = until(lambda: line.act("status")["ok"]["output_age"] > 0.3 and time.monotonic())
        assert line.type(b"x\n") == {}
        until(lambda: line.act("status")["ok"]["output"]["end"] == 2)
        assert line.act("status")["ok"]["output_age"] <= time.monotonic() - began  # it printed after that moment


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_how_long_a_command_ran_is_not_told_by_the_time_of_day(monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    kept: list[Json] = []
    results = cast(Results, SimpleNamespace(add=kept.append))
    record = {
        "exec_id": "exe_1",
        "token": "0" * 32,
        "from": 0,
        "start": 0,
        "end": None,
        "state": "running",
        "started_at": time.time(),
    }
    command = Command(cast(Session, SimpleNamespace()), record, results)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert 0 <= command.watched_s < 600
    command.finish("exited", 0, 10, "/")
    assert 0 <= kept[-1]["duration_ms"] < 600_000


def test_rights_that_end_by_the_time_of_day_are_looked_at_each_minute() -> None:
    channel = SimpleNamespace(until=time.time() + HOUR)
    due = controls.next_until(cast(Any, SimpleNamespace(channels={1: channel, 2: SimpleNamespace(until=0.0)})))
    assert 0 < due - time.monotonic() <= CLOCK_LOOK_S
    assert controls.next_until(cast(Any, SimpleNamespace(channels={}))) == 0  # with none, nobody wakes up
