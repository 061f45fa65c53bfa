"""LangGraph's checkpoints on a Holdfast store: every save costs its change, and is on disk when it returns.

    with HoldfastSaver.open("sqlite:///work.db") as saver:             # or async with; or postgresql://…
        graph = builder.compile(checkpointer=saver)

One saver serves both faces from any thread and event loop: the store lives on an event loop of its own.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ..model.errors import HoldfastError, invalid
from .store_thread import LIST, OBJECT, PLAIN, Head, Stored, StoreThread, Threads, Write, shadow, squeeze, unsqueeze

try:
    from langchain_core.messages import BaseMessage
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
except ImportError:
    raise HoldfastError(
        "failed", "the LangGraph integration needs LangGraph", "pip install 'holdfast[langgraph]'"
    ) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from typing import Self

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

# A checkpoint is kept as one state: its own fields and its channels' values, told apart by their first letter.
_FIELD, _CHANNEL = "f", "c"


_is_message: dict[type, bool] = {}  # asked for every message at every save
_fields, _extra = attrgetter("__dict__"), attrgetter("__pydantic_extra__")


def _message(kind: type) -> bool:
    known = _is_message.get(kind)
    if known is None:
        known = issubclass(kind, BaseMessage) and kind.__module__.startswith("langchain_core.messages")
        _is_message[kind] = known
    return known


def _view(part: Any) -> Any:
    """A chat message as what is written of it: its fields, one of which is its type. Anything else as it is.

    The fields are the message's own dictionary: looking at ten thousand messages makes no new object for each, whose
    number alone would make a save slower than its change. A dictionary that could be taken for them is told apart.
    """
    if _message(type(part)):
        return (type(part), part.__dict__, part.__pydantic_extra__) if part.__pydantic_extra__ else part.__dict__
    return (dict, part) if type(part) is dict and "response_metadata" in part else part


def _views(parts: list[Any]) -> list[Any]:
    if all(map(_message, set(map(type, parts)))) and not any(map(_extra, parts)):
        return list(map(_fields, parts))
    return [_view(part) for part in parts]


def _shadow(part: Any) -> Any:
    view = _view(part)
    if view is part or type(view) is dict:
        return shadow(view)
    return (view[0], *map(shadow, view[1:]))


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


class _SerdeCodec:
    """Values as LangGraph's serializer writes them: a list by its elements, an object by its entries, in order."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

    def split(self, value: Any) -> tuple[bytes, list[Any]]:
        if type(value) is list:
            return LIST, value
        if type(value) is dict and all(type(key) is str for key in value):
            return OBJECT, list(value.items())
        return PLAIN, [value]

    def unit(self, tag: bytes, part: Any) -> bytes:
        name = b""
        if tag == OBJECT:
            name, part = _framed(part[0].encode("utf-8", "surrogatepass")), part[1]
        kind, data = self._serde.dumps_typed(part)
        return name + _framed(kind.encode()) + _framed(data)

    def shadow(self, tag: bytes, part: Any) -> Any:
        return (part[0], _shadow(part[1])) if tag == OBJECT else _shadow(part)

    def views(self, tag: bytes, parts: list[Any]) -> list[Any]:
        return [(name, _view(part)) for name, part in parts] if tag == OBJECT else _views(parts)

    def join(self, kept: bytes) -> Any:
        tag, at, items = kept[:1], 1, []
        while at < len(kept):
            name = b""
            if tag == OBJECT:
                name, at = _frame_at(kept, at)
            kind, at = _frame_at(kept, at)
            data, at = _frame_at(kept, at)
            value = self._serde.loads_typed((kind.decode(), data))
            items.append((name.decode("utf-8", "surrogatepass"), value) if tag == OBJECT else value)
        if tag == PLAIN:
            return items[0]
        return dict(items) if tag == OBJECT else items


def _frame_at(kept: bytes, at: int) -> tuple[bytes, int]:
    end = at + 4 + int.from_bytes(kept[at : at + 4], "big")
    return kept[at + 4 : end], end


class HoldfastSaver(BaseCheckpointSaver[int]):
    """A LangGraph checkpointer, sync and async. `close()` it, or use it in a `with` or `async with`."""

    def __init__(self, url: str, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._portal = StoreThread(url)
        self._opened: Threads | None = None
        self._opened_for: object = None  # the serializer: `with_allowlist` makes a copy of this saver with another one

    @classmethod
    def open(cls, url: str, *, serde: SerializerProtocol | None = None) -> Self:
        """A saver on `sqlite:///FILE` or `postgresql://…`; a file is this saver's own."""
        return cls(url, serde=serde)

    def __enter__(self) -> Self:
        self._threads()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        import asyncio

        await asyncio.to_thread(self._threads)
        return self

    async def __aexit__(self, *exc: object) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Finish what is under way and let go of the store."""
        self._portal.close()
        self._opened = None

    def _threads(self) -> Threads:
        if self._opened is None or self._opened_for is not self.serde:
            store = self._portal.start()
            self._opened, self._opened_for = Threads(store, _SerdeCodec(self.serde)), self.serde
            self._portal.before_close(self._opened.drain)
        return self._opened

    # -- what is asked, in our words -------------------------------------------------------------------------------

    def _put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> tuple[Any, RunnableConfig]:
        thread, ns, parent = _place(config)
        state = {_FIELD + name: value for name, value in checkpoint.items() if name != "channel_values"}
        state.update({_CHANNEL + name: value for name, value in checkpoint["channel_values"].items()})
        told = get_checkpoint_metadata(config, metadata)
        graph_run = told.get("run_id")
        work = self._threads().put(
            thread,
            ns,
            checkpoint["id"],
            parent=parent,
            state=state,
            meta=self._dump(told),
            graph_run=None if graph_run is None else str(graph_run),
        )
        return work, _config(thread, ns, checkpoint["id"])

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Any:
        thread, ns, id = _place(config)
        if not id:
            raise invalid("writes belong to a checkpoint, and none is named", "put the checkpoint first")
        rows = []
        for n, (channel, value) in enumerate(writes):
            kind, data = self.serde.dumps_typed(value)
            rows.append(Write(task_id, WRITES_IDX_MAP.get(channel, n), task_path, channel, kind, squeeze(data)))
        return self._threads().put_writes(thread, ns, id, rows)

    def _list(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> AsyncIterator[Stored]:
        thread, ns, id = (None, None, None)  # type: tuple[str | None, str | None, str | None]
        if config is not None:
            asked = config["configurable"]
            thread, ns, id = str(asked["thread_id"]), asked.get("checkpoint_ns"), get_checkpoint_id(config)

        def wanted(head: Head) -> bool:
            meta = self._load(head.meta) if filter else {}
            return all(meta.get(name) == value for name, value in (filter or {}).items())

        until = get_checkpoint_id(before) if before else None
        return self._threads().listed(thread, ns, id=id, before=until, limit=limit, wanted=wanted)

    def _tuple(self, found: Stored) -> CheckpointTuple:
        head = found.head
        state = self._threads().values(found.kept)
        fields: Any = {name[1:]: value for name, value in state.items() if name[0] == _FIELD}
        fields["channel_values"] = {name[1:]: value for name, value in state.items() if name[0] == _CHANNEL}
        return CheckpointTuple(
            config=_config(head.thread, head.ns, head.id),
            checkpoint=fields,
            metadata=self._load(head.meta),
            parent_config=_config(head.thread, head.ns, head.parent) if head.parent else None,
            pending_writes=[
                (w.task, w.channel, self.serde.loads_typed((w.kind, unsqueeze(w.data)))) for w in found.writes
            ],
        )

    def _dump(self, value: Any) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        return squeeze(_framed(kind.encode()) + data)

    def _load(self, stored: bytes) -> Any:
        data = unsqueeze(stored)
        kind, at = _frame_at(data, 0)
        return self.serde.loads_typed((kind.decode(), data[at:]))

    @staticmethod
    def _spread(found: Stored, saver: HoldfastSaver) -> bool:
        """Whether a channel's value lives in its ancestors' writes (a DeltaChannel), so that they must stay."""
        counters = saver._load(found.head.meta).get("counters_since_delta_snapshot") or {}
        return any(_CHANNEL + name not in found.kept for name in counters)

    def _prune(self, thread_ids: Sequence[str], strategy: str) -> Any:
        if strategy == "keep_latest":
            return self._threads().prune(list(thread_ids), lambda found: self._spread(found, self))
        if strategy == "delete":
            return self._delete(list(thread_ids))
        raise invalid(f"there is no way to prune called {strategy[:40]!r}", "keep_latest or delete")

    async def _delete(self, thread_ids: list[str]) -> None:
        for thread in thread_ids:
            await self._threads().delete(thread)

    # -- the two faces ----------------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        work, saved = self._put(config, checkpoint, metadata)
        self._portal.call(work)
        return saved

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        work, saved = self._put(config, checkpoint, metadata)
        await self._portal.acall(work)
        return saved

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._portal.call(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._portal.acall(self._put_writes(config, writes, task_id, task_path))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = self._portal.call(self._threads().get(*_place(config)))
        return None if found is None else self._tuple(found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await self._portal.acall(self._threads().get(*_place(config)))
        return None if found is None else self._tuple(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        for found in self._portal.iterate(self._list(config, filter, before, limit)):
            yield self._tuple(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in self._portal.aiterate(self._list(config, filter, before, limit)):
            yield self._tuple(found)

    def delete_thread(self, thread_id: str) -> None:
        self._portal.call(self._threads().delete(str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._portal.acall(self._threads().delete(str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._portal.call(self._threads().delete_runs([str(r) for r in run_ids]))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._portal.acall(self._threads().delete_runs([str(r) for r in run_ids]))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._portal.call(self._threads().copy(str(source_thread_id), str(target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._portal.acall(self._threads().copy(str(source_thread_id), str(target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._portal.call(self._prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._portal.acall(self._prune(thread_ids, strategy))


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    asked = config["configurable"]
    return str(asked["thread_id"]), asked.get("checkpoint_ns") or "", get_checkpoint_id(config)


def _config(thread: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}
