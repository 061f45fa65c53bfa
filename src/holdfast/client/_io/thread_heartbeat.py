"""What a blocking worker needs beside its calls: a heartbeat on a thread.

The twin for asyncio is async_heartbeat; the logic in work.py knows neither.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from concurrent.futures import wait
from types import FunctionType

from ...model.errors import HoldfastError
from ...model.work.effects import Fenced
from ..steps_under_way import UnderWay, Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from .._sync.host import Host

    T = TypeVar("T")

sleep = time.sleep


def invoke(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], step: object, unit: Unit) -> Any:
    """The user's function, with the step's context where it asks for it."""
    return fn(*args, **kwargs, **({"step": step} if wants_step(fn) else {}))


def attended(work: Callable[[Unit], T]) -> T:
    """Run a unit on the caller's own thread, which cannot leave before the end."""
    return work(Unit())


def over(step: UnderWay) -> None:
    """Wait for a step that another thread is doing."""
    step.ended.result()


def still(steps: list[UnderWay], timeout: float) -> list[UnderWay]:
    """Those that are under way after so many seconds."""
    wait([step.ended for step in steps], timeout)
    return [step for step in steps if not step.ended.done()]


def wants_step(fn: Callable[..., Any]) -> bool:
    if type(fn) is FunctionType and not fn.__dict__:  # nothing wrapped around it: its code tells, and costs nothing
        code = fn.__code__
        return "step" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return "step" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False  # a builtin that does not tell


def twin(host: Host) -> Host:
    """Another one with connections of its own: a host object serves one thread."""
    return type(host)(host.home.path, autostart=host.autostart, operator=host.operator)


def untwin(host: Host) -> None:
    host.close()


class Beat:
    """Renews a lease until it is stopped, lost, or its run is forgotten."""

    def __init__(self, run: object, renew: Callable[[], None], every_s: float, left: Callable[[], None]) -> None:
        self.lost: Fenced | None = None
        self._renew, self._every_s, self._left = renew, every_s, left
        self._stopped = threading.Event()
        weakref.finalize(run, self.stop)
        threading.Thread(target=self._loop, name="holdfast-lease", daemon=True).start()

    def _loop(self) -> None:
        while self.lost is None and not self._stopped.wait(self._every_s):
            try:
                self._renew()
            except Fenced as e:
                self.lost = e
            except HoldfastError:
                pass  # the host or the database is away: the next beat tries again, and the lease has room for two
        self._left()

    def stop(self) -> None:
        self._stopped.set()
