"""Watching a command that was typed: its marks as output grows, the kernel where none come, its end and its record."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import Any

from ...model import signals
from ...model.errors import HoldfastError
from ...system.atomic_files import write_new
from ..observe.wait import SAMPLE_FIRST_S, SAMPLE_MAX_S
from ..sessions.session import Session
from . import kernel_cells
from .command import Command
from .results_file import Results
from .shells.wrap import abandon, probe

Json = dict[str, Any]

_PROMPT_SEEN = 2  # samples in a row that must find the prompt before an end without marks is believed
_ANSWER_S = 1.0  # who asks again for a blocked command has usually answered it: it gets this long to go on
_LOST_LINE_S = 5.0  # the typed line has this long to show its begin mark
BLOCKED = ("waiting_for_input", "waiting_for_secret", "menu", "full_screen")


class Watching:
    """The monitors of commands that run; each lives on when its caller leaves. `observe` looks at the kernel now."""

    def __init__(self, observe: Any) -> None:
        self._observe = observe
        self._running: dict[str, Command] = {}
        self._results: dict[str, Results] = {}

    def _of(self, session: Session) -> Results:
        found = self._results.get(session.id)
        if found is None:
            found = self._results[session.id] = Results(session.folder.execs)
        return found

    def _watch(self, command: Command) -> None:
        self._running[command.id] = command
        command.session.busy_exec = command.id
        command.task = asyncio.get_running_loop().create_task(self._monitor(command))

    async def _monitor(self, command: Command) -> None:
        try:
            await self._until_end(command)
        finally:
            self._running.pop(command.id, None)
            session = command.session
            if session.busy_exec == command.id:
                session.busy_exec = None
            if session.connected and not command.running:
                with contextlib.suppress(HoldfastError):
                    await session.line.act("drop", hold=command.id)
            if not command.running:
                command.clean()
                if session.kind == "kernel":
                    kernel_cells.forget(session.folder.execs, self._of(session))

    async def _until_end(self, command: Command) -> None:
        """Read marks as output grows; sample the kernel only while somebody waits and no mark has come."""
        session = command.session
        delay, seen_prompt = SAMPLE_FIRST_S, 0
        sampled_at = time.monotonic()
        while command.running:
            self._scan(command)
            if not command.running:
                return
            if session.unreachable:
                await session.changed.wait()  # the line to its keeper is broken, not the shell: nobody can tell yet
                continue
            if not session.connected:
                self._shell_ended(command)
                return
            link, before = session.line, command.scanned
            wait_s = delay if command.watchers and command.record["state"] == "running" else None
            await self._grown_or_changed(session, link, command, wait_s)
            if session.exit is not None and session.exit.get("known"):
                self._scan(command)
                if command.running:
                    self._shell_ended(command)
                return
            # Where it prints, its marks tell. And who comes to wait for what was typed this moment need not have it
            # looked at: most commands end before a look does.
            enough = SAMPLE_MAX_S if link.end > before else SAMPLE_FIRST_S
            if link.end > before:
                delay = SAMPLE_FIRST_S
                if command.record["state"] in BLOCKED:
                    command.update(state="running", prompt=None)
            if time.monotonic() - sampled_at < enough:
                continue
            if command.watchers and command.record["state"] == "running" and session.connected:
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
        end = session.end
        if end <= command.scanned:
            return
        command.unheard = False
        for piece in session.reader.pieces(command.scanned, end):
            command.scanned = piece.end
            if piece.data is None:
                continue
            command.heard.add(piece.offset, piece.data)
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
            code = 128 + signals.number(exit_record["signal"])
        command.finish("shell_ended", code, command.session.reader.bounds()[1], None)

    async def _look(self, command: Command, seen_prompt: int) -> int:
        """One sample: blocked on a person, or back at the prompt without a mark?"""
        session = command.session
        try:
            sample, activity = await self._observe(session, False)
        except HoldfastError:
            return 0
        # An agent at its own prompt waits for a person as well; only a shell there has ended the command.
        kind = "waiting_for_input" if activity.kind == "at_prompt" and not activity.at_shell else activity.kind
        before, command.suspected = command.suspected, kind
        if kind in BLOCKED:
            if kind == command.blocked_as and time.monotonic() - command.answered_at < _ANSWER_S:
                return 0  # perhaps it was answered just now and has not got to it
            # A program that has drawn and does not read yet looks like another kind: what is likely is seen twice.
            if activity.confidence == "certain" or kind == before:
                command.update(state=kind, prompt=activity.prompt)
            return 0
        if not activity.at_shell:
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
            if command.record["start"] is None and command.watched_s > _LOST_LINE_S:
                command.never_ran()  # its line was taken back before the recorder read it
        elif command.record["start"] is not None:
            await self._probe(command, sample)
        elif command.touched and not command.abandoned and sample.get("typed") == command.at:
            # Others had typed before us, and nobody since: our line went into an open quote or the like, and did not
            # run. That is given up, and the line typed again.
            command.abandoned = True
            await self._act_for(command, abandon(command.record["shell"]) + command.typed)
        elif command.watched_s > _LOST_LINE_S:
            command.finish("shell_ended", None, command.session.reader.bounds()[1], None)

    async def _act_for(self, command: Command, data: bytes) -> None:
        """Type as the operator whose command this is, who holds the controls until it ends."""
        # A record of an older host has no kind: the least of them takes nothing from anybody.
        actor = command.record.get("actor") or {"operator": command.record["operator"], "kind": "agent", "name": ""}
        with contextlib.suppress(HoldfastError):  # somebody took the controls meanwhile, or it has ended
            await command.session.line.input(data, actor, command.id, what="exec", exec_id=command.id)

    async def _probe(self, command: Command, sample: Json) -> None:
        name, _ = foreground(sample)
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


def _wake(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)


def foreground(sample: Json) -> tuple[str, int]:
    """Name and pid of the foreground group's leader, as far as it is there."""
    facts = sample.get("facts") or {}
    group = int(facts.get("tty", {}).get("foreground_pgid") or 0)
    for thread in facts.get("threads", []):
        if thread["pid"] == group:
            return str(thread["comm"]), group
    return "", group
