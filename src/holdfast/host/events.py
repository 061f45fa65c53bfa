"""Who hears what happens to a session, in which order: one list.

Events are what a keeper tells (`exit`, `ended`, `controls`, `channels`, `resize`, `spooled`, …), and the host's own:
`linked`, `gone`, `renamed` and `removed`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sessions.session import Session

Json = dict[str, Any]
Listener = Callable[["Session", Json], None]
log = logging.getLogger("holdfast.host")

# The order, and what each needs of it. Those who keep a picture of the session come first: the later ones read it.
ORDER = (
    "screens",  # an emulator of the right size, before anything of its screen is judged
    "commands",  # what ran in it, and who had their hands on it
    "inbox",  # questions of a session that is gone end
    "journal",  # fetches what the keeper recorded, before a policy makes a new generation of it
    "policies",  # restarts and idle watches: they act on the session
    "session_sockets",  # of an isolated session: after `gone` nothing of it may ask any more
    "feed",  # last: a caller that is woken sees what all the others made of it
)


class SessionEvents:
    """Tells every listener, in ORDER. One that fails is logged and keeps no other from hearing."""

    def __init__(self) -> None:
        self._listeners: dict[str, Listener] = {}

    def listen(self, **listeners: Listener) -> None:
        """All of them, by the names in ORDER: a listener without a place is refused."""
        missing = set(ORDER) ^ set(listeners)
        if missing:
            raise ValueError(f"not the listeners of ORDER: {', '.join(sorted(missing))}")
        self._listeners = {name: listeners[name] for name in ORDER}

    def tell(self, session: Session, event: Json) -> None:
        for name, listener in self._listeners.items():
            try:
                listener(session, event)
            except Exception:
                log.exception("%s did not take %s of %s", name, event.get("event"), session.name)
