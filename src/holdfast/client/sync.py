"""The client without asyncio. Made from aio.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import base64
import os
import time

from ..model import ids
from ..model.errors import HoldfastError, from_dict, invalid
from ..model.home import Home, default_home
from ..wire import frames
from ..wire.requests import TooLarge
from .io_sync import Line, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self, TypeVar

    from .types import Ask, Chunk, ExecResult, Port, Screen, SessionStatus, WaitResult
    from .work_sync import Work

    Json = dict[str, Any]
    T = TypeVar("T")

# Asking these twice is asking them once: a reply lost with a dying daemon is asked for again.
_REPEATABLE = frozenset({
    "ping", "ls", "status", "ports", "screen", "offset", "open", "attach", "keys", "wait", "exec_result", "run",
    "exec_outcome", "facts", "ask", "asked", "inbox", "answer", "recording", "doctor",
    "whoami", "operator_ls", "operator_find", "timeline", "journal_head", "journal_verify", "work",
    "withdraw", "started",
})  # fmt: skip
_STREAMS = {0: "terminal", 1: "stdout", 2: "stderr"}
_OUTPUT_MAX = 1 << 20  # bytes of an exec's output returned unless asked otherwise: head and tail are kept


class Host:
    """A host, reached through its socket. Connections are made as needed and reused, one request at a time each."""

    def __init__(
        self, home: str | None = None, *, autostart: bool = True, operator: str | None = None
    ) -> None:
        self.home = Home(
            os.path.abspath(home) if home else default_home(dict(os.environ), os.path.expanduser("~"))
        )
        self.autostart = autostart
        self.operator = operator or os.environ.get("HOLDFAST_OPERATOR")
        self._idle: list[Wire] = []
        self._work: Work | None = None

    @property
    def work(self) -> Work:
        """Durable runs: `host.work.run(…)`."""
        from .work_sync import Work

        if self._work is None:
            self._work = Work(self)
        return self._work

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._work is not None:
            self._work.close()

    def call(self, op: str, **request: object) -> Any:
        """One operation by name; the reply's value. For what has no method of its own."""
        value, fd = self.call_fd(op, **request)
        if fd >= 0:
            os.close(fd)
        return value

    def call_fd(self, op: str, **request: object) -> tuple[Any, int]:
        """One operation whose reply may carry a descriptor (-1: none)."""
        message: Json = {"op": op, **request}
        for attempt in (1, 2):
            wire = self._resting()
            try:
                if wire is None:
                    wire = self._connect()
                wire.send(message)
                reply, fd = wire.receive()
            except ConnectionError:
                if wire is not None:
                    wire.close()
                if attempt == 2 or op not in _REPEATABLE:
                    raise HoldfastError(
                        "host_gone", f"the host went away during {op}", "look at hold status, then try again"
                    ) from None
                continue
            except TooLarge as e:
                assert wire is not None
                wire.close()
                raise invalid(str(e), "pass large input through a file or a pipe") from None
            except BaseException:
                if wire is not None:
                    wire.close()
                raise
            self._idle.append(wire)
            if "error" in reply:
                raise from_dict(reply["error"])  # type: ignore[arg-type]
            return reply["ok"], fd
        raise AssertionError("unreachable")

    def _resting(self) -> Wire | None:
        while self._idle:
            wire = self._idle.pop()
            if not wire.stale():
                return wire
            wire.close()
        return None

    def _connect(self) -> Wire:
        """A new connection; where an operator was chosen, its key is proven on it before anything is asked."""
        wire = Wire.connect(self.home, self.autostart)
        if self.operator:
            try:
                self._prove(wire, self.operator)
            except BaseException:
                wire.close()
                raise
        return wire

    def _prove(self, wire: Wire, operator: str) -> None:
        from ..system import keys
        from ..wire import proof

        wire.send({"op": "identify", "operator": operator})
        asked, _ = wire.receive()
        if "error" in asked:
            raise from_dict(asked["error"])  # type: ignore[arg-type]
        about: Json = asked["ok"]  # type: ignore[assignment]
        message = proof.message(about["host"], bytes.fromhex(about["nonce"]), about["operator"])
        signature = keys.sign(keys.load(self.home.keys, about["operator"]), message).hex()
        wire.send({"op": "prove", "operator": about["operator"], "signature": signature})
        answer, _ = wire.receive()
        if "error" in answer:
            raise from_dict(answer["error"])  # type: ignore[arg-type]

    def run(
        self, command: Sequence[str] | None = None, *, name: str | None = None, cwd: str | None = None,
        env: Mapping[str, str] | None = None, pipes: bool = False, size: tuple[int, int] | None = None,
        restart: str = "never", idle_ttl: str | None = None, acts_as: str | None = None, why: str | None = None,
        pids_max: int | None = None, memory_max: int | None = None, log_max: int | None = None,
        isolate: bool = False, read: Sequence[str] = (), write: Sequence[str] = (), network: bool = True,
        kernel: str | None = None, written_by: Sequence[str] = (), record: bool = False,
    ) -> Session:  # fmt: skip
        """Start a session (by default the user's shell) with this process's environment, plus `env`.

        With `kernel`, a kernelspec's name, it holds a Jupyter kernel, and `exec` runs code in that (docs/kernels.md).

        With `isolate` it sees the system, its own folder, and what `read` and `write` name (docs/isolation.md).

        `written_by` names operators whose commands these are: what an agent wrote may do no more than that agent. With
        `record`, on pipes, stderr is for programs to read, and left out of what people are shown.
        """
        request = start_request(
            command, name=name, cwd=cwd, env=env, pipes=pipes, size=size, restart=restart, idle_ttl=idle_ttl,
            acts_as=acts_as, why=why, pids_max=pids_max, memory_max=memory_max, log_max=log_max,
            isolate=isolation(isolate, read, write, network), kernel=kernel, written_by=written_by,
        )  # fmt: skip
        made = self.call("run", brief=True, record=record, **request)
        return Session(self, made["id"], made["name"])

    def session(self, session: str) -> Session:
        """A session by name, id or the beginning of its id."""
        found = self.call("status", session=session)
        return Session(self, found["id"], found["name"])

    def sessions(self, *, all: bool = False) -> list[SessionStatus]:
        """What is there; with `all` the ended ones too."""
        from .types import SessionStatus

        return _typed(self.call("ls", all=all), list[SessionStatus])

    def ports(self, port: int | None = None) -> list[Port]:
        """Listening ports of all sessions, each with its session and pid."""
        from .types import Port

        return _typed(self.call("ports", port=port), list[Port])

    def ask(
        self, text: str, *, session: str | None = None, options: Sequence[str] = (), wait: float | None = None,
        why: str | None = None,
    ) -> Ask:  # fmt: skip
        """Ask the people of this host; with `wait` the item as it is once it was answered, or after so many seconds."""
        from .types import Ask

        item = self.ask_raw(text, session=session, options=options, why=why)
        return _typed(item if wait is None else self.asked_raw(item["id"], wait), Ask)

    def ask_raw(self, text: str, *, session: str | None, options: Sequence[str], why: str | None) -> Json:
        answer: Json = self.call(
            "ask", ask=ids.new("ask_"), text=text, session=session, options=list(options), why=why
        )
        return answer

    def ask_held(
        self, text: str, *, wait: float, kind: str = "question", session: str | None = None,
        options: Sequence[str] = (), why: str | None = None,
    ) -> Json:  # fmt: skip
        """Ask (a question, or an approval) and wait: the item leaves the inbox with its asker, and after `wait` s."""
        deadline, id = time.monotonic() + wait, ids.new("ask_")
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                item: Json = self.call(
                    "ask", ask=id, text=text, kind=kind, session=session, options=list(options), why=why, held=left
                )
                return item
            except HoldfastError as e:
                if e.code != "host_gone" or left == 0:
                    raise

    def asked(self, ask: str, timeout: float | None = 0.0) -> Ask:
        """An inbox item, once it is no longer open or the time is up (0: as it is now, None: however long it takes)."""
        from .types import Ask

        return _typed(self.asked_raw(ask, timeout), Ask)

    def asked_raw(self, ask: str, timeout: float | None) -> Json:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                answer: Json = self.call("asked", ask=ask, timeout=left)
                return answer
            except HoldfastError as e:
                if e.code != "host_gone":
                    raise

    def withdraw(self, ask: str) -> Json:
        """Take back an item of one's own that nobody need answer any more; one that is over stays as it is."""
        item: Json = self.call("withdraw", ask=ask)
        return item

    def inbox(self, *, all: bool = False) -> list[Ask]:
        """What waits for a person, looked at now; with `all` also what is over."""
        from .types import Ask

        return _typed((self.call("inbox", all=all))["items"], list[Ask])

    def follow_inbox(self) -> Iterator[Ask]:
        """What is open, then every item again as it changes."""
        from .types import Ask

        for item in self.follow_inbox_raw():
            yield _typed(item, Ask)

    def follow_inbox_raw(self) -> Iterator[Json]:
        after: int | None = None
        while True:
            try:
                page = self.call("inbox", follow=True, after=after)
            except HoldfastError as e:
                if e.code != "host_gone":
                    raise
                continue
            items, after = page["items"], page["last"]
            while items:
                yield items.pop(0)

    def answer(
        self, ask: str, text: str | bytes | None = None, *, approve: bool | None = None, why: str | None = None
    ) -> Ask:
        """Answer an item: with a text (typed where a program waits for it), or with yes or no."""
        from .types import Ask

        return _typed(self.answer_raw(ask, text, approve=approve, why=why), Ask)

    def answer_raw(
        self, ask: str, text: str | bytes | None = None, *, approve: bool | None = None, why: str | None = None
    ) -> Json:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        payload = None if data is None else base64.b64encode(data).decode()
        answer: Json = self.call(
            "answer", ask=ask, data=payload, approve=approve, why=why, request=ids.new("req_")
        )
        return answer

    # -- operators and the journal

    def whoami(self) -> Json:
        """The operator this process acts as, where it stands, and its grants."""
        me: Json = self.call("whoami")
        return me

    def operators(self, *, all: bool = False) -> list[Json]:
        """Who is enrolled; with `all` the revoked ones too."""
        found: list[Json] = self.call("operator_ls", all=all)
        return found

    def add_operator(
        self, name: str, kind: str, *, verbs: Sequence[str] | None = None, sessions: Sequence[str] | None = None,
        ttl: float | None = None, depth: int | None = None, key: str | None = None, why: str | None = None,
    ) -> Json:  # fmt: skip
        """Enrol an operator; its secret key stays on this machine unless `key` is one's public half from elsewhere."""
        from ..system import keys
        from . import granting

        wanted = granting.defaults(kind, verbs, sessions)
        me = self.whoami()
        id = ids.new("op_")
        request: Json = {"id": id, "name": name, "kind": kind, "why": why}
        if wanted is not None:
            grant = granting.make(me, id, *wanted, ttl, depth, time.time())
            request.update(grant=grant.as_dict(), signature=granting.sign(self.home.keys, me, grant))
        request["key"] = key or keys.make(self.home.keys, id)
        try:
            made: Json = self.call("operator_add", **request)
        except HoldfastError as e:
            if not key and e.code != "host_gone":  # else it may be enrolled, and needs its key
                keys.forget(self.home.keys, id)
            raise
        return made

    def grant(
        self, operator: str, verbs: Sequence[str], *, sessions: Sequence[str] | None = None, ttl: float | None = None,
        depth: int | None = None, why: str | None = None,
    ) -> Json:  # fmt: skip
        """Give an operator one more grant, never wider than one's own, signed with one's own key."""
        from . import granting

        me = self.whoami()
        whom = (self.call("operator_find", operator=operator))["id"]
        globs = list(sessions) if sessions is not None else ["*"]
        grant = granting.make(me, whom, list(verbs), globs, ttl, depth, time.time())
        signature = granting.sign(self.home.keys, me, grant)
        given: Json = self.call("operator_grant", grant=grant.as_dict(), signature=signature, why=why)
        return given

    def revoke(self, operator_or_grant: str, *, why: str | None = None) -> Json:
        """End an operator, or one grant (`grt_…`): its channels and requests end at once."""
        done: Json = self.call("operator_revoke", target=operator_or_grant, why=why)
        return done

    def timeline(
        self, session: str | None = None, *, since: float | None = None, before: int | None = None, limit: int = 1000
    ) -> Json:
        """Who did what: `entries` in order, and `next` to ask for older ones (as `before`)."""
        found: Json = self.call("timeline", session=session, since=since, before=before, limit=limit)
        return found


class Session:
    """One session of a host. Holding this object holds nothing: the session lives on its own."""

    def __init__(self, host: Host, id: str, name: str) -> None:
        self.host, self.id, self.name = host, id, name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.id}>"

    def status(self) -> SessionStatus:
        """The authoritative answer, observed now."""
        from .types import SessionStatus

        return _typed(self.host.call("status", session=self.id), SessionStatus)

    def screen(self) -> Screen:
        """The rendered screen."""
        from .types import Screen

        return _typed(self.host.call("screen", session=self.id), Screen)

    def send(
        self, text: str | bytes = b"", *, enter: bool = False, keys: Sequence[str] = (), secret: bool = False,
        eof: bool = False, why: str | None = None,
    ) -> None:  # fmt: skip
        """Type into the session; takes free controls for its duration."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
        if keys:
            from ..term.keys import encode

            cursor = (self.host.call("keys", session=self.id))["app_cursor"]
            try:
                data += b"".join(encode(k, app_cursor=cursor) for k in keys)
            except ValueError as e:
                raise invalid(str(e), "Enter, Tab, Escape, Up, F5, C-c, M-x …") from None
        if enter:
            data += b"\r"
        payload = base64.b64encode(data).decode()
        self.host.call("send", session=self.id, data=payload, secret=secret, eof=eof, why=why)

    def exec(
        self,
        *command: str,
        timeout: float | None = None,
        max_output: int = _OUTPUT_MAX,
        why: str | None = None,
    ) -> ExecResult:
        """Run a command in the session's shell: one argument is shell source, several are words. In a kernel: code."""
        return self._exec_result(self.exec_raw(list(command), timeout, why), max_output)

    def exec_raw(
        self, words: list[str], timeout: float | None, why: str | None, exec_id: str | None = None
    ) -> Json:
        """`exec` as the host answers it, without the output; a daemon that dies meanwhile is not noticed."""
        exec_id = exec_id or ids.new("exe_")
        deadline = None if timeout is None else time.monotonic() + timeout
        lost = False
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            known: Json = {"session": self.id, "exec_id": exec_id, "timeout": left}
            try:
                if lost:  # the command did not die with the daemon: its record says how it stands
                    answer: Json = self.host.call("exec_result", wait=True, **known)
                else:
                    answer = self.host.call("exec", words=words, why=why, **known)
                return answer
            except HoldfastError as e:
                if e.code == "host_gone":
                    lost = True
                elif lost and e.code == "not_found":
                    lost = False  # it had not been typed yet
                else:
                    raise

    def exec_result(
        self, exec_id: str, *, wait: bool = False, timeout: float | None = None, max_output: int = _OUTPUT_MAX
    ) -> ExecResult:
        """How a command stands that was started before; with `wait`, once it ends or blocks."""
        result = self.host.call(
            "exec_result", session=self.id, exec_id=exec_id, wait=wait, timeout=timeout
        )
        return self._exec_result(result, max_output)

    def _exec_result(self, result: Json, max_output: int) -> ExecResult:
        from .types import ExecResult

        raw, omitted = self.exec_output(result, max_output)
        return ExecResult(
            exec_id=result["exec_id"], state=result["state"], exit_code=result["exit_code"],
            output=plain_text(raw), raw=raw, start=result["start"], end=result["end"], omitted_bytes=omitted,
            duration_ms=result["duration_ms"], cwd=result["cwd"], prompt=result["prompt"],
            outputs=result.get("outputs") or [], error=result.get("error"),
            execution_count=result.get("execution_count"), outputs_omitted=result.get("outputs_omitted"),
        )  # fmt: skip

    def exec_output(self, result: Json, max_output: int) -> tuple[bytes, int]:
        """The command's output, at most `max_output` bytes of it (head and tail), and how much was left out."""
        start, end = result["start"], result["end"]
        if start is None:
            return b"", 0
        if "raw" in result and end - start <= max_output:
            return base64.b64decode(result["raw"]), int(result["gone"])
        if end - start <= max_output:
            ranges = [(start, end)]
        else:
            head = max_output // 2
            ranges = [(start, start + head), (end - (max_output - head), end)]
        parts = []
        for a, b in ranges:
            parts += [chunk.data for chunk in self.output(a, end=b)]
        raw = b"".join(parts)
        return raw, end - start - len(raw)

    def wait(
        self, *, exit: bool = False, input: bool = False, quiet: float | bool | None = None, port: int | None = None,
        text: str | None = None, done: str | None = None, start: int | None = None, timeout: float | None = None,
    ) -> WaitResult:  # fmt: skip
        """Until one thing is true: the exit, a blocked read, silence, a port, a text (RE2), a command's end.

        A timeout is an event too (`event == "timeout"`); go on from `offset`.
        """
        from .types import WaitResult

        spec = wait_spec(exit=exit, input=input, quiet=quiet, port=port, text=text, done=done)
        return _typed(self.wait_for(spec, start, timeout), WaitResult)

    def wait_for(self, spec: str, start: int | None, timeout: float | None) -> Json:
        """`wait` in the command line's words; survives a daemon that is replaced meanwhile."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                answer: Json = self.host.call(
                    "wait", **{"session": self.id, "for": spec, "from": start, "timeout": left}
                )
                return answer
            except HoldfastError as e:
                if e.code != "host_gone":
                    raise

    def output(
        self, start: int = 0, *, follow: bool = False, end: int | None = None
    ) -> Iterator[Chunk]:
        """The output from an offset on, in order; with `follow` until the session ends.

        Whatever dies in between (the keeper's line, the daemon), reading goes on at the same offset.
        """
        if start < 0 or (end is not None and end < start):
            raise invalid(f"no output lies at offset {start if start < 0 else end}", "offsets begin at 0")
        at, goal = start, end
        while goal is None or at < goal:
            channel = self.open(read_only=True)
            try:
                if goal is None and not follow:
                    goal = max(at, (channel.welcome())["output"]["end"])
                    if goal == at:
                        return  # nothing yet: an empty range has no end to wait for
                for chunk in channel.read(at, goal):
                    yield chunk
                    at = chunk.end
                if channel.complete:
                    return
            except ConnectionError:
                continue  # the keeper went just now; its log is on disk
            finally:
                channel.close()

    def open(self, *, read_only: bool = False) -> Channel:
        """A direct line to the session's keeper, for streams that must not pass through the daemon."""
        _, fd = self.host.call_fd("open", session=self.id, read_only=read_only, via="sdk")
        return Channel(Line(fd))

    def kill(self, signal: str = "TERM", *, to: str | None = None, why: str | None = None) -> None:
        """Signal it: KILL and TERM the whole tree, INT and QUIT the foreground job, others the main program."""
        self.host.call("kill", session=self.id, signal=signal, target=to, why=why)

    def stop(self, grace: float | None = None, *, why: str | None = None) -> None:
        """End the whole tree: TERM, then KILL after `grace` seconds; returns when none is left."""
        self.host.call("stop", session=self.id, grace_s=grace, why=why)

    def restart(self) -> None:
        """A new generation from the same recipe; offsets go on."""
        self.host.call("restart", session=self.id)

    def rename(self, name: str) -> None:
        self.name = (self.host.call("rename", session=self.id, name=name))["name"]

    def remove(self) -> None:
        """Forget an ended session, its output too."""
        self.host.call("rm", session=self.id)

    def take(self, *, why: str | None = None) -> Json:
        """Take the controls; a human takes them from an agent, nobody from a human by surprise."""
        done: Json = self.host.call("take", session=self.id, why=why)
        return done

    def release(self, *, why: str | None = None) -> Json:
        """Give the controls back; whoever types next takes them."""
        done: Json = self.host.call("release", session=self.id, why=why)
        return done

    def hand(self, operator: str, *, note: str | None = None, why: str | None = None) -> Json:
        """Give the controls that one holds to another operator, with a note."""
        done: Json = self.host.call("hand", session=self.id, to=operator, note=note, why=why)
        return done

    def resize(self, cols: int, rows: int) -> None:
        self.host.call("resize", session=self.id, size=[cols, rows])


class Channel:
    """A stream of frames with a keeper (or with an ended session's log)."""

    def __init__(self, line: Line) -> None:
        self._line, self._decoder = line, frames.Decoder()
        self._frames: list[tuple[int, bytes]] = []
        self._seq = 0
        self.complete = False  # the asked range was delivered to its end

    def welcome(self) -> Json:
        while True:
            kind, payload = self._next()
            if kind == frames.WELCOME:
                return frames.parse_json(payload)
            if kind == frames.END:
                raise ConnectionResetError("the session's keeper closed the line")

    def _next(self) -> tuple[int, bytes]:
        while not self._frames:
            data = self._line.receive()
            if not data:
                return frames.END, b""
            self._frames = self._decoder.feed(data)
        return self._frames.pop(0)

    def read(self, start: int, end: int | None) -> Iterator[Chunk]:
        from .types import Chunk

        self._line.send(frames.read(start, frames.FOREVER if end is None else end))
        while True:
            kind, payload = self._next()
            if kind == frames.OUTPUT:
                offset, stream, data = frames.parse_output(payload)
                yield Chunk(offset, data, _STREAMS.get(stream, "terminal"))
            elif kind == frames.GAP:
                a, b = frames.parse_pair(payload)
                yield Chunk(a, b"", gap=(a, b))
            elif kind == frames.END:
                self.complete = bool(payload)
                return

    def send(self, data: bytes, epoch: int = 0) -> int:
        """Type; returns the epoch under which it was accepted."""
        self._seq += 1
        self._line.send(frames.input_frame(self._seq, epoch, data))
        while True:
            kind, payload = self._next()
            if kind == frames.ACK:
                return frames.parse_pair(payload)[1]
            if kind == frames.RESULT:
                error = frames.parse_json(payload).get("error")
                if error is None:
                    continue  # the answer to `seen` below
                if "controls" in error:  # the caller is told now: what it sends next, it sends knowing that
                    seen = {"op": "seen", "epoch": error["controls"]["epoch"]}
                    self._line.send(frames.message(frames.ACT, seen))
                raise from_dict(error)
            if kind == frames.END:
                raise HoldfastError("conflict", "the session has ended", "hold restart")

    def close(self) -> None:
        self._line.close()


def connect(
    home: str | None = None, *, autostart: bool = True, operator: str | None = None
) -> Host:
    """Connect to this machine's host, starting it if need be."""
    host = Host(home, autostart=autostart, operator=operator)
    host.call("ping")
    return host


def start_request(
    command: Sequence[str] | None, *, name: str | None, cwd: str | None, env: Mapping[str, str] | None, pipes: bool,
    size: tuple[int, int] | None, restart: str, idle_ttl: str | None, acts_as: str | None, why: str | None,
    pids_max: int | None, memory_max: int | None, log_max: int | None = None, isolate: Json | None = None,
    kernel: str | None = None, written_by: Sequence[str] = (),
) -> Json:  # fmt: skip
    """What the host needs to start something as if this process had: environment, folder, limits, umask."""
    umask = os.umask(0o077)
    os.umask(umask)
    return {
        "request": ids.new("req_"), "command": list(command) if command else None, "name": name,
        "cwd": os.path.abspath(cwd or os.getcwd()), "env": {**os.environ, **(env or {})}, "pipes": pipes,
        "size": list(size) if size else None, "restart": restart, "idle_ttl": idle_ttl, "acts_as": acts_as,
        "why": why, "umask": umask, "rlimits": own_limits(),
        "limits": {"pids": pids_max, "memory": memory_max, "log": log_max}, "isolate": isolate,
        "kernel": kernel, "written_by": list(written_by) or None,
    }  # fmt: skip


def isolation(isolate: bool, read: Sequence[str], write: Sequence[str], network: bool) -> Json | None:
    """What a start asks for of its isolation, or None; paths are taken from here."""
    if not isolate:
        if read or write or not network:
            raise invalid("what a program may see is said only of an isolated one", "add --isolate")
        return None
    here = [[os.path.abspath(os.path.expanduser(path)) for path in paths] for paths in (read, write)]
    return {"read": here[0], "write": here[1], "network": network}


def own_limits() -> dict[str, tuple[int, int]]:
    import resource

    names = (
        "RLIMIT_NOFILE",
        "RLIMIT_CORE",
        "RLIMIT_FSIZE",
        "RLIMIT_STACK",
        "RLIMIT_NPROC",
        "RLIMIT_CPU",
        "RLIMIT_AS",
    )
    return {n: resource.getrlimit(getattr(resource, n)) for n in names}


def wait_spec(
    *,
    exit: bool,
    input: bool,
    quiet: float | bool | None,
    port: int | None,
    text: str | None,
    done: str | None,
) -> str:
    chosen = []
    if exit:
        chosen.append("exit")
    if input:
        chosen.append("input")
    if quiet is not None and quiet is not False:
        chosen.append("quiet" if quiet is True else f"quiet={quiet:g}")
    chosen += [f"{k}={v}" for k, v in (("port", port), ("text", text), ("done", done)) if v is not None]
    if len(chosen) != 1:
        raise invalid("wait for exactly one thing", "exit, input, quiet, port, text or done")
    return chosen[0]


def plain_text(raw: bytes) -> str:
    """A terminal's bytes as text: its line ends are the terminal's doing, not the program's."""
    return raw.replace(b"\r\n", b"\n").decode("utf-8", "replace")


def _typed(value: object, kind: type[T]) -> T:
    import msgspec

    return msgspec.convert(value, kind)
