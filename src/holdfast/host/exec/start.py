"""Running a command in a session's own shell: start it, wait for it, and say how it stands (docs/adr/0005).

One command at a time per session. It is watched beyond its caller's leaving (see `watching`); after a daemon's death
the next one picks it up from the record on disk and the marks in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from ...model import ids, limits
from ...model.errors import HoldfastError, invalid, not_found
from ...model.sessions.activity import SHELLS
from ...model.sessions.prompts import seen_at_prompt
from ...model.times import rfc3339
from ...system.process_tree import inner_pid
from ..observe.wait import SAMPLE_MAX_S
from ..sessions.session import Session
from . import kernel_cells
from . import outcome as outcomes
from .command import Command
from .monitor import BLOCKED, Watching, foreground
from .results_file import ended
from .shell_loading import READY_S, loading, patience
from .shells.wrap import abandon, wrap

Json = dict[str, Any]

_ABOUT_TO_BEGIN = "starting"  # what a session is busy with before the command has its record
_FILE_LETTERS = 8  # 40 bits, for the one or two commands of a session that have files at a time
_TURN_S = 2.0  # a kernel gets this long to be free after its last cell, also for a caller who does not want to wait


class Execs(Watching):
    """All commands that run or are remembered. `observe(session, quick)` looks at the kernel now."""

    def __init__(self, observe: Any) -> None:
        super().__init__(observe)
        self._turns = kernel_cells.Turns()
        self._checked: dict[str, int] = {}  # sessions whose commands on disk are known here, with the generation
        self._starting: set[str] = set()  # exec ids that were asked for and have no record yet

    # -- starting

    async def start(
        self,
        session: Session,
        source: bytes,
        actor: Json,
        typed: Callable[[Command], None],
        exec_id: str | None = None,
        why: str | None = None,
        *,
        step: bool = False,
        again: bool = False,
        timeout: float | None = None,
    ) -> Command:
        """`typed` is told of a command once the shell has it, also when whoever asked has left by then. With `again` an
        earlier try that typed nothing does not count: of such a command nobody was told that it never runs."""
        if not session.connected:
            raise HoldfastError("conflict", f"{session.name} is not running", f"hold restart {session.name}")
        if not session.terminal:
            raise invalid(
                f"{session.name} runs on pipes, it has no shell", "exec needs a terminal session with a shell"
            )
        if exec_id is not None and not _is_exec_id(exec_id):
            raise invalid(f"{str(exec_id)[:40]!r} is not an exec id", "leave it out and one is made")
        if b"\0" in source:
            raise invalid("a command cannot contain a NUL byte", "put it into a file")
        exec_id = exec_id or ids.new("exe_")
        if step and not again:
            outcomes.refuse_called_off(self._of(session), exec_id)
        before = self.record(session, exec_id)
        if exec_id in self._running or (before and not (again and outcomes.may_begin(before))):
            raise HoldfastError("conflict", f"{exec_id} was run already", "hold wait --for done=ID waits for it")
        if session.kind == "kernel":
            return await self._in_turn(session, source, actor, typed, exec_id, why, timeout)
        self._refuse_if_busy(session)
        with self._reserved(session, exec_id):
            return await self._begin(session, source, actor, typed, exec_id, why, timeout)

    @contextlib.contextmanager
    def _reserved(self, session: Session, exec_id: str) -> Iterator[None]:
        session.busy_exec = _ABOUT_TO_BEGIN
        self._starting.add(exec_id)
        try:
            yield
        finally:
            self._starting.discard(exec_id)
            if session.busy_exec == _ABOUT_TO_BEGIN:
                session.busy_exec = None

    async def _in_turn(
        self,
        session: Session,
        source: bytes,
        actor: Json,
        typed: Callable[[Command], None],
        exec_id: str,
        why: str | None,
        timeout: float | None,
    ) -> Command:
        """In a kernel executions queue: this one begins when those before it have ended and the kernel is idle."""
        deadline = None if timeout is None else time.monotonic() + max(timeout, _TURN_S)
        async with self._turns.turn(session, deadline):
            self._unfinished(session)  # those that another daemon began go on under this one
            while before := next((c for c in self._running.values() if c.session is session and c.task), None):
                assert before.task is not None
                with before.watched():
                    await kernel_cells.in_time(asyncio.wait([before.task]), session, deadline)
            with self._reserved(session, exec_id):
                prompt = await kernel_cells.idle(session, self._observe, deadline)
                command = self._prepare(session, prompt, source, actor, exec_id)
                await asyncio.shield(self._give(command, actor, None, why, typed))
                return command

    def _refuse_if_busy(self, session: Session) -> None:
        busy = session.busy_exec or next((c.id for c in self._unfinished(session)), None)
        if busy == _ABOUT_TO_BEGIN:
            raise HoldfastError(
                "busy",
                f"another command waits for the prompt in {session.name}",
                f"try again once that has begun; what keeps it waiting: hold ps {session.name}",
            )
        if busy is not None:
            raise HoldfastError(
                "busy",
                f"{session.name} is still running {busy}",
                f"hold wait {session.name} --for done={busy}, or send Ctrl-C: hold send {session.name} --key C-c",
            )

    async def _begin(
        self,
        session: Session,
        source: bytes,
        actor: Json,
        typed: Callable[[Command], None],
        exec_id: str,
        why: str | None,
        timeout: float | None,
    ) -> Command:
        """Where the last exec left the shell at its prompt, the keeper itself sees whether it is still there."""
        if session.prompt is not None:
            command = self._prepare(session, session.prompt, source, actor, exec_id)
            if await asyncio.shield(self._give(command, actor, session.prompt, why, typed)):
                return command
            session.prompt = None
        prompt = await self._at_prompt(session, timeout)
        command = self._prepare(session, prompt, source, actor, exec_id)
        if prompt["midline"]:  # somebody is in the middle of a line, a search or a menu
            command.typed = abandon(prompt["shell"]) + command.typed
            command.abandoned = True
        await asyncio.shield(self._give(command, actor, None, why, typed))
        session.prompt = prompt
        return command

    async def _give(
        self, command: Command, actor: Json, prompt: Json | None, why: str | None, typed: Callable[[Command], None]
    ) -> bool:
        """Type it and watch it, or know that it never ran: nothing in between, whoever leaves meanwhile."""
        if not await self._type(command, actor, prompt, why):
            command.never_ran()
            return False
        typed(command)
        return True

    async def _at_prompt(self, session: Session, timeout: float | None) -> Json:
        """Wait until a shell reads the terminal; which shell it is, its own pid, what to know it again by."""
        began, delay = time.monotonic(), 0.002
        while session.connected:
            sample, activity = await self._observe(session, True)
            name, pid = foreground(sample)
            if activity.at_shell:
                shell = name if name in ("bash", "zsh", "fish") else "sh"
                return {
                    "shell": shell,
                    "pid": inner_pid(pid),
                    "seen": seen_at_prompt(sample["facts"]),
                    "typed": 0,
                    "midline": bool(sample.get("midline")),
                    "touched": sample.get("typed", 0) != session.typed_by_exec,
                }
            young = name in SHELLS and sample["facts"]["tty"]["foreground_pgid"] == pid
            young = young or _starting(session)  # what its start-up files run is in the foreground for a moment
            words: list[str] = session.manifest["command"]
            enough = patience(words, sample, activity.kind, young, timeout)
            if enough is not None and time.monotonic() - began > enough:
                if loading(words, sample, activity.kind):
                    raise HoldfastError(
                        "busy",
                        f"the shell in {session.name} is still loading its start-up files",
                        f"give it more time (--timeout), or see what it does: hold ps {session.name}",
                    )
                what = f"{name} ({pid})" if name else "a program"
                raise HoldfastError(
                    "busy",
                    f"no shell is at its prompt in {session.name}: {what} is in the foreground",
                    "exec needs a shell; wait for it, or use hold send",
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await session.line.grown(sample["output"]["end"])
            delay = min(delay * 2, SAMPLE_MAX_S)
        how = "does not answer" if session.unreachable else "has ended"
        raise HoldfastError("conflict", f"{session.name} {how}", f"hold status {session.name}")

    def _prepare(self, session: Session, prompt: Json, source: bytes, actor: Json, exec_id: str) -> Command:
        """The command's files and its record: all that comes before the shell hears of it."""
        token, shell = os.urandom(16).hex(), str(prompt["shell"])
        record = {
            "exec_id": exec_id,
            "token": token,
            "shell": shell,
            "shell_pid": prompt["pid"],
            "state": "running",
            "exit_code": None,
            "from": session.line.end,
            "start": None,
            "end": None,
            "cwd": None,
            "prompt": None,
            "duration_ms": 0,
            "started_at": time.time(),
            "operator": actor["operator"],
            "generation": session.manifest["generation"],
            "actor": actor,
            "void": False,
            "source": source[: limits.JOURNAL_TEXT_MAX].decode("utf-8", "replace"),
        }
        if session.kind != "kernel":  # there the recorder is told the id alone
            record["file"] = ids.new("", _FILE_LETTERS)
        command = Command(session, record, self._of(session))
        wrapped = (
            kernel_cells.wrap(command, source)
            if session.kind == "kernel"
            else wrap(
                shell,
                token=token,
                source=source,
                script=command.seen(".sh"),
                record=command.seen(".rec"),
                env=_refreshed(session),
            )
        )
        command.touched = bool(prompt["touched"])
        command.begin_record()
        try:
            command.write(wrapped)
        except OSError:
            command.never_ran()
            raise
        return command

    async def _type(self, command: Command, actor: Json, prompt: Json | None, why: str | None) -> bool:
        session = command.session
        try:
            told = await session.line.input(
                command.typed,
                actor,
                command.id,
                prompt,
                watch=command.next_at,
                what="exec",
                exec_id=command.id,
                why=why,
            )
        except HoldfastError as e:
            if prompt is None or e.code != "unsupported":
                command.never_ran()
                raise
            return False  # an older keeper
        if prompt is not None and not told["typed"]:
            return False
        command.at = session.typed_by_exec = told.get("typed", 0)
        command.record["epoch"] = told["epoch"]
        self._watch(command)
        return True

    # -- results

    async def wait(self, command: Command, timeout: float | None, *, until_done: bool = False) -> Json:
        """Until it ends or blocks on a person, or the time is up; the record as it is then."""
        # Blocked when last seen; whoever asks again has perhaps answered it. The next sample tells.
        if command.record["state"] in BLOCKED:
            command.answered_at, command.blocked_as = time.monotonic(), command.record["state"]
            command.record["state"] = "running"
        with command.watched(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while command.record["state"] == "running" or (until_done and command.running):
                    await command.changed.wait()
        return self.result(command)

    def result(self, command: Command) -> Json:
        r = command.record
        end = r["end"]
        if end is None:
            end = command.session.end
        return {
            "exec_id": r["exec_id"],
            "state": r["state"],
            "exit_code": r["exit_code"],
            "start": r["start"],
            "end": end,
            "duration_ms": command.age_ms if command.running else r["duration_ms"],
            "cwd": r["cwd"],
            "prompt": r["prompt"],
        }

    def outcome(self, session: Session, exec_id: str, since: str) -> Json:
        """How it ended, for whoever has to say what became of it; what never began never will from here on."""
        if not _is_exec_id(exec_id):
            raise invalid(f"{exec_id[:40]!r} is not an exec id", "exec ids come from hold exec --json")
        if exec_id in self._starting:
            return {"known": "running", "exec_id": exec_id}
        try:
            command = self.find(session, exec_id)
        except HoldfastError:
            sure = session.connected and str(rfc3339(session.manifest["started_at"])) <= since
            return outcomes.call_off(self._of(session), exec_id, session.manifest["generation"], time.time(), sure)
        return {"known": outcomes.known(command.record), **self.result(command)}

    def record(self, session: Session, exec_id: str) -> Json | None:
        """What is on disk about a command, if anything."""
        return self._of(session).get(exec_id)

    async def void(self, session: Session, record: Json) -> None:
        """The host that began it died before it typed it."""
        command = self._running.get(record["exec_id"]) or Command(session, record, self._of(session))
        command.never_ran()
        if command.task is not None:
            await asyncio.wait({command.task})  # it is watched already, because somebody asked how it stands

    def find(self, session: Session, exec_id: str) -> Command:
        command = self._running.get(exec_id)
        if command is not None and command.session is session:
            return command
        record = self._of(session).get(exec_id)
        if record is None:
            raise not_found(f"{session.name} has no command {exec_id[:40]!r}", "exec ids come from hold exec --json")
        command = Command(session, record, self._of(session))
        if command.running:
            self._revive(command)
        return command

    def _revive(self, command: Command) -> None:
        """A command that was running when the last daemon died: go on watching, or say how it ended."""
        if command.record["generation"] != command.session.manifest["generation"]:
            command.finish("shell_ended", None, command.record["start"] or command.record["from"], None)
            return
        self._scan(command)
        if command.running and not command.session.live:
            self._shell_ended(command)
        elif command.running:
            command.record["state"] = "running"
            self._watch(command)

    def _unfinished(self, session: Session) -> list[Command]:
        """Commands on disk that still run: only after a daemon's death are there any that we do not know."""
        if self._checked.get(session.id) == session.manifest["generation"]:
            return []
        known = self._of(session).all()
        out = [c for c in (self.find(session, name) for name, r in known.items() if not ended(r)) if c.running]
        self._checked[session.id] = session.manifest["generation"]
        return out

    async def done(self, session: Session, exec_id: str) -> tuple[str, int, Json]:
        command = self.find(session, exec_id)
        result = await self.wait(command, None, until_done=True)
        return "done", int(result["end"]), result

    def heard(self, session: Session, event: Json) -> None:
        if event.get("event") == "gone":
            self._checked.pop(session.id, None)
            session.prompt, session.typed_by_exec = None, 0
            self._results.pop(session.id, None)


def _is_exec_id(text: object) -> bool:
    # It becomes a file's name.
    return isinstance(text, str) and text.startswith("exe_") and text[4:].isalnum() and len(text) <= 40


def _starting(session: Session) -> bool:
    """Whether it is a shell that was started just now."""
    program = os.path.basename(str(session.manifest["command"][0]))
    interactive = len(session.manifest["command"]) == 1
    ago = time.time() - session.manifest["started_at"]  # below 0 where the clock was set back: then it is not known
    return interactive and program in SHELLS and 0 <= ago < READY_S


def _refreshed(session: Session) -> dict[bytes, bytes]:
    """What follows the latest controller and no link can carry: a display reached over the network."""
    display = session.notes.display
    return {b"DISPLAY": os.fsencode(display)} if display else {}
