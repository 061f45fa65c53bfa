"""Running a command in a session's own shell: start it, see it end, and keep its record (docs/adr/0005).

One command at a time per session. The monitor lives on when its caller leaves; after a daemon's death the next
one picks it up from the record on disk and the marks in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import Any

from ...model import ids, limits
from ...model.activity import SHELLS, Activity
from ...model.errors import HoldfastError, invalid, not_found
from ...model.isolation import EXCHANGE
from ...system.files import read_json, write_new, write_new_json
from ...system.tree import inner_pid
from ..session import Session
from ..waits import SAMPLE_FIRST_S, SAMPLE_MAX_S
from .marks import MarkScanner
from .record import read_record
from .wrap import probe, wrap

Json = dict[str, Any]

_READY_S = 10.0  # a shell may load its start-up files for so long before its first prompt
_FREE_S = 0.5  # a command that is just ending gets this long to give the prompt back
_PROMPT_SEEN = 2  # samples in a row that must find the prompt before an end without marks is believed
_ANSWER_S = 1.0  # who asks again for a blocked command has usually answered it: it gets this long to go on
_LOST_LINE_S = 5.0  # the typed line has this long to show its begin mark
_BLOCKED = ("waiting_for_input", "waiting_for_secret", "full_screen")


class Command:
    """One exec: what is kept of it is exactly its record file."""

    def __init__(self, session: Session, record: Json) -> None:
        self.session, self.record = session, record
        self.scanner = MarkScanner(record["token"])
        self.scanned = int(record["from"])
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.watchers = 0
        self.probing = False
        self.answered_at, self.blocked_as = 0.0, ""

    @property
    def id(self) -> str:
        return str(self.record["exec_id"])

    @property
    def running(self) -> bool:
        return self.record["state"] not in ("exited", "shell_ended")

    def path(self, suffix: str) -> str:
        return os.path.join(self.session.folder.execs, self.id + suffix)

    def shared(self, suffix: str) -> str:
        """A file that the shell reads or writes too: an isolated one has no more than these of our folder."""
        folder = self.session.folder
        return os.path.join(folder.exchange if self.session.isolated else folder.execs, self.id + suffix)

    def seen(self, suffix: str) -> str:
        """The same file's path, as the shell knows it."""
        return os.path.join(EXCHANGE, self.id + suffix) if self.session.isolated else self.shared(suffix)

    def begin_record(self) -> None:
        """Intent before effect: a restart finds the command even if this is all that is left of it."""
        write_new_json(self.path(".json"), self.record)

    def end_record(self) -> None:
        """A file of its own: replacing one makes the file system wait for the disk."""
        write_new_json(self.path(".done.json"), self.record)

    def update(self, **facts: object) -> None:
        self.record.update(facts)
        self.changed.set()
        self.changed = asyncio.Event()

    def finish(self, state: str, exit_code: int | None, end: int, cwd: str | None) -> None:
        now = time.time()
        start = self.record["start"] if self.record["start"] is not None else end
        self.update(
            state=state, exit_code=exit_code, start=start, end=max(start, end), cwd=cwd, prompt=None,
            duration_ms=int((now - self.record["started_at"]) * 1000), ended_at=now,
        )  # fmt: skip
        self.end_record()

    def clean(self) -> None:
        for path in (self.path(".json"), *map(self.shared, (".sh", ".rec", ".probe", ".probe.rec"))):
            with contextlib.suppress(OSError):
                os.unlink(path)


class Execs:
    """All commands that run or are remembered. `observe(session, quick)` looks at the kernel now."""

    def __init__(self, observe: Any) -> None:
        self._observe = observe
        self._running: dict[str, Command] = {}

    # -- starting

    async def start(
        self, session: Session, source: bytes, actor: Json, exec_id: str | None = None, why: str | None = None
    ) -> Command:
        if not session.live or session.link is None:
            raise HoldfastError("conflict", f"{session.name} is not running", f"hold restart {session.name}")
        if session.kind != "terminal":
            raise invalid(
                f"{session.name} runs on pipes, it has no shell", "exec needs a terminal session with a shell"
            )
        if exec_id is not None and not _is_exec_id(exec_id):
            raise invalid(f"{exec_id[:40]!r} is not an exec id", "leave it out and one is made")
        if b"\0" in source:
            raise invalid("a command cannot contain a NUL byte", "put it into a file")
        self._refuse_if_busy(session)
        session.busy_exec = "starting"
        try:
            shell, pid = await self._at_prompt(session)
            return await self._type(session, shell, pid, source, actor, exec_id or ids.new("exe_"), why)
        finally:
            if session.busy_exec == "starting":
                session.busy_exec = None

    def _refuse_if_busy(self, session: Session) -> None:
        busy = session.busy_exec or next((c.id for c in self._unfinished(session)), None)
        if busy is not None:
            raise HoldfastError(
                "busy", f"{session.name} is still running {busy}",
                f"hold wait {session.name} --for done={busy}, or send Ctrl-C: hold send {session.name} --key C-c",
            )  # fmt: skip

    async def _at_prompt(self, session: Session) -> tuple[str, int]:
        """Wait until a shell reads the terminal; which shell it is, and its pid."""
        began, delay = time.monotonic(), 0.002
        while session.link is not None:
            sample, activity = await self._observe(session, True)
            name, pid = _foreground(sample)
            if activity.kind == "at_prompt":
                return name if name in ("bash", "zsh", "fish") else "sh", pid
            young = name in SHELLS and sample["facts"]["tty"]["foreground_pgid"] == pid
            if time.monotonic() - began > (_READY_S if young else _FREE_S):
                what = f"{name} ({pid})" if name else "a program"
                raise HoldfastError(
                    "busy", f"no shell is at its prompt in {session.name}: {what} is in the foreground",
                    "exec needs a shell; wait for it, or use hold send",
                )  # fmt: skip
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await session.link.grown(sample["output"]["end"])
            delay = min(delay * 2, SAMPLE_MAX_S)
        raise HoldfastError("conflict", f"{session.name} has ended", f"hold restart {session.name}")

    async def _type(
        self, session: Session, shell: str, pid: int, source: bytes, actor: Json, exec_id: str, why: str | None
    ) -> Command:
        assert session.link is not None
        token = os.urandom(16).hex()
        record = {
            "exec_id": exec_id, "token": token, "shell": shell, "shell_pid": inner_pid(pid), "state": "running",
            "exit_code": None, "from": session.link.end, "start": None, "end": None, "cwd": None, "prompt": None,
            "duration_ms": 0, "started_at": time.time(), "operator": actor["operator"],
            "generation": session.manifest["generation"], "actor": actor,
            "source": source[: limits.JOURNAL_TEXT_MAX].decode("utf-8", "replace"),
        }  # fmt: skip
        command = Command(session, record)
        wrapped = wrap(
            shell, token=token, source=source, script=command.seen(".sh"), record=command.seen(".rec"),
            env=_refreshed(session),
        )  # fmt: skip
        write_new(command.shared(".sh"), wrapped.script)
        command.begin_record()
        typed = await session.link.input(wrapped.typed, actor, hold=exec_id, what="exec", exec_id=exec_id, why=why)
        record["epoch"] = typed["epoch"]
        self._watch(command)
        self._prune(session)
        return command

    def _watch(self, command: Command) -> None:
        self._running[command.id] = command
        command.session.busy_exec = command.id
        command.task = asyncio.get_running_loop().create_task(self._monitor(command))

    # -- watching

    async def _monitor(self, command: Command) -> None:
        try:
            await self._until_end(command)
        finally:
            self._running.pop(command.id, None)
            session = command.session
            if session.busy_exec == command.id:
                session.busy_exec = None
            if session.link is not None and not command.running:
                with contextlib.suppress(HoldfastError):
                    await session.link.act("drop", hold=command.id)
            if not command.running:
                command.clean()

    async def _until_end(self, command: Command) -> None:
        """Read marks as output grows; sample the kernel only while somebody waits and no mark has come."""
        session = command.session
        delay, seen_prompt = SAMPLE_FIRST_S, 0
        sampled_at = time.monotonic()
        while command.running:
            self._scan(command)
            if not command.running:
                return
            if session.link is None:
                self._shell_ended(command)
                return
            link, before = session.link, command.scanned
            wait_s = delay if command.watchers and command.record["state"] == "running" else None
            try:
                async with asyncio.timeout(wait_s):
                    await self._grown_or_changed(session, link, command)
            except TimeoutError:
                pass
            if session.exit is not None and session.exit.get("known"):
                self._scan(command)
                if command.running:
                    self._shell_ended(command)
                return
            if link.end > before:
                delay = SAMPLE_FIRST_S
                if command.record["state"] in _BLOCKED:
                    command.update(state="running", prompt=None)
                if time.monotonic() - sampled_at < SAMPLE_MAX_S:
                    continue
            if command.watchers and command.record["state"] == "running" and session.link is not None:
                self._scan(command)
                if not command.running:
                    return
                sampled_at = time.monotonic()
                seen_prompt = await self._look(command, seen_prompt)
                delay = min(delay * 2, SAMPLE_MAX_S)

    async def _grown_or_changed(self, session: Session, link: Any, command: Command) -> None:
        """Until output, a change of the session, or of who watches this command."""
        loop = asyncio.get_running_loop()
        waits = {
            loop.create_task(link.grown(command.scanned)),
            loop.create_task(session.changed.wait()),
            loop.create_task(command.changed.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    def _scan(self, command: Command) -> None:
        """Look for this command's marks in what was printed since."""
        session = command.session
        end = max(session.link.end if session.link else 0, session.reader.bounds()[1])
        for piece in session.reader.pieces(command.scanned, end):
            command.scanned = piece.end
            if piece.data is None:
                continue
            for mark in command.scanner.feed(piece.offset, piece.data):
                if mark.kind == "b" and command.record["start"] is None:
                    command.update(start=mark.end)
                elif mark.kind == "e":
                    self._ended(command, mark.start)
                    return

    def _ended(self, command: Command, end: int) -> None:
        found = read_record(command.shared(".probe.rec" if command.probing else ".rec"))
        code, cwd = (found.exit_code, os.fsdecode(found.cwd) if found.cwd else None) if found else (None, None)
        if not command.probing:
            command.finish("exited", code, end, cwd)
            return
        # The shell came back to a prompt without our hook: it was replaced (same pid) or it was a nested one.
        same = found is not None and found.pid == command.record["shell_pid"]
        command.finish("exited" if same else "shell_ended", code, command.record["probe_end"], cwd)

    def _shell_ended(self, command: Command) -> None:
        exit_record = command.session.exit or {}
        code = exit_record.get("code")
        if code is None and exit_record.get("signal"):
            import signal

            code = 128 + int(getattr(signal, exit_record["signal"]))
        command.finish("shell_ended", code, command.session.reader.bounds()[1], None)

    async def _look(self, command: Command, seen_prompt: int) -> int:
        """One sample: blocked on a person, or back at the prompt without a mark?"""
        session = command.session
        try:
            sample, activity = await self._observe(session, False)
        except HoldfastError:
            return 0
        if activity.kind in _BLOCKED:
            if activity.kind == command.blocked_as and time.monotonic() - command.answered_at < _ANSWER_S:
                return 0  # perhaps it was answered just now and has not got to it
            command.update(state=activity.kind, prompt=activity.prompt)
            return 0
        if activity.kind != "at_prompt":
            return 0
        waited = time.time() - command.record["started_at"]
        if command.record["start"] is None and waited < _LOST_LINE_S:
            return 0
        if seen_prompt + 1 < _PROMPT_SEEN:
            return seen_prompt + 1
        self._scan(command)
        if command.running and not command.probing:
            await self._probe(command, sample, activity)
        return 0

    async def _probe(self, command: Command, sample: Json, activity: Activity) -> None:
        session = command.session
        if command.record["start"] is None:
            command.finish("shell_ended", None, session.reader.bounds()[1], None)
            return
        name, _ = _foreground(sample)
        shell = name if name in ("bash", "zsh", "fish") else "sh"
        command.probing = True
        command.record["probe_end"] = self._before_prompt(command, sample["output"]["end"])
        wrapped = probe(
            shell,
            token=command.record["token"],
            script=command.seen(".probe"),
            record=command.seen(".probe.rec"),
        )
        write_new(command.shared(".probe"), wrapped.script)
        assert session.link is not None
        # A record of an older host has no kind: the least of them takes nothing from anybody.
        actor = command.record.get("actor") or {"operator": command.record["operator"], "kind": "agent", "name": ""}
        await session.link.input(wrapped.typed, actor, hold=command.id, what="exec", exec_id=command.id)

    def _before_prompt(self, command: Command, end: int) -> int:
        """Where the output ended and the new prompt began: after the last line end."""
        start = int(command.record["start"])
        tail_from = max(start, end - 8192)
        data = b"".join(p.data for p in command.session.reader.pieces(tail_from, end) if p.data)
        cut = data.rfind(b"\n")
        return tail_from + cut + 1 if cut >= 0 else start

    # -- results

    async def wait(self, command: Command, timeout: float | None, *, until_done: bool = False) -> Json:
        """Until it ends or blocks on a person, or the time is up; the record as it is then."""
        command.watchers += 1
        # Blocked when last seen; whoever asks again has perhaps answered it. The next sample tells.
        if command.record["state"] in _BLOCKED:
            command.answered_at, command.blocked_as = time.monotonic(), command.record["state"]
            command.record["state"] = "running"
        command.update()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    while command.record["state"] == "running" or (until_done and command.running):
                        await command.changed.wait()
        finally:
            command.watchers -= 1
        return self.result(command)

    def result(self, command: Command) -> Json:
        r = command.record
        running_ms = int((time.time() - r["started_at"]) * 1000)
        end = r["end"]
        if end is None:
            end = command.session.link.end if command.session.link else command.session.reader.bounds()[1]
        return {
            "exec_id": r["exec_id"], "state": r["state"], "exit_code": r["exit_code"], "start": r["start"], "end": end,
            "duration_ms": running_ms if command.running else r["duration_ms"], "cwd": r["cwd"], "prompt": r["prompt"],
        }  # fmt: skip

    def find(self, session: Session, exec_id: str) -> Command:
        command = self._running.get(exec_id)
        if command is not None and command.session is session:
            return command
        record = None
        if _is_exec_id(exec_id):
            path = os.path.join(session.folder.execs, exec_id)
            record = read_json(path + ".done.json") or read_json(path + ".json")
        if record is None:
            raise not_found(f"{session.name} has no command {exec_id[:40]!r}", "exec ids come from hold exec --json")
        command = Command(session, record)
        if command.running:
            self._revive(command)
        return command

    def _revive(self, command: Command) -> None:
        """A command that was running when the last daemon died: go on watching, or say how it ended."""
        if command.record["generation"] != command.session.manifest["generation"]:
            command.finish("shell_ended", None, command.record["start"] or command.record["from"], None)
            return
        self._scan(command)
        if command.running and command.session.link is None:
            self._shell_ended(command)
        elif command.running:
            command.record["state"] = "running"
            self._watch(command)

    def _unfinished(self, session: Session) -> list[Command]:
        """Commands on disk that still run: only after a daemon's death are there any that we do not know."""
        if session.state_file.get("execs_checked") == session.manifest["generation"]:
            return []
        out = []
        for name in os.listdir(session.folder.execs):
            if name.endswith(".json") and not name.endswith(".done.json"):
                command = self.find(session, name[:-5])
                if command.running:
                    out.append(command)
        session.state_file["execs_checked"] = session.manifest["generation"]
        return out

    async def done(self, session: Session, exec_id: str) -> tuple[str, int, Json]:
        command = self.find(session, exec_id)
        result = await self.wait(command, None, until_done=True)
        return "done", int(result["end"]), result

    def heard(self, session: Session, event: Json) -> None:
        if event.get("event") == "gone":
            session.state_file.pop("execs_checked", None)

    def _prune(self, session: Session) -> None:
        names = [n for n in os.listdir(session.folder.execs) if n.endswith(".done.json")]
        if len(names) <= limits.EXECS_KEPT * 2:  # in batches: one listing and sort per 200 commands
            return
        paths = sorted((os.path.join(session.folder.execs, n) for n in names), key=os.path.getmtime)
        for path in paths[: -limits.EXECS_KEPT]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _is_exec_id(text: str) -> bool:
    return text.startswith("exe_") and text[4:].isalnum() and len(text) <= 40  # it becomes a file's name


def _foreground(sample: Json) -> tuple[str, int]:
    """Name and pid of the foreground group's leader, as far as it is there."""
    facts = sample.get("facts") or {}
    group = int(facts.get("tty", {}).get("foreground_pgid") or 0)
    for thread in facts.get("threads", []):
        if thread["pid"] == group:
            return str(thread["comm"]), group
    return "", group


def _refreshed(session: Session) -> dict[bytes, bytes]:
    """What follows the latest controller and no link can carry: a display reached over the network."""
    display = session.state_file.get("display")
    return {b"DISPLAY": os.fsencode(str(display))} if display else {}
