"""Threads: the checkpoints that an agent framework makes of a conversation, kept as changes on this store."""

from __future__ import annotations

import asyncio
from typing import Any

from ...delta import encode
from ...delta.save_chain import SaveChains
from ...model.work.effects import check_word
from ..background import Background
from . import rows
from .rows import BaseGone, Head, Stored, Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from ...delta.save_chain import SaveChain
    from ...delta.value_codec import Codec
    from ...store.base import Store


class Threads:
    """Save, find, list and remove; one instance per event loop. `codec` turns the framework's values into bytes."""

    def __init__(self, store: Store, codec: Codec) -> None:
        self._store, self._codec = store, codec
        self._lines: SaveChains[str] = SaveChains(codec)
        self._background = Background("a snapshot")

    async def put(
        self,
        thread: str,
        ns: str,
        id: str,
        *,
        parent: str | None,
        state: Mapping[str, Any],
        meta: bytes,
        graph_run: str | None,
    ) -> None:
        check_word("a thread's id", thread)
        check_word("a checkpoint's id", id)
        line = self._lines.line((thread, ns))
        async with line.lock:
            if line.at is None:
                await self._begin(line, thread, ns, parent)
            for attempt in (1, 2):
                change = line.change(state)
                new = Head(thread, ns, id, parent, meta, change.hash)
                base = None if change.whole else line.at
                put = (new, graph_run, change.record, base, line.hash)
                try:
                    await self._store.write(lambda put=put: rows.put(*put))  # type: ignore[misc]
                except BaseGone:
                    line.lost()
                    if attempt == 2:
                        raise
                    continue
                except BaseException:
                    line.lost()
                    raise
                break
            line.saved(id, change)
            if line.due:
                self._background.add(self._compact(thread, ns, id, change.hash, line.snapshot()))

    async def _begin(self, line: SaveChain[str], thread: str, ns: str, parent: str | None) -> None:
        """Find out what the thread's last state was, so that the next save is a change of it."""
        if parent is None:
            return
        found = await self._store.read(lambda: rows.stored(thread, ns, parent, writes=False))
        if found is not None:
            line.begin(found.head.id, found.head.hash, found.kept, found.sizes)

    async def _compact(self, thread: str, ns: str, id: str, hash: str, kept: dict[str, bytes]) -> None:
        record = await asyncio.to_thread(encode.whole, kept)  # compressing leaves the loop free
        await self._store.write(lambda: rows.compact(thread, ns, id, hash, record))

    async def drain(self) -> None:
        """Wait for what is under way in the background."""
        await self._background.drain()

    async def get(self, thread: str, ns: str, id: str | None) -> Stored | None:
        return await self._store.read(lambda: rows.stored(thread, ns, id))

    def values(self, kept: Mapping[str, bytes]) -> dict[str, Any]:
        return encode.values(kept, self._codec)

    async def listed(
        self,
        thread: str | None,
        ns: str | None,
        *,
        id: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        wanted: Callable[[Head], bool] = lambda head: True,
    ) -> AsyncIterator[Stored]:
        """Newest first; `wanted` is asked before a state is restored."""
        after: tuple[str, str, str] | None = None
        left = limit
        while left is None or left > 0:
            where = (thread, ns, id, before, after)
            page = await self._store.read(lambda where=where: rows.page(*where))  # type: ignore[misc]
            for head in page:
                if left is not None and left <= 0:
                    return
                if not wanted(head):
                    continue
                found = await self.get(head.thread, head.ns, head.id)
                if found is not None:  # else removed since
                    left = None if left is None else left - 1
                    yield found
            if len(page) < rows.PAGE:
                return
            after = (page[-1].thread, page[-1].ns, page[-1].id)

    async def put_writes(self, thread: str, ns: str, id: str, writes: list[Write]) -> None:
        check_word("a thread's id", thread)
        await self._store.write(lambda: rows.put_writes(thread, ns, id, writes))

    async def delete(self, thread: str) -> None:
        await self._store.write(lambda: rows.remove_thread(thread))
        self._forget({thread})

    async def delete_runs(self, graph_runs: Iterable[str]) -> None:
        wanted = list(graph_runs)
        self._forget(await self._store.write(lambda: rows.remove_runs(wanted)))

    async def copy(self, source: str, target: str) -> None:
        check_word("a thread's id", target)
        await self._store.write(lambda: rows.copy_thread(source, target))
        self._forget({target})

    async def prune(self, threads: Iterable[str], needs_ancestors: Callable[[Stored], bool]) -> None:
        """Keep the latest checkpoint of each namespace, and, where its values are spread over them, its ancestors."""
        for thread in threads:
            known = await self._store.read(lambda thread=thread: rows.heads(thread))  # type: ignore[misc]
            going: dict[str, set[str]] = {}
            for ns in {head.ns for head in known}:
                line = [head for head in known if head.ns == ns]
                keep = await self._kept_by_pruning(line, needs_ancestors)
                going[ns] = {head.id for head in line} - keep
            await self._store.write(lambda thread=thread, going=going: rows.remove(thread, going))  # type: ignore[misc]
            self._forget({thread})

    async def _kept_by_pruning(self, line: list[Head], needs_ancestors: Callable[[Stored], bool]) -> set[str]:
        by_id = {head.id: head for head in line}
        at: str | None = line[0].id  # newest first
        keep: set[str] = set()
        while at is not None and at in by_id and at not in keep:
            keep.add(at)
            found = await self.get(by_id[at].thread, by_id[at].ns, at)
            if found is None or not needs_ancestors(found):
                break
            at = by_id[at].parent
        return keep

    def _forget(self, threads: Iterable[str]) -> None:
        gone = set(threads)
        self._lines.forget_if(lambda name: name[0] in gone)
