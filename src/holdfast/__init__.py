"""Holdfast: the execution-state continuity layer. `holdfast.connect()` for programs, `hold` for people.

Names are loaded on first use: a keeper and a quick command must not pay for the whole package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client._async.channel import AsyncChannel as AsyncChannel
    from .client._async.host import AsyncHost as AsyncHost
    from .client._async.host import aconnect as aconnect
    from .client._async.session import AsyncSession as AsyncSession
    from .client._async.work import AsyncRun as AsyncRun
    from .client._async.work import AsyncWork as AsyncWork
    from .client._sync.channel import Channel as Channel
    from .client._sync.host import Host as Host
    from .client._sync.host import connect as connect
    from .client._sync.session import Session as Session
    from .client._sync.work import Run as Run
    from .client._sync.work import Work as Work
    from .client.jobs import Jobs as Jobs
    from .client.types import Ask as Ask
    from .client.types import Chunk as Chunk
    from .client.types import ExecResult as ExecResult
    from .client.types import Port as Port
    from .client.types import Screen as Screen
    from .client.types import SessionStatus as SessionStatus
    from .client.types import WaitResult as WaitResult
    from .model.errors import HoldfastError as HoldfastError
    from .model.work.effects import Fenced as Fenced
    from .model.work.effects import StepInDoubt as StepInDoubt
    from .version import VERSION as __version__  # noqa: N811

# Where each public name is: what a program calls, and every type that a call returns.
_MODULE_OF = {
    **dict.fromkeys(("AsyncHost", "aconnect"), "client._async.host"),
    **dict.fromkeys(("Host", "connect"), "client._sync.host"),
    **dict.fromkeys(("Ask", "Chunk", "ExecResult", "Port", "Screen", "SessionStatus", "WaitResult"), "client.types"),
    **dict.fromkeys(("AsyncRun", "AsyncWork"), "client._async.work"),
    **dict.fromkeys(("Run", "Work"), "client._sync.work"),
    **dict.fromkeys(("Fenced", "StepInDoubt"), "model.work.effects"),
    "AsyncChannel": "client._async.channel",
    "AsyncSession": "client._async.session",
    "Channel": "client._sync.channel",
    "HoldfastError": "model.errors",
    "Jobs": "client.jobs",
    "Session": "client._sync.session",
}
__all__ = [*_MODULE_OF, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    import importlib

    if name == "__version__":
        return importlib.import_module(".version", __name__).VERSION
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(importlib.import_module("." + _MODULE_OF[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
