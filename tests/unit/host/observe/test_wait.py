"""Waiting for something of a session: while the line to its keeper breaks, and for a text that is costly to find."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.observe.wait import Waits
from holdfast.host.sessions.session import Session
from holdfast.host.sessions.state import State
from holdfast.log.layout import TERMINAL
from holdfast.log.writer import OutputLog
from holdfast.model import limits
from holdfast.model.errors import HoldfastError

Json = dict[str, Any]


class Breaking:
    """A line that ends in the middle of a question, as when the keeper is killed."""

    end = 0

    def __init__(self, session: Session, *, keeps: bool = False) -> None:
        self._session, self._keeps = session, keeps

    async def act(self, op: str, **request: object) -> Json:
        if not self._keeps:
            self._session.move_to(State.LOST)
            self._session.load_ending()
        raise HoldfastError("failed", "the session's keeper is gone", "")


async def unasked(*_: Any) -> Any:
    raise AssertionError("nobody looks at the kernel here")


async def test_a_session_that_ends_while_it_is_asked_is_told_as_ended(session: Session) -> None:
    session.move_to(State.CONNECTED, Breaking(session))  # type: ignore[arg-type]
    found = await Waits(unasked, unasked).wait(session, "quiet=1000", None, 60)
    assert (found["event"], found["detail"]["state"], found["detail"]["exit"]["known"]) == ("exit", "lost", False)


async def test_a_keeper_that_refuses_is_told_as_it_is(session: Session) -> None:
    session.move_to(State.CONNECTED, Breaking(session, keeps=True))  # type: ignore[arg-type]
    with pytest.raises(HoldfastError, match="is gone"):
        await Waits(unasked, unasked).wait(session, "quiet=1000", None, 60)


COSTLY = "text=(?:(?:a?b?c?d?){120}){4}x"  # of 3,845 instructions: RE2 goes through most of them for each letter


def printed(session: Session, *pieces: bytes) -> None:
    Path(session.reader.folder).mkdir(exist_ok=True)
    log = OutputLog(session.reader.folder, 0, limits.SEGMENT_BYTES, limits.RETAIN_BYTES)
    for piece in pieces:
        log.add(TERMINAL, piece, 1)
    log.close()


async def test_a_costly_search_leaves_the_host_free_for_others(session: Session) -> None:
    printed(session, b"a" * 20_000)
    waits, turns = Waits(unasked, unasked), 0
    costly = asyncio.create_task(waits.wait(session, COSTLY, 0, None, "agent"))
    while not costly.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert (await costly)["event"] == "exit"
    assert turns > 20  # of the event loop, while it was searched for


async def test_a_wait_ends_when_its_time_is_up_in_the_middle_of_a_search(session: Session) -> None:
    printed(session, *[b"a" * 60_000] * 20, b"x")  # a match, some minutes away
    found = await Waits(unasked, unasked).wait(session, COSTLY, 0, 0.05, "agent")
    assert found["event"] == "timeout"


async def test_an_operator_with_many_costly_searches_leaves_room_for_others(session: Session) -> None:
    printed(session, b"a" * 400_000 + b"ready")
    waits = Waits(unasked, unasked)
    hostile = [asyncio.create_task(waits.wait(session, COSTLY, 0, None, "agent")) for _ in range(50)]
    found = await waits.wait(session, "text=ready", 0, 60, "person")
    assert found["event"] == "text"
    assert not any(task.done() for task in hostile)
    for task in hostile:
        task.cancel()
    await asyncio.gather(*hostile, return_exceptions=True)


@pytest.mark.parametrize("before", [0, 1, 60_000, 65_536, 1_000_000, (1 << 20) - 3, 1 << 20, (1 << 20) + 1, 2_300_000])
async def test_a_text_is_found_at_its_offset_wherever_windows_end(session: Session, before: int) -> None:
    pieces = [b"-" * 60_000] * (before // 60_000) + [b"-" * (before % 60_000), b"rea", b"dy", b"-" * 100_000]
    printed(session, *filter(None, pieces))
    found = await Waits(unasked, unasked).wait(session, "text=ready", 0, 60, "person")
    detail = {"match": "ready", "start": before, "end": before + 5}
    assert found == {"event": "text", "offset": before + 5, "detail": detail}
