"""The SDK: `connect()` for programs, `aconnect()` for asyncio. Loaded by name, so that a quick command stays quick."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .aio import AsyncHost as AsyncHost, AsyncSession as AsyncSession, aconnect as aconnect
    from .sync import Host as Host, Session as Session, connect as connect
    from .types import ExecResult as ExecResult, SessionStatus as SessionStatus, WaitResult as WaitResult

_HOME_OF = {
    "AsyncHost": "aio", "AsyncSession": "aio", "aconnect": "aio", "Host": "sync", "Session": "sync", "connect": "sync",
    "ExecResult": "types", "SessionStatus": "types", "WaitResult": "types",
}  # fmt: skip


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOME_OF:
        raise AttributeError(f"module 'holdfast.client' has no attribute {name!r}")
    return getattr(importlib.import_module("." + _HOME_OF[name], __name__), name)
