"""Word of what changed, for whoever waits for it: which sessions there are, and what became of tasks.

Nothing is kept for a listener: it brings the mark of what it knows, and is answered once there is another. So one that
was away, or whose host was, misses nothing; and with nobody waiting nothing is done.
"""

from __future__ import annotations

import asyncio
import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .identity import Caller
    from .session import Session

_COMINGS = frozenset({"linked", "gone", "renamed", "removed"})  # events after which another list is told


class News:
    """`heard` and `worked` say that something may have changed; `mark` is how it stands, for one caller."""

    def __init__(self) -> None:
        self._life = os.urandom(8).hex()  # counts of an earlier host are not ours
        self._worked = 0
        self._event = asyncio.Event()

    def heard(self, event: object) -> None:
        if event in _COMINGS:
            self.stir()

    def worked(self) -> None:
        self._worked += 1
        self.stir()

    def stir(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def waiter(self) -> asyncio.Event:
        """Set at the next change from now on; taken before one looks, so that nothing falls between."""
        return self._event

    def tasks(self) -> str:
        return f"{self._life}:{self._worked}"


def sessions(found: Iterable[Session], caller: Caller) -> str:
    """The mark of the sessions that this caller may see: ids, names, and which of them live."""
    seen = sorted(f"{s.id} {s.name} {s.live}" for s in found if caller.may("view", s))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:32]
