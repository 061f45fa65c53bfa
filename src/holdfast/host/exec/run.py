"""Running a command in a session's own shell: start it, see it end, and keep its record (docs/adr/0005).

One command at a time per session. The monitor lives on when its caller leaves; after a daemon's death the next
one picks it up from the record on disk and the marks in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from ...model import ids, limits
from ...model.activity import SHELLS
from ...model.errors import HoldfastError, invalid, not_found
from ...model.prompts import seen_at_prompt
from ...model.times import rfc3339
from ...system.files import write_new
from ...system.tree import inner_pid
from ..session import Session
from ..waits import SAMPLE_FIRST_S, SAMPLE_MAX_S
from . import cells, outcomes
from .command import Command
from .results import Results, ended
from .wrap import abandon, probe, wrap

Json = dict[str, Any]

_READY_S = 10.0  # a shell may load its start-up files for so long before its first prompt
_FREE_S = 0.5  # a command that is just ending gets this long to give the prompt back
_PROMPT_SEEN = 2  # samples in a row that must find the prompt before an end without marks is believed
_ANSWER_S = 1.0  # who asks again for a blocked command has usually answered it: it gets this long to go on
_LOST_LINE_S = 5.0  # the typed line has this long to show its begin mark
_TURN_S = 2.0  # a kernel gets this long to be free after its last cell, also for a caller who does not want to wait
_BLOCKED = ("waiting_for_input", "waiting_for_secret", "full_screen")


class Execs:
    """All commands that run or are remembered. `observe(session, quick)` looks at the kernel now."""

    def __init__(self, observe: Any) -> None:
        self._observe = observe
        self._running: dict[str, Command] = {}
        self._results: dict[str, Results] = {}
        self._turns = cells.Turns()
        self._starting: set[str] = set()  # exec ids that were asked for and have no record yet

    def _of(self, session: Session) -> Results:
        found = self._results.get(session.id)
        if found is None:
            found = self._results[session.id] = Results(session.folder.execs)
        return found

    # -- starting

    async def start(
        self, session: Session, source: bytes, actor: Json, typed: Callable[[Command], None],
        exec_id: str | None = None, why: str | None = None, *, step: bool = False, timeout: float | None = None,
    ) -> Command:  # fmt: skip
        """`typed` is told of a command once the shell has it, also when whoever asked has left by then."""
        if not session.live or session.link is None:
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
        if step:
            outcomes.refuse_called_off(self._of(session), exec_id)
        if exec_id in self._running or self._of(session).get(exec_id) is not None:
            raise HoldfastError("conflict", f"{exec_id} was run already", "hold wait --for done=ID waits for it")
        if session.kind == "kernel":
            return await self._in_turn(session, source, actor, typed, exec_id, why, timeout)
        self._refuse_if_busy(session)
        with self._reserved(session, exec_id):
            return await self._begin(session, source, actor, typed, exec_id, why)

    @contextlib.contextmanager
    def _reserved(self, session: Session, exec_id: str) -> Iterator[None]:
        session.busy_exec = "starting"
        self._starting.add(exec_id)
        try:
            yield
        finally:
            self._starting.discard(exec_id)
            if session.busy_exec == "starting":
                session.busy_exec = None

    async def _in_turn(
        self, session: Session, source: bytes, actor: Json, typed: Callable[[Command], None], exec_id: str,
        why: str | None, timeout: float | None,
    ) -> Command:  # fmt: skip
        """In a kernel executions queue: this one begins when those before it have ended and the kernel is idle."""
        deadline = None if timeout is None else time.monotonic() + max(timeout, _TURN_S)
        async with self._turns.turn(session, deadline):
            self._unfinished(session)  # those that another daemon began go on under this one
            while before := next((c for c in self._running.values() if c.session is session and c.task), None):
                assert before.task is not None
                with before.watched():
                    await cells.in_time(asyncio.wait([before.task]), session, deadline)
            with self._reserved(session, exec_id):
                prompt = await cells.idle(session, self._observe, deadline)
                command = self._prepare(session, prompt, source, actor, exec_id)
                await asyncio.shield(self._give(command, actor, None, why, typed))
                return command

    def _refuse_if_busy(self, session: Session) -> None:
        busy = session.busy_exec or next((c.id for c in self._unfinished(session)), None)
        if busy is not None:
            raise HoldfastError(
                "busy", f"{session.name} is still running {busy}",
                f"hold wait {session.name} --for done={busy}, or send Ctrl-C: hold send {session.name} --key C-c",
            )  # fmt: skip

    async def _begin(
        self, session: Session, source: bytes, actor: Json, typed: Callable[[Command], None], exec_id: str,
        why: str | None,
    ) -> Command:  # fmt: skip
        """Where the last exec left the shell at its prompt, the keeper itself sees whether it is still there."""
        if session.prompt is not None:
            command = self._prepare(session, session.prompt, source, actor, exec_id)
            if await asyncio.shield(self._give(command, actor, session.prompt, why, typed)):
                return command
            session.prompt = None
        prompt = await self._at_prompt(session)
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

    async def _at_prompt(self, session: Session) -> Json:
        """Wait until a shell reads the terminal; which shell it is, its pid, and what there is to know it again by."""
        began, delay = time.monotonic(), 0.002
        while session.link is not None:
            sample, activity = await self._observe(session, True)
            name, pid = _foreground(sample)
            if activity.kind == "at_prompt":
                shell = name if name in ("bash", "zsh", "fish") else "sh"
                return {
                    "shell": shell, "pid": pid, "seen": seen_at_prompt(sample["facts"]), "typed": 0,
                    "midline": bool(sample.get("midline")), "touched": sample.get("typed", 0) != session.typed_by_exec,
                }  # fmt: skip
            young = name in SHELLS and sample["facts"]["tty"]["foreground_pgid"] == pid
            young = young or _starting(session)  # what its start-up files run is in the foreground for a moment
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

    def _prepare(self, session: Session, prompt: Json, source: bytes, actor: Json, exec_id: str) -> Command:
        """The command's files and its record: all that comes before the shell hears of it."""
        assert session.link is not None
        token, shell = os.urandom(16).hex(), str(prompt["shell"])
        record = {
            "exec_id": exec_id, "token": token, "shell": shell, "shell_pid": inner_pid(prompt["pid"]),
            "state": "running", "exit_code": None, "from": session.link.end, "start": None, "end": None, "cwd": None,
            "prompt": None, "duration_ms": 0, "started_at": time.time(), "operator": actor["operator"],
            "generation": session.manifest["generation"], "actor": actor, "void": False,
            "source": source[: limits.JOURNAL_TEXT_MAX].decode("utf-8", "replace"),
        }  # fmt: skip
        command = Command(session, record, self._of(session))
        wrapped = cells.wrap(command, source) if session.kind == "kernel" else wrap(
            shell, token=token, source=source, script=command.seen(".sh"), record=command.seen(".rec"),
            env=_refreshed(session),
        )  # fmt: skip
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
        assert session.link is not None
        try:
            told = await session.link.input(
                command.typed, actor, command.id, prompt, watch=command.next_at,
                what="exec", exec_id=command.id, why=why,
            )  # fmt: skip
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
                if session.kind == "kernel":
                    cells.forget(session.folder.execs, self._of(session))

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
            await self._grown_or_changed(session, link, command, wait_s)
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

    async def _grown_or_changed(self, session: Session, link: Any, command: Command, wait_s: float | None) -> None:
        """Until output, a change of the session or of who watches this command, or the time: one future for all."""
        loop = asyncio.get_running_loop()
        past = command.next_at
        if link.end > past or link.lost:
            return
        woken: asyncio.Future[Any] = loop.create_future()
        timer = None if wait_s is None else loop.call_later(wait_s, _wake, woken)
        command.waker = woken
        session.wakers.add(woken)
        link.watch(past, woken)
        try:
            await woken
        finally:
            link.unwatch(past, woken)
            session.wakers.discard(woken)
            command.waker = None
            if timer is not None:
                timer.cancel()

    def _scan(self, command: Command) -> None:
        """Look for this command's marks in what was printed since."""
        session = command.session
        end = session.link.end if session.link else session.reader.bounds()[1]
        if end <= command.scanned:
            return
        command.unheard = False
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
        found = command.shells_record()
        code, cwd = (found.exit_code, os.fsdecode(found.cwd) if found.cwd else None) if found else (None, None)
        if not command.probing:
            self._remember_prompt(command)
            command.finish("exited", code, end, cwd)
            return
        # The shell came back to a prompt without our hook: it was replaced (same pid) or it was a nested one.
        same = found is not None and found.pid == command.record["shell_pid"]
        command.finish("exited" if same else "shell_ended", code, command.record["probe_end"], cwd)

    @staticmethod
    def _remember_prompt(command: Command) -> None:
        """The next command may find the shell at the same prompt, if nothing was typed after this one."""
        prompt = command.session.prompt
        if prompt is not None and prompt["seen"] is not None and command.at:
            command.session.prompt = {**prompt, "typed": command.at, "midline": False, "touched": False}
        else:
            command.session.prompt = None

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
        if seen_prompt + 1 < _PROMPT_SEEN:
            return seen_prompt + 1
        self._scan(command)
        if command.running and not command.probing:
            await self._without_mark(command, sample)
        return 0

    async def _without_mark(self, command: Command, sample: Json) -> None:
        """The shell is back at its prompt and no mark says so: Ctrl-C takes output with it that nobody has read yet."""
        found = command.shells_record()
        if found is not None:
            cwd = os.fsdecode(found.cwd) if found.cwd else None
            command.finish("exited", found.exit_code, self._before_prompt(command, sample["output"]["end"]), cwd)
        elif command.session.kind == "kernel":
            if command.record["start"] is None and time.time() - command.record["started_at"] > _LOST_LINE_S:
                command.never_ran()  # its line was taken back before the recorder read it
        elif command.record["start"] is not None:
            await self._probe(command, sample)
        elif command.touched and not command.abandoned and sample.get("typed") == command.at:
            # Others had typed before us, and nobody since: our line went into an open quote or the like, and did not
            # run. That is given up, and the line typed again.
            command.abandoned = True
            await self._act_for(command, abandon(command.record["shell"]) + command.typed)
        elif time.time() - command.record["started_at"] > _LOST_LINE_S:
            command.finish("shell_ended", None, command.session.reader.bounds()[1], None)

    async def _act_for(self, command: Command, data: bytes) -> None:
        """Type as the operator whose command this is, who holds the controls until it ends."""
        assert command.session.link is not None
        # A record of an older host has no kind: the least of them takes nothing from anybody.
        actor = command.record.get("actor") or {"operator": command.record["operator"], "kind": "agent", "name": ""}
        with contextlib.suppress(HoldfastError):  # refused where somebody took the controls meanwhile
            await command.session.link.input(data, actor, command.id, what="exec", exec_id=command.id)

    async def _probe(self, command: Command, sample: Json) -> None:
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
        write_new(command.path(".probe.rec"), b"")
        write_new(command.path(".probe"), wrapped.script)
        await self._act_for(command, wrapped.typed)

    def _before_prompt(self, command: Command, end: int) -> int:
        """Where the output ended and the new prompt began: after the last line end."""
        start = int(command.record["from"] if command.record["start"] is None else command.record["start"])
        tail_from = max(start, end - 8192)
        data = b"".join(p.data for p in command.session.reader.pieces(tail_from, end) if p.data)
        cut = data.rfind(b"\n")
        return tail_from + cut + 1 if cut >= 0 else start

    # -- results

    async def wait(self, command: Command, timeout: float | None, *, until_done: bool = False) -> Json:
        """Until it ends or blocks on a person, or the time is up; the record as it is then."""
        # Blocked when last seen; whoever asks again has perhaps answered it. The next sample tells.
        if command.record["state"] in _BLOCKED:
            command.answered_at, command.blocked_as = time.monotonic(), command.record["state"]
            command.record["state"] = "running"
        with command.watched(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while command.record["state"] == "running" or (until_done and command.running):
                    await command.changed.wait()
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

    def outcome(self, session: Session, exec_id: str, since: str) -> Json:
        """How it ended, for whoever has to say what became of it; what never began never will from here on."""
        if not _is_exec_id(exec_id):
            raise invalid(f"{exec_id[:40]!r} is not an exec id", "exec ids come from hold exec --json")
        if exec_id in self._starting:
            return {"known": "running", "exec_id": exec_id}
        try:
            command = self.find(session, exec_id)
        except HoldfastError:
            sure = session.live and session.link is not None and str(rfc3339(session.manifest["started_at"])) <= since
            return outcomes.call_off(self._of(session), exec_id, session.manifest["generation"], time.time(), sure)
        return {"known": outcomes.known(command.record), **self.result(command)}

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
        if command.running and command.session.link is None:
            self._shell_ended(command)
        elif command.running:
            command.record["state"] = "running"
            self._watch(command)

    def _unfinished(self, session: Session) -> list[Command]:
        """Commands on disk that still run: only after a daemon's death are there any that we do not know."""
        if session.state_file.get("execs_checked") == session.manifest["generation"]:
            return []
        known = self._of(session).all()
        out = [c for c in (self.find(session, name) for name, r in known.items() if not ended(r)) if c.running]
        session.state_file["execs_checked"] = session.manifest["generation"]
        return out

    async def done(self, session: Session, exec_id: str) -> tuple[str, int, Json]:
        command = self.find(session, exec_id)
        result = await self.wait(command, None, until_done=True)
        return "done", int(result["end"]), result

    def heard(self, session: Session, event: Json) -> None:
        if event.get("event") == "gone":
            session.state_file.pop("execs_checked", None)
            session.prompt, session.typed_by_exec = None, 0
            self._results.pop(session.id, None)


def _wake(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)


def _is_exec_id(text: object) -> bool:
    # It becomes a file's name.
    return isinstance(text, str) and text.startswith("exe_") and text[4:].isalnum() and len(text) <= 40


def _starting(session: Session) -> bool:
    """Whether it is a shell that was started just now."""
    program = os.path.basename(str(session.manifest["command"][0]))
    interactive = len(session.manifest["command"]) == 1
    return interactive and program in SHELLS and time.time() - session.manifest["started_at"] < _READY_S


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
