"""The same act again and again: past a burst it is counted, and the record gets one entry that stands for all of them.

Who takes and releases in a loop, or drags a window's corner, would otherwise fill the journal with what says nothing
new. Nothing is left without a name: the entry says who, how often, and from which epoch, offset and time to which.
"""

from __future__ import annotations

from ...model.limits import RECORD_BURST, RECORD_WINDOW_S, RECORD_WINDOWS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

# What changes nothing for anybody else. A takeover that takes something from somebody (the controls, input that was not
# read yet), a hand-over, a stop are always told one by one.
_KINDS = ("take", "release", "resize", "signal", "attach", "detach", "end_input")


class _Window:
    __slots__ = ("count", "entry", "until")

    def __init__(self, until: float) -> None:
        self.until, self.count = until, 0
        self.entry: Json | None = None  # what stands for those past the burst


class Repeats:
    """By kind and operator; `moment` is monotonic."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], _Window] = {}

    def counted(self, entry: Json, moment: float) -> bool:
        """Whether this entry need not be written now: it is part of one that will be."""
        if entry["kind"] not in _KINDS or entry.get("from") or entry.get("flushed") or not entry["operator"]:
            return False
        # Which signal it was is what matters of one: each has a count of its own.
        window = self._past_burst(entry["kind"] + str(entry.get("signal") or ""), entry["operator"], moment)
        if window is None:
            return False
        first = window.entry or entry
        window.entry = {
            **entry,
            "at": first["at"],
            "epoch": first["epoch"],
            "offset": first["offset"],
            "until": entry["at"],
            "to_epoch": entry["epoch"],
            "to_offset": entry["offset"],
            "repeated": first.get("repeated", 0) + 1,
        }
        return True

    def often(self, kind: str, operator: str, moment: float) -> bool:
        """Count one more, and say whether that is past the burst."""
        return self._past_burst(kind, operator, moment) is not None

    def _past_burst(self, kind: str, operator: str, moment: float) -> _Window | None:
        key = (kind, operator)
        window = self._windows.get(key)
        if window is None or (moment >= window.until and window.entry is None):
            if len(self._windows) >= RECORD_WINDOWS_MAX:
                self._windows = {k: w for k, w in self._windows.items() if w.entry or moment < w.until}
                if len(self._windows) >= RECORD_WINDOWS_MAX:
                    return None  # so many hands at once: each of their acts is written
            window = self._windows[key] = _Window(moment + RECORD_WINDOW_S)
        window.count += 1
        return window if window.count > RECORD_BURST else None

    def due(self) -> float:
        """When the first entry that stands for many is to be written; 0 when there is none."""
        if not self._windows:  # asked in every turn of a keeper's loop
            return 0.0
        return min((w.until for w in self._windows.values() if w.entry is not None), default=0.0)

    def over(self, moment: float) -> list[Json]:
        """Entries whose time has come; they are forgotten here."""
        found = [(k, w.entry) for k, w in self._windows.items() if w.entry is not None and moment >= w.until]
        for key, _ in found:
            del self._windows[key]
        return [entry for _, entry in found]
