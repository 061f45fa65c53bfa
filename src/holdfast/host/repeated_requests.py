"""A request that is asked for again, because a host died under it: what became of it the first time."""

from __future__ import annotations

import time
from typing import Any

from ..api.operation import Operation
from ..model.errors import HoldfastError, invalid
from ..model.limits import WORD_MAX
from .sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .operators.caller import Caller


_PART_MAX = 24  # letters by which a part of a request is told from the others


def name_of(request: Operation[Any], part: object = "") -> str | None:
    """The request's id, which the keeper knows it by; `part` is one act of several that carry it out."""
    name: str | None = getattr(request, "request", None)
    if name is None:
        return None
    if not 0 < len(name) <= WORD_MAX - _PART_MAX:
        raise invalid(f"a request's id is a text of at most {WORD_MAX - _PART_MAX} characters", "leave it out")
    return f"{name}+{part}" if part else name


async def carried_out(session: Session, caller: Caller, request: Operation[Any], part: object = "") -> bool:
    """Whether it was, when it was asked before. Raises host_gone where that cannot be known."""
    name, ago = name_of(request, part), getattr(request, "asked_s_ago", None)
    if name is None or ago is None:
        return False
    if time.time() - ago < session.manifest["started_at"]:
        raise _not_known(session, "was started again since")
    if session.connected:
        if not session.applies_once:
            raise _not_known(session, "has a keeper that does not remember requests")
        return (await session.line.act("applied", of=name, **{"as": caller.actor}))["applied"] is not None
    if session.live:
        return False  # it does not answer, which is told next
    record = session.ending()
    if "requests" not in record:
        raise _not_known(session, "is gone, and left no record of it")
    return [caller.operator, name] in record["requests"]


def _not_known(session: Session, what: str) -> HoldfastError:
    return HoldfastError(
        "host_gone",
        f"the host died before it answered, and {session.name} {what}: whether it was done is not known",
        f"look before you ask again: hold logs {session.name}",
    )
