"""The record of what operators did: typing as ranges, everything else as single entries, into the spool.

A range is opened in the spool before its first byte is written to the program, so that no input is without a name even
if the keeper dies. Further typing of the same operator under the same epoch only moves the range's end in memory; the
end is written when there was a pause, when something else happened, or when somebody asks. It has no length and no
content: what was typed is nobody's business.
"""

from __future__ import annotations

from ...log.act_spool import Spool
from ...model.limits import RANGE_PAUSE_S, RANGE_S_MAX, WHY_MAX
from ...model.sessions.controls import Actor, Refused
from .repeated_acts import Repeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Record:
    """One spool, and the range of typing that is open. `now` is the time of day, `moment` monotonic."""

    __slots__ = (
        "_began",
        "_generation",
        "_joined",
        "_key",
        "_last",
        "_open",
        "_repeats",
        "_to",
        "_until",
        "lost",
        "spool",
        "told",
    )

    def __init__(self, path: str, generation: int, floor: int) -> None:
        self.spool = Spool(path, floor)
        self._generation = generation
        self._open = 0  # the number of the open range
        self._key: tuple[object, ...] = ()
        self._began = self._last = self._until = 0.0
        self._to = 0
        self._joined = (0, 0)  # ranges that this one stands for besides itself, and the epoch of the last
        self._repeats = Repeats()
        self.lost = 0  # entries that found no room, not even the spare one
        self.told = False  # the host was told that there is something, and has not asked yet

    def due(self) -> float:
        """When something is to be written by itself: the end of the open range, or an entry that stands for many."""
        ends, repeats = self._range_due(), self._repeats.due()
        return min(ends, repeats) if ends and repeats else ends or repeats

    def _range_due(self) -> float:
        return min(self._last + RANGE_PAUSE_S, self._began + RANGE_S_MAX) if self._open else 0.0

    def lapse(self, moment: float) -> None:
        """Write what is due."""
        over = self._repeats.over(moment)
        if over or 0 < self._range_due() <= moment:
            self.close()
        for entry in over:
            self._append(entry, refusable=False)

    def typed(
        self,
        actor: Actor,
        epoch: int,
        offset: int,
        now: float,
        moment: float,
        via: str,
        what: str,
        exec_id: str = "",
        why: str = "",
    ) -> None:
        """Input is about to be written. Raises Refused when that could not be recorded."""
        key = (actor.operator, actor.actor, epoch, via, what, exec_id, why)
        if self._open and key == self._key and moment < self._range_due():
            pass
        elif not exec_id and self._joins(actor, moment):
            # The same hand over and over, under ever new epochs or reasons. A command is told by its id, always.
            self._joined = (self._joined[0] + 1, epoch)
            self._key = key
        else:
            self.close()
            entry = self._entry("input", actor, epoch, offset, now, why, {"via": via, "what": what})
            if exec_id:
                entry["exec_id"] = exec_id
            self._open = self._append(entry, refusable=True)
            self._key, self._began = key, moment
        self._to, self._until, self._last = offset, now, moment

    def _joins(self, actor: Actor, moment: float) -> bool:
        often = self._repeats.often("input", actor.operator, moment)
        return often and self._open > 0 and self._key[0] == actor.operator and moment < self._range_due()

    def close(self) -> bool:
        """Write the end of the open range; true when there was one."""
        if not self._open:
            return False
        n, self._open = self._open, 0
        rest: Json = {"to_offset": self._to, "until": self._until}
        if self._joined[0]:
            rest.update(repeated=self._joined[0] + 1, to_epoch=self._joined[1])
            self._joined = (0, 0)
        try:
            self.spool.amend(n, rest)
        except OSError:
            self.lost += 1  # the range stays in the record without its end
        return True

    def note(
        self,
        kind: str,
        actor: Actor | None,
        epoch: int,
        offset: int,
        now: float,
        why: str,
        facts: Json,
        refusable: bool,
        moment: float,
    ) -> None:
        """One entry. What can be refused is noted before its effect; what cannot and has no room is counted as lost."""
        entry = self._entry(kind, actor, epoch, offset, now, why, facts)
        if not (refusable and self.spool.full) and self._repeats.counted(entry, moment):
            return
        if kind == "ended":
            self.lapse(float("inf"))
        self.close()
        self._append(entry, refusable)

    def _entry(
        self, kind: str, actor: Actor | None, epoch: int, offset: int, now: float, why: str, facts: Json
    ) -> Json:
        return {
            "at": now,
            "generation": self._generation,
            "kind": kind,
            "operator": actor.operator if actor else None,
            "operator_kind": actor.kind if actor else None,
            "name": actor.name if actor else None,
            "actor": (actor.actor or None) if actor else None,
            "epoch": epoch,
            "offset": offset,
            "why": why[:WHY_MAX] or None,
            **facts,
        }

    def _append(self, entry: Json, refusable: bool) -> int:
        try:
            return self.spool.append(entry, spare=not refusable)
        except OSError as e:
            if not refusable:
                self.lost += 1
                return 0
            if self.spool.full:
                raise Refused(
                    "busy",
                    "the record of who acted is full: no host has fetched it for long",
                    "start the host (hold up); it fetches it at once",
                ) from None
            raise Refused(
                "busy", f"who acts cannot be recorded: {e.strerror}", "free some disk space, then try again"
            ) from None

    # -- for the host

    @property
    def ready(self) -> int:
        """The number of the newest entry that is complete."""
        return self._open - 1 if self._open else self.spool.last

    def after(self, n: int, most: int) -> list[Json]:
        self.told = False
        return self.spool.after(n, most, self._open)

    def as_dict(self) -> Json:
        return {"first": self.spool.first, "last": self.ready}
