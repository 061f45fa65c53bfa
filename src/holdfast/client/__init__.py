"""The SDK: `connect()` for programs, `aconnect()` for asyncio. Loaded by name, so that a quick command stays quick."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .aio import AsyncHost as AsyncHost
    from .aio import AsyncSession as AsyncSession
    from .aio import aconnect as aconnect
    from .sync import Host as Host
    from .sync import Session as Session
    from .sync import connect as connect
    from .types import ExecResult as ExecResult
    from .types import SessionStatus as SessionStatus
    from .types import WaitResult as WaitResult

_HOME_OF = {
    "AsyncHost": "aio",
    "AsyncSession": "aio",
    "aconnect": "aio",
    "Host": "sync",
    "Session": "sync",
    "connect": "sync",
    "ExecResult": "types",
    "SessionStatus": "types",
    "WaitResult": "types",
}


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOME_OF:
        raise AttributeError(f"module 'holdfast.client' has no attribute {name!r}")
    return getattr(importlib.import_module("." + _HOME_OF[name], __name__), name)
