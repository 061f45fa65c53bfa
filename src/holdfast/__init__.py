"""Holdfast: the execution-state continuity layer. `holdfast.connect()` for programs, `hold` for people.

Names are loaded on first use: a keeper and a quick command must not pay for the whole package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client import (
        AsyncHost as AsyncHost,
    )
    from .client import (
        AsyncSession as AsyncSession,
    )
    from .client import (
        ExecResult as ExecResult,
    )
    from .client import (
        Host as Host,
    )
    from .client import (
        Session as Session,
    )
    from .client import (
        aconnect as aconnect,
    )
    from .client import (
        connect as connect,
    )
    from .client.jobs import Jobs as Jobs
    from .model.errors import HoldfastError as HoldfastError
    from .model.work import Fenced as Fenced
    from .model.work import StepInDoubt as StepInDoubt
    from .version import VERSION as __version__  # noqa: N811

_HOME_OF = {
    "connect": "client", "aconnect": "client", "Host": "client", "AsyncHost": "client", "Session": "client",
    "AsyncSession": "client", "ExecResult": "client", "HoldfastError": "model.errors",
    "Jobs": "client.jobs", "Fenced": "model.work", "StepInDoubt": "model.work",
}  # fmt: skip
__all__ = [*_HOME_OF, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    import importlib

    if name == "__version__":
        return importlib.import_module(".version", __name__).VERSION
    if name not in _HOME_OF:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(importlib.import_module("." + _HOME_OF[name], __name__), name)
