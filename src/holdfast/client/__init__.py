"""The SDK: `connect()` for programs, `aconnect()` for asyncio. Loaded by name, so that a quick command stays quick."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._async.host import AsyncHost as AsyncHost
    from ._async.host import AsyncSession as AsyncSession
    from ._async.host import aconnect as aconnect
    from ._sync.host import Host as Host
    from ._sync.host import Session as Session
    from ._sync.host import connect as connect
    from .types import ExecResult as ExecResult
    from .types import SessionStatus as SessionStatus
    from .types import WaitResult as WaitResult

_HOME_OF = {
    "AsyncHost": "_async.host",
    "AsyncSession": "_async.host",
    "aconnect": "_async.host",
    "Host": "_sync.host",
    "Session": "_sync.host",
    "connect": "_sync.host",
    "ExecResult": "types",
    "SessionStatus": "types",
    "WaitResult": "types",
}


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOME_OF:
        raise AttributeError(f"module 'holdfast.client' has no attribute {name!r}")
    return getattr(importlib.import_module("." + _HOME_OF[name], __name__), name)
