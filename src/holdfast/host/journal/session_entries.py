"""Entries of the journal about what was done to a session, by whom, and why."""

from __future__ import annotations

from typing import Any

from ...api.operation import Operation
from ...model import limits
from ..operators.caller import Caller
from ..sessions.session import Session
from .journal import Journal


def why_of(request: Operation[Any]) -> str | None:
    """The reason that was given, as much of it as is kept."""
    why: str | None = getattr(request, "why", None)
    return None if why is None else why[: limits.WHY_MAX]


def note(journal: Journal, kind: str, session: Session, caller: Caller, request: Operation[Any], **facts: Any) -> None:
    """Into the journal: what was done to a session."""
    journal.note(
        kind,
        session=session.id,
        actor=caller.actor,
        why=why_of(request),
        generation=session.manifest["generation"],
        session_name=session.name,
        **facts,
    )


def note_unless_kept(
    journal: Journal, kind: str, session: Session, caller: Caller, request: Operation[Any], **facts: Any
) -> None:
    """The same for what a keeper records by itself: only where it is too old to."""
    if not session.spools:
        note(journal, kind, session, caller, request, **facts)
