"""Lines of saves: for each, what its next change is against. Kept in memory, and found again from the store."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Generic, TypeVar

from ..model.limits import LINES_BYTES_MAX, LINES_MAX
from .encode import Change, Encoder, snapshot_due
from .value_codec import JSON, Codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

At = TypeVar("At")


class SaveChain(Generic[At]):
    """The saves of one run or thread, one at a time (`lock`). `at` is the last one, None before the first."""

    def __init__(self, codec: Codec = JSON) -> None:
        self._codec = codec
        self._encoder = Encoder(None, codec)
        self.lock = asyncio.Lock()
        self.at: At | None = None
        self.live: Any = None  # the owner's state in memory, if it keeps one; goes with the line
        self.hash = ""
        self.size = 0
        self._whole_bytes = self._delta_bytes = self._length = 0

    def begin(self, at: At, hash: str, kept: Mapping[str, bytes], records: list[int]) -> None:
        """Go on from a stored save: its bytes, and the sizes of the records it was restored from."""
        self._encoder = Encoder(kept, self._codec)
        self.at, self.hash, self.size = at, hash, sum(map(len, kept.values()))
        self._whole_bytes, self._delta_bytes, self._length = records[0], sum(records[1:]), len(records) - 1

    def change(self, state: Mapping[str, Any]) -> Change:
        """What saving this state takes, against `at` unless it is whole."""
        try:
            return self._encoder.change(state)
        except BaseException:
            self.lost()
            raise

    def lost(self) -> None:
        """The change was not stored, or what it is against is gone: the next one is whole."""
        self._encoder.forget()
        self.at = self.live = None

    def saved(self, at: At, change: Change) -> None:
        """The change is on disk as `at`."""
        self.at, self.hash, self.size = at, change.hash, change.size
        if change.whole:
            self._whole_bytes, self._delta_bytes, self._length = len(change.record), 0, 0
        else:
            self._delta_bytes += len(change.record)
            self._length += 1

    @property
    def due(self) -> bool:
        return self.at is not None and snapshot_due(self._whole_bytes, self._delta_bytes, self._length)

    def snapshot(self) -> dict[str, bytes]:
        """The bytes of the last save, to be stored whole; from here on it counts as stored so."""
        kept = self._encoder.kept()
        # Compressed it will be about as much smaller as the records were; a guess is enough to space snapshots.
        self._whole_bytes, self._delta_bytes, self._length = self._whole_bytes + self._delta_bytes, 0, 0
        return kept


class SaveChains(Generic[At]):
    """The lines in use; the ones unused for longest go when there are too many. Losing one costs one restore."""

    def __init__(self, codec: Codec = JSON) -> None:
        self._codec = codec
        self._lines: OrderedDict[Hashable, SaveChain[At]] = OrderedDict()

    def line(self, name: Hashable) -> SaveChain[At]:
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = SaveChain(self._codec)
            self._trim()
        self._lines.move_to_end(name)
        return line

    def forget(self, name: Hashable) -> None:
        self._lines.pop(name, None)

    def forget_if(self, test: Any) -> None:
        for name in [name for name in self._lines if test(name)]:
            del self._lines[name]

    def _trim(self) -> None:
        total = sum(line.size for line in self._lines.values())
        for name in list(self._lines)[:-1]:
            if len(self._lines) <= LINES_MAX and total <= LINES_BYTES_MAX:
                return
            if not self._lines[name].lock.locked():
                total -= self._lines.pop(name).size
