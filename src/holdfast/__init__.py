"""Holdfast: the execution-state continuity layer. `holdfast.connect()` for programs, `hold` for people.

Names are loaded on first use: a keeper and a quick command must not pay for the whole package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client.aio import AsyncHost as AsyncHost
    from .client.aio import aconnect as aconnect
    from .client.channel import AsyncChannel as AsyncChannel
    from .client.channel_sync import Channel as Channel
    from .client.jobs import Jobs as Jobs
    from .client.session import AsyncSession as AsyncSession
    from .client.session_sync import Session as Session
    from .client.sync import Host as Host
    from .client.sync import connect as connect
    from .client.types import Ask as Ask
    from .client.types import Chunk as Chunk
    from .client.types import ExecResult as ExecResult
    from .client.types import Port as Port
    from .client.types import Screen as Screen
    from .client.types import SessionStatus as SessionStatus
    from .client.types import WaitResult as WaitResult
    from .client.work import AsyncRun as AsyncRun
    from .client.work import AsyncWork as AsyncWork
    from .client.work_sync import Run as Run
    from .client.work_sync import Work as Work
    from .model.errors import HoldfastError as HoldfastError
    from .model.work import Fenced as Fenced
    from .model.work import StepInDoubt as StepInDoubt
    from .version import VERSION as __version__  # noqa: N811

# Where each public name is: what a program calls, and every type that a call returns.
_MODULE_OF = {
    **dict.fromkeys(("AsyncHost", "aconnect"), "client.aio"),
    **dict.fromkeys(("Host", "connect"), "client.sync"),
    **dict.fromkeys(("Ask", "Chunk", "ExecResult", "Port", "Screen", "SessionStatus", "WaitResult"), "client.types"),
    **dict.fromkeys(("AsyncRun", "AsyncWork"), "client.work"),
    **dict.fromkeys(("Run", "Work"), "client.work_sync"),
    **dict.fromkeys(("Fenced", "StepInDoubt"), "model.work"),
    "AsyncChannel": "client.channel",
    "AsyncSession": "client.session",
    "Channel": "client.channel_sync",
    "HoldfastError": "model.errors",
    "Jobs": "client.jobs",
    "Session": "client.session_sync",
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
