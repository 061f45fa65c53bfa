"""The kernel runner: one loop between the session's terminal and its kernel (docs/adr/0013-kernels.md).

A cell is a line typed at the prompt: code from a person, or `holdfast-cell EXEC_ID` from the host, which wrote the code
into a file before. In both cases the keeper checked the controls. Outputs are printed, and those of an exec are written
to a file before the end mark announces them: no daemon has to listen.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import zmq

from ..model import signals
from ..model.home import ENV, Home
from ..system.atomic_files import read_json, write_json
from . import connection_file
from .kernel import Kernel
from .messages import Message
from .outputs import Outputs, plain
from .terminal import Terminal

Json = dict[str, Any]

_CELL = re.compile(rb"holdfast-cell (exe_[0-9a-z]+)\n?\Z")
_ASK_AGAIN_S = 0.5  # a kernel that starts may miss the first request's broadcast
_AT_A_TIME = 100  # messages handled before signals and the terminal are checked again
# A reply without its `idle`: outputs were dropped. An `idle` without its reply: the interrupt hit the
# kernel's own code before the cell's. Either way nothing more comes, and both are local: this is long.
_OTHER_LOST_S = 5.0
_LAST_WORDS_MS = 300  # for messages that a dead kernel had sent
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Cell:
    """One execution. `job` is the host's; None for a cell that a person typed."""

    def __init__(self, request: str, job: Json | None) -> None:
        self.request, self.job = request, job
        self.outputs = Outputs()
        self.status: str | None = None  # as the kernel replied
        self.idle = False
        self.count: int | None = None
        self.heard_at = 0.0
        self.begun = self.unwanted = False  # the kernel has it; interrupt it as soon as that is true

    @property
    def over(self) -> bool:
        return self.status is not None and self.idle

    @property
    def half(self) -> bool:
        """Only one of the two messages that end it has arrived."""
        return (self.status is not None) != self.idle


class Recorder:
    """The loop. Phases: starting, idle, checking (is the input complete?), busy; when busy the kernel may ask."""

    def __init__(self, folder: Any, manifest: Json) -> None:
        about = manifest["kernel"]
        self._folder, self._generation = folder, manifest["generation"]
        self._terminal = Terminal()
        made = connection_file.connection(folder.path, about["spec"], about["language"])
        connection_file.write(folder.connection_file, made)
        self._said: Json = {}
        self._phase, self._asked, self._typed = "starting", "", ""
        self._cell: Cell | None = None
        self._jobs: list[Json] = []
        self._input: Message | None = None
        self._others: set[str] = set()  # requests of other front ends that the kernel is busy with
        self._count, self._introduced, self._broadcasts = 1, False, False
        self._info = ""  # the request whose reply shows that every channel is connected
        self._asked_at = -math.inf
        self._signals: list[int] = []
        self._name = about["display_name"]
        self._kernel = Kernel(about["argv"], manifest["env"], folder.connection_file, made, about["interrupt_mode"])
        self._say()

    # -- state for other processes

    def _say(self) -> None:
        """Write the state file that tells what this session is doing."""
        prompt = None
        if self._input is not None:
            state = "secret" if self._input.content.get("password") else "input"
            prompt = str(self._input.content.get("prompt") or "")[:200]
        elif self._phase == "busy" or self._others:
            state = "busy"
        else:
            state = "starting" if self._phase == "starting" else "idle"
        facts = {
            "state": state,
            "prompt": prompt,
            "pid": self._kernel.pid,
            "execution_count": self._count - 1,
            "generation": self._generation,
        }
        if facts != self._said and self._written(write_json, self._folder.kernel_state, facts, durable=False):
            self._said = facts

    def _written(self, write: Callable[..., object], *args: Any, **options: Any) -> bool:
        """Write a file; on a full disk it is lost, but the kernel keeps running."""
        try:
            write(*args, **options)
        except OSError as e:
            self._terminal.line(f"hold: not recorded: {e}")
            return False
        return True

    # -- the loop

    def run(self) -> int:
        """Run until the kernel has ended; returns its exit code."""
        wakeup, poke = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(poke, False)
        signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
        for number in (signal.SIGINT, *_FORWARDED):
            signal.signal(number, lambda n, _: self._signals.append(n))
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # SIGTSTP would stop the recording, not the kernel
        poller = zmq.Poller()
        for source in (*self._kernel.sockets, self._kernel.connecting, wakeup, self._kernel.ended_fd):
            poller.register(source, zmq.POLLIN)
        listening = False
        while True:
            if self._phase == "starting":
                self._introduce()
            wanted = self._phase == "idle" or self._input is not None
            if wanted != listening:  # while a cell runs, typed input stays where a takeover can discard it
                listening = wanted
                poller.register(0, zmq.POLLIN) if wanted else poller.unregister(0)
            ready = dict(poller.poll(self._wait_ms()))
            if wakeup in ready:
                os.read(wakeup, 4096)
            self._handle_signals()
            for sock in self._kernel.sockets:
                if sock in ready:
                    for message in itertools.islice(self._kernel.received(sock), _AT_A_TIME):
                        self._hear(message)
            self._settle()
            if self._kernel.ended_fd in ready:
                return self._end()
            if ready.get(0) and (self._phase == "idle" or self._input is not None):
                self._read()
            self._say()

    def _introduce(self) -> None:
        """Request the kernel's info repeatedly, until the reply shows that every channel is connected."""
        connected = self._kernel.can_be_asked() and not self._info
        if connected or time.monotonic() - self._asked_at >= _ASK_AGAIN_S:
            self._asked_at = time.monotonic()
            request = self._kernel.ask("kernel_info_request", {})
            self._info = request if connected else self._info

    def _wait_ms(self) -> int | None:
        if self._phase == "starting":
            return int(_ASK_AGAIN_S * 1000)
        return 1000 if self._cell is not None and self._cell.half else None

    def _handle_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            if number != signal.SIGINT:
                self._kernel.signal(number)
            elif self._cell is not None and not self._cell.begun:
                self._cell.unwanted = True  # between two cells a kernel ignores interrupts
            elif self._phase == "busy" or self._others:
                self._kernel.interrupt()
            elif self._phase == "idle":
                self._typed = ""
                self._terminal.write("\n")
                self._terminal.prompt(self._count)

    # -- the terminal

    def _read(self) -> None:
        data = self._terminal.read()
        found = _CELL.match(data)
        if found is not None:
            job = read_json(os.path.join(self._folder.execs, found[1].decode() + ".sh"))
            if job is not None:
                self._jobs.append(job)
            elif self._input is None:
                self._terminal.write("\r\x1b[K")
                self._terminal.prompt(self._count)
        elif self._input is not None:
            self._answer(data)
        elif not data:
            self._terminal.line("Ctrl-\\ d detaches; hold stop ends the kernel.")
            self._terminal.prompt(self._count)
        else:
            self._typed += data.decode("utf-8", "replace")
            if self._typed.strip():
                self._phase = "checking"
                self._asked = self._kernel.ask("is_complete_request", {"code": self._typed})
            else:
                self._typed = ""
                self._terminal.prompt(self._count)
        self._next()

    def _answer(self, data: bytes) -> None:
        """Answer the kernel's input request; an end of input is an empty answer, as the protocol has no other."""
        assert self._input is not None
        if self._input.content.get("password"):
            self._terminal.write("\n")
        self._terminal.silent(False)
        self._terminal.fresh = True
        parent, self._input = self._input.header, None
        self._kernel.answer(data.decode("utf-8", "replace").rstrip("\n"), parent)

    # -- cells

    def _next(self) -> None:
        if self._phase == "idle" and self._jobs:
            job = self._jobs.pop(0)
            self._typed = ""
            self._terminal.cell(self._count, job["code"])
            self._terminal.mark(job["begin"].encode())
            self._begin(job["code"], job)

    def _begin(self, code: str, job: Json | None) -> None:
        request = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": True,
            "stop_on_error": False,  # cells of other front ends stay queued
        }
        self._phase, self._typed = "busy", ""
        self._cell = Cell(self._kernel.ask("execute_request", request), job)
        self._say()

    def _settle(self) -> None:
        """End the cell once its reply and all its outputs have arrived."""
        cell = self._cell
        if cell is None:
            return
        if cell.half and time.monotonic() - cell.heard_at > _OTHER_LOST_S:
            if cell.status is None:
                cell.status = "error"
                cell.outputs.lost("KeyboardInterrupt", "the kernel gave up this cell without a reply")
            cell.idle = True
        if cell.over:
            self._finish(cell, 0 if cell.status == "ok" else 1)
            self._phase = "idle"
            self._next()
            if self._phase == "idle":
                self._terminal.prompt(self._count)

    def _finish(self, cell: Cell, code: int | None) -> None:
        """Write the record first, then the end mark. Without a code the kernel died, and the session's end shows it."""
        self._cell, self._input = None, None
        self._terminal.silent(False)
        if cell.job is None:
            return
        kept = {
            "exec_id": cell.job["exec_id"],
            "generation": self._generation,
            "outputs": cell.outputs.items,
            "error": cell.outputs.error,
            "execution_count": cell.count,
            "outputs_omitted": cell.outputs.omitted,
        }
        self._written(write_json, cell.job["cell"], kept, durable=False)
        if code is not None:
            self._written(self._write_record, cell.job, code)
            self._terminal.mark(cell.job["end"].encode())

    def _write_record(self, job: Json, code: int) -> None:
        """Write the record in a shell's format (host/exec/shell_record.py)."""
        with open(job["record"], "ab") as record:
            head = f"holdfast-exec 1 {job['token']} {code} {os.getpid()}\n".encode()
            record.write(head + os.fsencode(self._cwd()) + f"\nend {job['token']}\n".encode())

    def _cwd(self) -> str:
        try:
            return os.readlink(f"/proc/{self._kernel.pid}/cwd")
        except OSError:
            return ""

    # -- the kernel

    def _hear(self, message: Message) -> None:
        mine = self._cell is not None and message.parent_id == self._cell.request
        if mine and self._cell is not None:
            self._cell.heard_at = time.monotonic()
        match message.kind:
            case "kernel_info_reply":
                self._introduced = self._introduced or message.parent_id == self._info
            case "is_complete_reply" if message.parent_id == self._asked:
                self._judged(message.content)
            case "execute_reply" if mine and self._cell is not None:
                self._cell.status = str(message.content.get("status"))
                self._cell.count = message.content.get("execution_count", self._cell.count)
            case "input_request" if mine:
                self._ask(message)
            case "status":
                self._status(message, mine)
            case "execute_input":
                self._count = int(message.content.get("execution_count") or self._count) + 1
                if mine and self._cell is not None:
                    self._cell.count, self._cell.begun = message.content.get("execution_count"), True
                    if self._cell.unwanted:
                        self._kernel.interrupt()
                else:
                    self._terminal.cell(self._count - 1, str(message.content.get("code") or ""))
            case _:
                self._put_out(message, self._cell.outputs if mine and self._cell is not None else Outputs())
        if message.kind in ("status", "iopub_welcome"):
            self._broadcasts = True
        if self._phase == "starting" and self._introduced and self._broadcasts:
            self._start()

    def _start(self) -> None:
        self._phase = "idle"
        again = f" Generation {self._generation}: its memory is empty." if self._generation > 1 else ""
        self._terminal.line(f"{self._name} is ready.{again}")
        self._terminal.prompt(self._count)

    def _judged(self, content: Json) -> None:
        """Continue the cell or run it; an empty line ends a block, as at any interactive prompt."""
        self._phase = "idle"
        if content.get("status") == "incomplete" and not self._typed.endswith("\n\n"):
            self._terminal.prompt(self._count, more=True)
        else:
            self._begin(self._typed, None)

    def _status(self, message: Message, mine: bool) -> None:
        idle = message.content.get("execution_state") == "idle"
        if mine and self._cell is not None:
            self._cell.idle = self._cell.idle or idle
        elif message.parent.get("msg_type") == "execute_request":
            self._others.discard(message.parent_id) if idle else self._others.add(message.parent_id)
            if idle and self._phase == "idle":
                self._terminal.prompt(self._count)

    def _ask(self, message: Message) -> None:
        """The program asks for a line: print the prompt, then publish that it waits."""
        self._input = message
        self._terminal.silent(bool(message.content.get("password")))
        self._terminal.write(str(message.content.get("prompt") or ""))
        self._say()

    def _put_out(self, message: Message, outputs: Outputs) -> None:
        """Record an output and print it as text. Output without a cell (a thread, a front end) is only printed."""
        content, ours = message.content, self._cell is None or self._cell.job is None
        match message.kind:
            case "stream":
                text = str(content.get("text") or "")
                outputs.stream(str(content.get("name")), text)
                self._terminal.write(text)
            case "execute_result" | "display_data":
                outputs.data(message.kind, content)
                shown = plain(content)
                if shown is not None:
                    count = content.get("execution_count")
                    self._terminal.line((f"Out[{count}]: " if ours and count else "") + shown)
            case "update_display_data":
                outputs.update(content)
            case "clear_output":
                outputs.clear(bool(content.get("wait")))
            case "error":
                outputs.failed(content)
                self._terminal.line("\n".join(map(str, content.get("traceback") or [])))

    def _end(self) -> int:
        """The kernel is dead: read its last messages, print how it ended, and end the same way."""
        while self._kernel.iopub.poll(_LAST_WORDS_MS):
            for message in self._kernel.received(self._kernel.iopub):
                self._hear(message)
        code = self._kernel.wait()
        cell, how = self._cell, f"exit code {code}" if code >= 0 else signals.name(-code)
        if cell is not None:
            if cell.status is not None:
                self._finish(cell, 0 if cell.status == "ok" else 1)
            else:
                cell.outputs.lost("KernelEnded", f"the kernel ended ({how}) before this cell did; its memory is gone")
                self._finish(cell, None)
        self._terminal.line(f"The kernel ended: {how}.")
        for path in (self._folder.connection_file, self._folder.kernel_state):
            if os.path.lexists(path):
                os.unlink(path)
        return code


def main() -> NoReturn:
    home, session = os.environ.get(ENV), os.environ.get("HOLDFAST_SESSION")
    folder = Home(home or "").session(session or "")
    manifest = read_json(folder.manifest)
    if not home or not session or manifest is None or "kernel" not in manifest or not os.isatty(0):
        sys.exit("hold: start a kernel session with: hold run --kernel python3")
    try:
        recorder = Recorder(folder, manifest)
    except (OSError, subprocess.SubprocessError) as e:
        sys.exit(f"hold: the kernel could not be started: {e}")
    code = recorder.run()
    if code < 0:  # end the same way, so that the session's exit shows the kernel's signal
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
