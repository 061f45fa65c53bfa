"""The rows of one run in memory, changed by the rule alone: what every store is held against."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.store.base import Change, Held, LogEntry, Put, Rows, Step

T = TypeVar("T")
LEASE = 3_600_000_000  # microseconds


class MemoryRows:
    """As much of a store as calls of a worker need."""

    url = "memory:"

    def __init__(self, run: str, held: Held) -> None:
        self.run, self.held = run, held
        self.steps: dict[str, Step] = {}
        self.log: list[LogEntry] = []

    async def decide(self, change: Change[T]) -> T:
        before = next((e.seq for e in self.log if e.request is not None and e.request == change.request), None)
        named = {key: self.steps[key] for key in change.keys if key in self.steps}
        answer, put = change.decide(Rows(self.held, len(self.log), named, before))
        self.put(put)
        return answer

    def put(self, put: Put) -> None:
        assert not {s.key for s in put.new} & self.steps.keys(), "a step that is there is not new"
        assert {s.key for s in put.changed} <= self.steps.keys() | {s.key for s in put.new}
        assert [e.seq for e in put.log] == [len(self.log) + n for n in range(1, len(put.log) + 1)]
        assert put.log or not (put.new or put.changed), "a step was changed without an entry of the log"
        self.steps |= {s.key: s for s in (*put.new, *put.changed)}
        self.log += put.log

    def take(self, body: str) -> None:
        """The next epoch; what was open is in doubt."""
        self.held = self.held._replace(epoch=self.held.epoch + 1, lease_until=self.held.now + LEASE)
        for step in self.steps.values():
            if step.state == "open":
                doubted = step._replace(state="in_doubt", doubt_since=self.held.now, doubt_until=self.held.now)
                self.steps[step.key] = doubted
        entry = LogEntry(self.run, len(self.log) + 1, "run", self.held.now, "w", self.held.epoch, None, body)
        self.log.append(entry)

    def release(self) -> None:
        self.held = self.held._replace(lease_until=0)

    async def write(self, transaction: Any) -> Any:
        raise AssertionError("a call of a worker is a change that the rule decides")

    read = write

    def write_now(self, transaction: Any) -> Any:
        raise AssertionError("the calls here are awaited")

    decide_now = read_now = write_now

    async def close(self) -> None:
        """There is nothing to close."""
