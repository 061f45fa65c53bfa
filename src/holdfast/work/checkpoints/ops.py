"""The calls for checkpoints, replay and memory: part of `Work`, in a file of their own."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from ...api.operation import find
from ...model import ids
from ...model.errors import invalid
from ...model.limits import WINDOW_TOKENS
from ...model.work.effects import check_word
from ...store.base import Store
from ...wire import json_values
from ..artifacts.rows import check_hash
from . import rows
from .checkpoints import Checkpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..memory.window import Memory

Json = dict[str, Any]
_LISTED_MAX = 1000  # checkpoints or entries in one answer


class CheckpointCalls:
    """Needs what `Work` has: `store`, `cache`, `by`, `_run`."""

    store: Store
    cache: str | None
    by: str
    _checkpoints: Checkpoints | None = None
    _memory: Memory | None = None

    async def _run(self, run: str) -> str:
        raise NotImplementedError

    @property
    def checkpoints(self) -> Checkpoints:
        if self._checkpoints is None:
            self._checkpoints = Checkpoints(self.store)
        return self._checkpoints

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            from ...store.memory_cache import open_cache
            from ..memory.window import Memory

            self._memory = Memory(self.store, open_cache(self.cache), self.checkpoints)
        return self._memory

    def _logged(self, name: str, args: Json) -> None:
        """After a call: a run whose log has grown may be due for a checkpoint, also when its agent never saves one."""
        size = grown(name, args)
        if size is not None:
            self.checkpoints.noticed(args["run"], size)

    async def aclose(self) -> None:
        """Finish what runs in the background. The store is its opener's to close."""
        if self._checkpoints is not None:
            await self._checkpoints.drain()
        if self._memory is not None:
            await self._memory.close()

    # -- checkpoints ------------------------------------------------------------------------------------------------

    async def checkpoint_save(
        self,
        *,
        run: str,
        state: Json | None = None,
        replace: bool = False,
        label: str | None = None,
        sent: str | None = None,
        locked: bool = False,
        epoch: int | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A milestone: the run's state with these fields set; `replace`: only these. `locked` makes it while the log
        cannot go on, for a client that lost a race against it. Large fields come first, in pieces, as for
        `checkpoint_put`; `sent` is their hash."""
        saved = await self.checkpoints.save(
            await self._run(run),
            state,
            replace=replace,
            epoch=epoch,
            label=_label(label),
            by=by or self.by,
            request=request or ids.new("req_"),
            sent=None if sent is None else check_hash(sent),
            locked=locked,
        )
        return saved.describe()

    async def checkpoint_put(
        self,
        *,
        run: str,
        hash: str,
        size: int,
        log_upto: int,
        record: str = "",
        sent: str | None = None,
        base: int | None = None,
        base_hash: str = "",
        label: str | None = None,
        epoch: int | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A milestone whose change the client has worked out; refused (`conflict`) if the log went on meanwhile.

        A large record is sent as the pieces of a content first (`artifact_piece`), and `sent` is its hash.
        """
        if sent is not None:
            check_hash(sent)
        try:
            raw = base64.b64decode(record, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise invalid("a record comes as base64", "encode it first") from None
        if len(str(hash)) != 64 or size < 0:
            raise invalid("a record comes with the SHA-256 and the size of its state", "upgrade the client")
        new = rows.New(
            await self._run(run),
            "milestone",
            _label(label),
            by or self.by,
            request or ids.new("req_"),
            int(log_upto),
            base,
            str(base_hash),
            str(hash),
            int(size),
            raw,
        )
        return (await self.checkpoints.put(new, epoch, sent)).describe()

    async def checkpoint_made(self, *, run: str, request: str, by: str | None = None) -> Json | None:
        """The one that this very request saved before, without its state; or null."""
        run = await self._run(run)
        found = await self.store.read(lambda: rows.made(run, request))
        return None if found is None else found.describe()

    async def checkpoint_records(self, *, run: str, seq: int | None = None, by: str | None = None) -> Json:
        """One without its state: the records it is made of, oldest first, for whoever puts it together in pieces."""
        run = await self._run(run)
        found, records = await self.store.read(lambda: rows.lengths(run, seq))
        return {**found.describe(), "records": [{"seq": n, "length": length} for n, length in records]}

    async def checkpoint_part(self, *, run: str, seq: int, piece: int, by: str | None = None) -> Json:
        """A piece of one record, base64."""
        run = await self._run(run)
        raw = await self.store.read(lambda: rows.part(run, int(seq), int(piece)))
        return {"data": base64.b64encode(raw).decode()}

    async def checkpoint_ls(self, *, run: str, limit: int = _LISTED_MAX, by: str | None = None) -> list[Json]:
        """The latest ones, oldest first."""
        run, most = await self._run(run), max(1, min(int(limit), _LISTED_MAX))
        return await self.store.read(lambda: rows.listing(run, most))

    async def checkpoint_show(
        self, *, run: str, seq: int | None = None, at_most: int | None = None, by: str | None = None
    ) -> Json:
        """One with its state; the latest without a number. A state over `at_most` bytes is left out (null)."""
        run = await self._run(run)
        if at_most is not None:
            known = await self.store.read(lambda: rows.wanted(run, seq))
            if known.size > at_most:
                return {**known.describe(), "state": None}
        found, state = await self.checkpoints.show(run, seq)
        return {**found.describe(), "state": state}

    async def checkpoint_diff(
        self, *, run: str, seq: int, other: int | None = None, other_run: str | None = None, by: str | None = None
    ) -> Json:
        """From one to another; of the same run unless said otherwise."""
        second = None if other_run is None else await self._run(other_run)
        return await self.checkpoints.diff(await self._run(run), seq, other, second)

    async def checkpoint_restore(
        self,
        *,
        run: str,
        seq: int,
        at_most: int | None = None,
        epoch: int | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Its state is the run's state again: a new checkpoint, and nothing that was done is undone."""
        saved, state = await self.checkpoints.restore(
            await self._run(run), seq, epoch=epoch, by=by or self.by, request=request or ids.new("req_")
        )
        return {**saved.describe(), "state": None if at_most is not None and saved.size > at_most else state}

    async def checkpoint_fork(
        self,
        *,
        run: str,
        seq: int | None = None,
        label: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A new run that begins where this checkpoint stands."""
        run, asked, who = await self._run(run), request or ids.new("req_"), by or self.by
        return await self.store.write(lambda: rows.fork(run, seq, label=_label(label), by=who, request=asked))

    async def checkpoint_policy(self, *, run: str, entries: int, size: int, by: str | None = None) -> Json:
        """Save from the log every so many entries or bytes; 0 switches a measure off."""
        if entries < 0 or size < 0:
            raise invalid("a policy counts entries and bytes", "0 switches one off")
        run = await self._run(run)
        await self.store.write(lambda: rows.set_policy(run, entries, size))
        self.checkpoints.look_soon(run)
        return {"run": run, "every_entries": entries, "every_bytes": size}

    async def state_at(
        self, *, run: str, position: int | None = None, at_most: int | None = None, by: str | None = None
    ) -> Json:
        """The state at a position of the log, rebuilt; nothing is executed. Over `at_most` bytes it is left out."""
        state, at, digest = await self.checkpoints.state_at(await self._run(run), position)
        large = at_most is not None and len(msgspec.json.encode(state)) > at_most
        return {"run": run, "at": at, "hash": digest, "state": None if large else state}

    async def history(
        self, *, run: str, at: int | None = None, after: int = 0, limit: int = _LISTED_MAX, by: str | None = None
    ) -> Json:
        """What was thought, done and seen, in order; with `at` the state then, too."""
        most = max(1, min(int(limit), _LISTED_MAX))
        return await self.checkpoints.history(await self._run(run), at, after, most)

    # -- memory -----------------------------------------------------------------------------------------------------

    async def memory_append(
        self,
        *,
        run: str,
        message: Any,
        epoch: int | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A message more; on disk when this returns."""
        return await self.memory.append(
            await self._run(run),
            message,
            epoch=epoch,
            why=_reason(why),
            by=by or self.by,
            request=request or ids.new("req_"),
        )

    async def memory_window(self, *, run: str, max_tokens: int = WINDOW_TOKENS, by: str | None = None) -> Json:
        """The newest messages that fit a number of tokens (an estimate), pinned ones always."""
        return await self.memory.window(await self._run(run), int(max_tokens))

    async def memory_set(
        self,
        *,
        run: str,
        name: str,
        value: Any = None,
        ttl_s: float | None = None,
        epoch: int | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Keep a scratch value; `ttl_s` of 0 forgets it."""
        return await self.memory.set(
            await self._run(run),
            name,
            value,
            ttl_s=ttl_s,
            epoch=epoch,
            why=_reason(why),
            by=by or self.by,
            request=request or ids.new("req_"),
        )

    async def memory_get(self, *, run: str, name: str, by: str | None = None) -> Json:
        return await self.memory.get(await self._run(run), name)


def grown(name: str, args: Json) -> int | None:
    """About how many bytes a call has added to its run's log; None: it does not add to it."""
    kind = find(name)
    if kind is None or "log" not in kind.row.changes:
        return None
    if name.startswith("artifact_"):  # the log has the reason, where one was given
        return len(str(args["why"])) if args.get("why") else None
    body = args.get("body") or args.get("message") or args.get("value") or ""
    return len(str(body)) if isinstance(body, (str, dict)) else 100


def _reason(why: str | None) -> str | None:
    return json_values.said(why, "the reason")


def _label(label: str | None) -> str | None:
    return None if not label else check_word("a label", label)
