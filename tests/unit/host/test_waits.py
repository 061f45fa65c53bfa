"""Waiting for something of a session while the line to its keeper breaks."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.host.session import Session
from holdfast.host.waits import Waits
from holdfast.model.errors import HoldfastError

Json = dict[str, Any]


class Breaking:
    """A line that ends in the middle of a question, as when the keeper is killed."""

    end = 0

    def __init__(self, session: Session, *, keeps: bool = False) -> None:
        self._session, self._keeps = session, keeps

    async def act(self, op: str, **request: object) -> Json:
        if not self._keeps:
            self._session.link = None
            self._session.load_ending()
        raise HoldfastError("failed", "the session's keeper is gone", "")


async def unasked(*_: Any) -> Any:
    raise AssertionError("nobody looks at the kernel here")


async def test_a_session_that_ends_while_it_is_asked_is_told_as_ended(session: Session) -> None:
    session.link = Breaking(session)  # type: ignore[assignment]
    found = await Waits(unasked, unasked).wait(session, "quiet=1000", None, 60)
    assert (found["event"], found["detail"]["state"], found["detail"]["exit"]["known"]) == ("exit", "lost", False)


async def test_a_keeper_that_refuses_is_told_as_it_is(session: Session) -> None:
    session.link = Breaking(session, keeps=True)  # type: ignore[assignment]
    with pytest.raises(HoldfastError, match="is gone"):
        await Waits(unasked, unasked).wait(session, "quiet=1000", None, 60)
