"""A session from Python: look, type, run commands, wait, read, end. The one source; session_sync.py is made from it."""

from __future__ import annotations

import base64
import time

from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.limits import EXEC_OUTPUT_BYTES
from .._io.async_socket import AsyncKeeperChannel
from ..requests import plain_text, typed, wait_spec
from .channel import AsyncChannel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from ..types import Chunk, ExecResult, Screen, SessionStatus, WaitResult
    from .host import AsyncHost

    Json = dict[str, Any]


class AsyncSession:
    """One session of a host. Holding this object holds nothing: the session lives on its own."""

    def __init__(self, host: AsyncHost, id: str, name: str) -> None:
        self.host, self.id, self.name = host, id, name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.id}>"

    async def status(self) -> SessionStatus:
        """The authoritative answer, observed now."""
        from ..types import SessionStatus

        return typed(await self.host.call("status", session=self.id), SessionStatus)

    async def screen(self) -> Screen:
        """The rendered screen."""
        from ..types import Screen

        return typed(await self.host.call("screen", session=self.id), Screen)

    async def send(
        self,
        text: str | bytes = b"",
        *,
        enter: bool = False,
        keys: Sequence[str] = (),
        secret: bool = False,
        eof: bool = False,
        why: str | None = None,
    ) -> Json:
        """Type into the session, once; takes free controls for its duration. A daemon that dies meanwhile is asked
        again, and `repeated` says that it had been typed by then."""
        return await self.send_raw(text, enter=enter, keys=keys, secret=secret, eof=eof, why=why)

    async def send_raw(
        self,
        text: str | bytes = b"",
        *,
        enter: bool = False,
        keys: Sequence[str] = (),
        secret: bool = False,
        eof: bool = False,
        why: str | None = None,
        approval: float | None = None,
    ) -> Json:
        """`send` as the host answers it. With `approval` it waits so many seconds for a yes, where it needs one; then
        it is `waiting_for_approval`, and typed when the yes comes."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
        data += await self.keys(keys)
        payload = base64.b64encode(data).decode()
        standing = {} if approval is None else {"standing": True, "timeout": approval}
        done: Json = await self.host.call(
            "send", session=self.id, data=payload, enter=enter, secret=secret, eof=eof, why=why, **standing
        )
        return done

    async def keys(self, names: Sequence[str]) -> bytes:
        """The bytes of keys; arrows depend on the mode that the program has put its terminal in."""
        if not names:
            return b""
        from ...term.key_names import encode

        modes = await self.host.call("keys", session=self.id)
        cursor, enter = modes["app_cursor"], modes["enter"]
        try:
            return b"".join(encode(name, app_cursor=cursor, enter=enter) for name in names)
        except ValueError as e:
            raise invalid(str(e), "Enter, Tab, Escape, Up, F5, C-c, M-x …") from None

    async def exec(
        self,
        *command: str,
        timeout: float | None = None,
        max_output: int = EXEC_OUTPUT_BYTES,
        why: str | None = None,
    ) -> ExecResult:
        """Run a command in the session's shell: one argument is shell source, several are words. In a kernel: code."""
        return await self._exec_result(await self.exec_raw(list(command), timeout, why), max_output)

    async def exec_raw(
        self, words: list[str], timeout: float | None, why: str | None, exec_id: str | None = None
    ) -> Json:
        """`exec` as the host answers it, without the output; a daemon that dies meanwhile is not noticed. With a
        timeout, what needs approval is `waiting_for_approval` when the time is up, and runs when a person says yes."""
        exec_id = exec_id or ids.new("exe_")
        deadline = None if timeout is None else time.monotonic() + timeout
        lost = False
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            known: Json = {"session": self.id, "exec_id": exec_id, "timeout": left}
            try:
                if lost:  # the command did not die with the daemon: its record says how it stands
                    answer: Json = await self.host.call("exec_result", wait=True, **known)
                else:
                    answer = await self.host.call("exec", words=words, why=why, standing=timeout is not None, **known)
                return answer
            except HoldfastError as e:
                if e.code == "host_gone":
                    lost = True
                elif lost and e.code == "not_found":
                    lost = False  # it had not been typed yet
                else:
                    raise

    async def exec_result(
        self, exec_id: str, *, wait: bool = False, timeout: float | None = None, max_output: int = EXEC_OUTPUT_BYTES
    ) -> ExecResult:
        """How a command stands that was started before; with `wait`, once it ends or blocks."""
        result = await self.host.call("exec_result", session=self.id, exec_id=exec_id, wait=wait, timeout=timeout)
        return await self._exec_result(result, max_output)

    async def _exec_result(self, result: Json, max_output: int) -> ExecResult:
        from ..types import ExecResult

        raw, omitted = await self.exec_output(result, max_output)
        return ExecResult(
            exec_id=result["exec_id"],
            state=result["state"],
            exit_code=result["exit_code"],
            output=plain_text(raw),
            raw=raw,
            start=result["start"],
            end=result["end"],
            omitted_bytes=omitted,
            duration_ms=result["duration_ms"],
            cwd=result["cwd"],
            prompt=result["prompt"],
            outputs=result.get("outputs") or [],
            error=result.get("error"),
            execution_count=result.get("execution_count"),
            outputs_omitted=result.get("outputs_omitted"),
            ask=result.get("ask"),
        )

    async def exec_output(self, result: Json, max_output: int) -> tuple[bytes, int]:
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
            parts += [chunk.data async for chunk in self.output(a, end=b)]
        raw = b"".join(parts)
        return raw, end - start - len(raw)

    async def wait(
        self,
        *,
        exit: bool = False,
        input: bool = False,
        quiet: float | bool | None = None,
        port: int | None = None,
        text: str | None = None,
        done: str | None = None,
        answer: str | None = None,
        start: int | None = None,
        timeout: float | None = None,
    ) -> WaitResult:
        """Until one thing is true: the exit, a blocked read, silence, a port, a text (RE2), a command's end, a person's
        answer to an inbox item (`detail` is the item).

        A timeout is an event too (`event == "timeout"`); go on from `offset`.
        """
        from ..types import WaitResult

        spec = wait_spec(exit=exit, input=input, quiet=quiet, port=port, text=text, done=done, answer=answer)
        return typed(await self.wait_for(spec, start, timeout), WaitResult)

    async def wait_for(self, spec: str, start: int | None, timeout: float | None) -> Json:
        """`wait` in the command line's words; survives a daemon that is replaced meanwhile."""
        if spec.startswith("answer="):
            return await self.host.wait_raw(spec.removeprefix("answer="), timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                answer: Json = await self.host.call("wait", session=self.id, until=spec, start=start, timeout=left)
                return answer
            except HoldfastError as e:
                await self.host.again(e, deadline)

    async def output(self, start: int = 0, *, follow: bool = False, end: int | None = None) -> AsyncIterator[Chunk]:
        """The output from an offset on, in order; with `follow` until the session ends.

        Whatever dies in between (the keeper's line, the daemon), reading goes on at the same offset. While the keeper
        is stopped or starved, what is on disk comes; with `follow` the rest when the keeper goes on.
        """
        if start < 0 or (end is not None and end < start):
            raise invalid(f"no output lies at offset {start if start < 0 else end}", "offsets begin at 0")
        at, goal = start, end
        while goal is None or at < goal:
            channel = await self._open(read_only=True, sure=True)
            try:
                if goal is None and not follow:
                    goal = max(at, (await channel.welcome())["output"]["end"])
                    if goal == at:
                        return  # nothing yet: an empty range has no end to wait for
                async for chunk in channel.read(at, goal):
                    yield chunk
                    at = chunk.end
                if channel.complete:
                    return
            except ConnectionError:
                continue  # the keeper went just now; its log is on disk
            finally:
                channel.close()

    async def open(self, *, read_only: bool = False) -> AsyncChannel:
        """A direct line to the session's keeper, for streams that must not pass through the daemon."""
        return await self._open(read_only=read_only)

    async def _open(self, **how: object) -> AsyncChannel:
        """`sure`: where the keeper does not answer now, a line to the log on disk, until it does."""
        _, fd = await self.host.call_fd("open", session=self.id, via="sdk", **how)
        return AsyncChannel(AsyncKeeperChannel(fd))

    async def kill(self, signal: str = "TERM", *, to: str | None = None, why: str | None = None) -> None:
        """Signal it: KILL and TERM the whole tree, INT and QUIT the foreground job, others the main program."""
        await self.host.call("kill", session=self.id, signal=signal, target=to, why=why)

    async def stop(self, grace: float | None = None, *, why: str | None = None) -> None:
        """End the whole tree: TERM, then KILL after `grace` seconds; returns when none is left."""
        await self.host.call("stop", session=self.id, grace_s=grace, why=why)

    async def restart(self) -> None:
        """A new generation from the same recipe; offsets go on."""
        await self.host.call("restart", session=self.id)

    async def rename(self, name: str) -> None:
        self.name = (await self.host.call("rename", session=self.id, name=name))["name"]

    async def remove(self) -> None:
        """Forget an ended session, its output too."""
        await self.host.call("rm", session=self.id)

    async def take(self, *, force: bool = False, why: str | None = None) -> Json:
        """Take the controls: a human at once from an agent. A human who holds them is asked first; `force` is for
        another human who does not wait for the answer."""
        done: Json = await self.host.call("take", session=self.id, force=force, why=why)
        return done

    async def release(self, *, why: str | None = None) -> Json:
        """Give the controls back; whoever types next takes them."""
        done: Json = await self.host.call("release", session=self.id, why=why)
        return done

    async def hand(self, operator: str | None = None, *, note: str | None = None, why: str | None = None) -> Json:
        """Give the controls that one holds to another operator, with a note: back to whom they were taken from,
        unless told to whom."""
        done: Json = await self.host.call("hand", session=self.id, to=operator, note=note, why=why)
        return done

    async def resize(self, cols: int, rows: int) -> None:
        await self.host.call("resize", session=self.id, size=[cols, rows])
