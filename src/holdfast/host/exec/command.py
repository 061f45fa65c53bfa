"""One exec: its record, what was read of its output, and its files beside the session's results."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from ...model.sessions.isolation import EXCHANGE
from ...system.atomic_files import write_new
from ..sessions.session import Session
from .marks import MARK_BYTES, MarkScanner
from .recent_output import Heard
from .results_file import Results, ended
from .shell_record import Record, read_record
from .shells.dialect import Wrapped

Json = dict[str, Any]

_FILES = (".sh", ".rec")
_PROBE_FILES = (".probe", ".probe.rec")


class Command:
    """What is kept of it is exactly its record; `update` and `finish` are all that changes it."""

    def __init__(self, session: Session, record: Json, results: Results) -> None:
        self.session, self.record, self._results = session, record, results
        self._made = time.monotonic()
        # Of one that an earlier host began, only the time of day is known.
        self._before_s = max(0.0, time.time() - record["started_at"]) if not ended(record) else 0.0
        self.scanner = MarkScanner(record["token"])
        self.scanned = int(record["from"])
        self.heard = Heard()
        self.unheard = True  # nothing has been read since it was typed
        self.changed = asyncio.Event()
        self.waker: asyncio.Future[None] | None = None  # its monitor's, while that waits
        self.task: asyncio.Task[None] | None = None
        self.watchers = 0
        self.probing = False
        self.touched = False  # others typed at this prompt, or may have: what they left there is not known
        self.abandoned = False  # it was given up with Ctrl-C
        self.typed = b""  # what makes the shell run it
        self.at = 0  # the keeper's count of inputs when that was typed
        self.answered_at, self.blocked_as = 0.0, ""
        self.suspected = ""  # what the last look took it for

    @property
    def id(self) -> str:
        return str(self.record["exec_id"])

    @property
    def file(self) -> str:
        """What its files are called: each letter of a path that is typed costs the shell's line editor 5 us."""
        return str(self.record.get("file") or self.id)

    @property
    def watched_s(self) -> float:
        """For how long this host has known it, by a clock that nobody sets."""
        return time.monotonic() - self._made

    @property
    def age_ms(self) -> int:
        """For how long it has run."""
        return int((self._before_s + self.watched_s) * 1000)

    @property
    def running(self) -> bool:
        return not ended(self.record)

    @property
    def next_at(self) -> int:
        """Output that grows past this may hold a mark. The first has to come whole: nobody is woken for less."""
        return self.scanned + MARK_BYTES - 1 if self.unheard else self.scanned

    def path(self, suffix: str) -> str:
        """A file that the shell reads or writes too: an isolated one has no more than these of our folder."""
        folder = self.session.folder
        return os.path.join(folder.exchange if self.session.isolated else folder.execs, self.file + suffix)

    def seen(self, suffix: str) -> str:
        """The same file's path, as the shell knows it."""
        return os.path.join(EXCHANGE, self.file + suffix) if self.session.isolated else self.path(suffix)

    def write(self, wrapped: Wrapped) -> None:
        """What the shell reads, and the file for what it writes: there already, so that nobody else may read it."""
        write_new(self.path(".rec"), b"")
        write_new(self.path(".sh"), wrapped.script)
        self.typed = wrapped.typed

    def never_ran(self) -> None:
        """Not a byte of it was typed: nobody shall take it for one that runs."""
        self.finish("shell_ended", None, int(self.record["from"]), None, void=True)
        self.clean()

    def begin_record(self) -> None:
        """Intent before effect: a restart finds the command even if this is all that is left of it."""
        self._results.add(self.record)

    def update(self, **facts: object) -> None:
        self.record.update(facts)
        self.changed.set()
        self.changed = asyncio.Event()
        if self.waker is not None and not self.waker.done():
            self.waker.set_result(None)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While somebody waits for it, the kernel is asked how it stands."""
        self.watchers += 1
        self.update()
        try:
            yield
        finally:
            self.watchers -= 1

    def finish(self, state: str, exit_code: int | None, end: int, cwd: str | None, *, void: bool = False) -> None:
        now = time.time()
        start = self.record["start"] if self.record["start"] is not None else end
        facts = {
            "state": state,
            "exit_code": exit_code,
            "start": start,
            "end": max(start, end),
            "cwd": cwd,
            "prompt": None,
            "duration_ms": self.age_ms,
            "ended_at": now,
            "void": void,
        }
        self._results.add({"exec_id": self.id, **facts})
        self.update(**facts)

    def shells_record(self) -> Record | None:
        """What the shell wrote of how it ended, if it has."""
        return read_record(self.path(".probe.rec" if self.probing else ".rec"))

    def clean(self) -> None:
        for suffix in (*_FILES, *(_PROBE_FILES if self.probing else ())):
            with contextlib.suppress(OSError):
                os.unlink(self.path(suffix))
