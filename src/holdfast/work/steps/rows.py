"""The rule of a step as changes that a store makes; and its two other ways: by hand, and looked at without a write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...store import queries
from ...store.base import Change, Transaction
from ..runs import lease
from . import rule
from .intent import Intent

Json = dict[str, Any]


def begin(intent: Intent, epoch: int) -> Change[Json]:
    return Change(intent.run, (intent.key,), lambda rows: rule.begin(rows, intent, epoch))


def end(intent: Intent, epoch: int, effect: str | None, result: str) -> Change[Json]:
    return Change(intent.run, (intent.key,), lambda rows: rule.end(rows, intent, epoch, effect, result))


def following(done: Intent, result: str, coming: Intent, epoch: int) -> Change[Json]:
    keys = (done.key, coming.key)
    return Change(done.run, keys, lambda rows: rule.following(rows, done, result, coming, epoch))


def fail(failure: rule.Failure, epoch: int) -> Change[Json]:
    return Change(failure.run, (failure.key,), lambda rows: rule.fail(rows, failure, epoch))


def settle(said: rule.Settlement, epoch: int | None) -> Change[Json]:
    return Change(said.run, (said.key,), lambda rows: rule.settle(rows, said, epoch))


def assign(run: str, key: str, owner: str | None, within_s: float | None, by: str) -> Change[Json]:
    return Change(run, (key,), lambda rows: rule.assign(rows, key, owner, within_s, by))


def look(intent: Intent, epoch: int | None) -> Transaction[Json]:
    """`begin` of a step without effect, as a read."""
    change = begin(intent, 0)
    held = yield from queries.seen(intent.run)
    return rule.look(queries.as_read(held, (yield queries.to_read(change))), intent, epoch)


def by_hand(call: Intent | rule.Failure, change: Callable[[int], Change[Json]], *, ends: bool) -> Transaction[Json]:
    """A change without an epoch: under the lease that this operator has, or can have, until no step is open.

    `ends`: a repetition of a call that ended the step finds its answer, whoever holds the lease since.
    """
    held = yield from queries.held(call.run)
    if ends:
        said = rule.said_before((yield from queries.step(call.run, call.key)), call.request)
        if said is not None:
            return said
    epoch = yield from lease.writer(call.run, held, None, call.by, call.request)
    answer = yield from queries.decided(change(epoch))
    yield from lease.let_go(held)
    return answer


def settle_by_hand(said: rule.Settlement) -> Transaction[Json]:
    """A person's word on a step; where a person or agent held the run for it, it is let go."""
    answer = yield from queries.decided(settle(said, None))
    held = yield from queries.held(said.run)
    if lease.by_hand(held.worker):
        yield from lease.let_go(held)
    return answer
