"""Who hears a session event, in which order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.host import daemon
from holdfast.host.events import ORDER, SessionEvents
from holdfast.host.sessions.session import Session


def everyone(heard: list[str]) -> dict[str, Any]:
    def one(name: str) -> Any:
        return lambda session, event: heard.append(f"{name} {event['event']}")

    return {name: one(name) for name in reversed(ORDER)}


def test_the_order_is_the_list_s_and_not_that_of_the_daemon(session: Session) -> None:
    heard: list[str] = []
    events = SessionEvents()
    events.listen(**everyone(heard))
    events.tell(session, {"event": "gone"})
    assert heard == [
        "screens gone",
        "commands gone",
        "inbox gone",
        "journal gone",
        "policies gone",
        "session_sockets gone",
        "feed gone",
    ]


def test_a_listener_that_fails_keeps_no_other_from_hearing(session: Session) -> None:
    heard: list[str] = []
    events = SessionEvents()

    def fails(session: Session, event: Any) -> None:
        raise RuntimeError("full")

    events.listen(**{**everyone(heard), "inbox": fails})
    events.tell(session, {"event": "gone"})
    assert [line.split()[0] for line in heard] == [name for name in ORDER if name != "inbox"]


def test_a_listener_without_a_place_and_a_place_without_a_listener_are_refused() -> None:
    with pytest.raises(ValueError, match="other"):
        SessionEvents().listen(**{**everyone([]), "other": lambda session, event: None})
    with pytest.raises(ValueError, match="feed"):
        SessionEvents().listen(**{name: listener for name, listener in everyone([]).items() if name != "feed"})


def test_the_daemon_fills_every_place() -> None:
    source = Path(daemon.__file__).read_text()
    named = re.findall(
        r"^            (\w+)=", source[source.index("self.events.listen(") :].split("\n        )")[0], re.M
    )
    assert tuple(named) == ORDER
