"""What keepers spooled goes into the journal: gathered for a moment, and without one when the host leaves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from holdfast.host.journal.journal import Journal
from holdfast.host.journal.spool_ingest import Ingest
from holdfast.host.sessions.session import Session
from holdfast.log.act_spool import Spool


class Kept:
    """The journal's side: what it was given."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def ingested(self, session: str) -> int:
        return len(self.events)

    async def ingest(self, session: str, name: str, events: list[dict[str, Any]]) -> None:
        self.events += events


async def test_a_host_that_leaves_takes_what_it_would_have_gathered_later(tmp_path: Path) -> None:
    Spool(str(tmp_path / "spool")).append({"kind": "signal"})
    ended = SimpleNamespace(
        id="ses_1", name="web", connected=False, folder=SimpleNamespace(spool=str(tmp_path / "spool")), manifest={}
    )
    kept = Kept()
    ingest = Ingest(cast(Journal, kept))
    ingest.later(cast(Session, ended), after_s=3600)
    await ingest.settled()
    assert [e["kind"] for e in kept.events] == ["signal"]
