"""Finding the session that a caller means, among those that it may see."""

from __future__ import annotations

from ...model.errors import HoldfastError
from ..operators.caller import Caller
from .registry import Registry
from .session import Session


def visible(registry: Registry, word: str, caller: Caller) -> Session:
    """The session that is meant, as it is."""
    return registry.find(word, lambda s: caller.may("view", s))


async def found(registry: Registry, word: str, caller: Caller) -> Session:
    """The same, once it is known how it stands."""
    session = visible(registry, word, caller)
    await session.settled()
    return session


async def live(registry: Registry, word: str, caller: Caller) -> Session:
    """The same, and its keeper answers."""
    session = await found(registry, word, caller)
    if session.unreachable:
        await registry.connect(session)
    if not session.connected:
        how = "does not answer" if session.unreachable else f"is not running ({session.state})"
        raise HoldfastError("conflict", f"{session.name} {how}", f"hold status {session.name}")
    return session
