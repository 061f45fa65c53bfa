"""The rows that this process wrote last: the next change of a run is mostly decided on just these.

The rule decides on them without a read, and the store writes under a guard: the run's attempt has that epoch, has not
ended, its lease is later than the database's clock, the number of the new log entry is free (it is the version of a
run's rows), and so is the key of a new step. Where anything is otherwise nothing is written, and the change is decided
on rows that are read. A refusal is never given from memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from ..model.errors import HoldfastError
from ..model.limits import RUNS_REMEMBERED_MAX, STEPS_REMEMBERED_MAX
from .base import Change, Put, Rows, Step


class Guess(NamedTuple):
    """A change as decided on remembered rows."""

    rows: Rows
    answer: Any
    put: Put


class Remembered:
    """Of one store; under its turn."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, Rows] = OrderedDict()

    def guess(self, change: Change[Any], now: int) -> Guess | None:
        """None: the rows are to be read. They are forgotten until the outcome is kept."""
        rows = self._rows.pop(change.run, None)
        if rows is None:
            return None
        rows = rows._replace(held=rows.held._replace(now=now))
        try:
            answer, put = change.decide(rows)
        except HoldfastError:
            return None
        # One new step at most: its key is a part of the guard.
        return Guess(rows, answer, put) if put.log and len(put.new) <= 1 else None

    def keep(self, rows: Rows, put: Put) -> None:
        """The lease, the number and the open steps, as they are once this is written."""
        if not put.log:
            return
        found: dict[str, Step] = {**rows.steps, **{step.key: step for step in (*put.new, *put.changed)}}
        still = [(key, step) for key, step in found.items() if step.state == "open"]
        run = put.log[-1].run
        self._rows[run] = Rows(rows.held, rows.last + len(put.log), dict(still[-STEPS_REMEMBERED_MAX:]))
        if len(self._rows) > RUNS_REMEMBERED_MAX:
            self._rows.popitem(last=False)

    def forget(self) -> None:
        self._rows.clear()
