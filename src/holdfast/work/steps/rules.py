"""What becomes of a step: the one place that decides it. Pure: a row read under its lock in, a decision out.

(none) ── begin ──> open ── end ──> done
                     │ └── fail ──> failed ── begin ──> open
                     │
                     ├── takeover, or begun again by a stranger ──> in_doubt
                     │                                                 │
                     │<── begin (idempotent: same key again) ──────────┤
                     │<── begin ── settled (not_done), failed <── settle ┤
                                   settled (done)     <── settle ──────┘
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ...model.errors import HoldfastError, invalid, not_found
from ...model.times import rfc3339
from ...model.work.effects import OUTCOMES, StepInDoubt
from ...store.base import Held, Step


class Begin(NamedTuple):
    """`decision` is the caller's answer; `write` is what becomes of the row."""

    decision: str  # execute | reuse | in_doubt
    write: str  # insert | reopen | doubt | nothing


def begin(step: Step | None, *, args_hash: str, effect: str, request: str) -> Begin:
    """Asked under the lease's lock by its holder, so an open step here is the holder's own."""
    if step is None:
        # Nothing is lost by running an effectless body twice: its intent is not worth a flush.
        return Begin("execute", "nothing" if effect == "none" else "insert")
    if step.args_hash != args_hash:
        raise HoldfastError(
            "conflict",
            f"step {step.key!r} was begun with other arguments",
            "a key names one action with its arguments: use another key",
        )
    if step.effect != effect:
        raise HoldfastError(
            "conflict", f"step {step.key!r} was begun with effect {step.effect}", f"not {effect}: use another key"
        )
    if finished(step):
        return Begin("reuse", "nothing")
    if step.state in ("failed", "settled"):  # settled as not done
        return Begin("execute", "nothing" if effect == "none" else "reopen")
    if step.state == "open" and step.begin_request == request:
        return Begin("execute", "nothing")  # the answer was lost on the way; this is the same beginning
    if effect in ("none", "idempotent"):
        return Begin("execute", "reopen")
    return Begin("in_doubt", "doubt" if step.state == "open" else "nothing")


def finished(step: Step) -> bool:
    """Its outcome is known and it never runs again."""
    return step.state == "done" or (step.state == "settled" and step.outcome == "done")


def end(step: Step | None, *, key: str, epoch: int, request: str, effect: str | None) -> str:
    """insert | update | again. Only whoever began it, under the same epoch, may say how it ended."""
    if step is None:
        if effect == "none":
            return "insert"
        raise not_found(f"step {key!r} was not begun", "begin it first: the intent comes before the effect")
    if step.end_request == request:
        return "again"
    if finished(step):
        raise HoldfastError("conflict", f"step {key!r} has ended already", "its result is kept; nothing was changed")
    if step.effect == "none":
        return "update"
    if step.state == "in_doubt" and step.epoch != epoch:
        raise in_doubt(step)
    if step.state not in ("open", "in_doubt"):
        raise HoldfastError("conflict", f"step {key!r} is {step.state}, not open", "begin it again first")
    return "update"


def after_failure(step: Step, *, known: bool, running: bool) -> str:
    """failed | in_doubt. An exception says that the body ended, not that nothing happened; `running`: not even that."""
    if not running and (known or step.effect in ("none", "idempotent")):
        return "failed"
    return "in_doubt"


def settle(
    step: Step | None,
    held: Held,
    *,
    key: str,
    outcome: str,
    by: str,
    evidence: str | None,
    request: str,
    epoch: int | None,
) -> str:
    """settle | again. Not under somebody's feet, not without a name, and unsafe ones not without evidence."""
    if outcome not in OUTCOMES:
        raise invalid(f"a step is settled as one of {', '.join(OUTCOMES)}", f"not {outcome[:40]!r}")
    if step is None:
        raise not_found(f"step {key!r} was not begun", "there is nothing to settle")
    if step.end_request == request:
        return "again"
    if step.state not in ("open", "in_doubt"):
        raise HoldfastError("conflict", f"step {key!r} is {step.state}, not in doubt", "there is nothing to settle")
    if step.state == "open" and alive(held) and not by_hand(held.worker) and epoch != held.epoch:
        raise HoldfastError(
            "conflict",
            f"step {key!r} is being run by {held.worker}",
            f"its lease ends at {rfc3339(held.lease_until / 1e6)} unless it is renewed",
        )
    if not evidence and step.effect == "unsafe":
        raise invalid(f"settling the unsafe step {key!r} needs evidence", "say how you know: --evidence TEXT")
    # A worker's own rule or hook settles under its lease; the name of an owner binds people.
    if step.doubt_owner and by != step.doubt_owner and epoch is None:
        raise HoldfastError(
            "not_allowed", f"step {key!r} is to be settled by {step.doubt_owner}", f"ask them; {by} may not"
        )
    return "settle"


def alive(held: Held) -> bool:
    return held.worker is not None and held.ended_at is None and held.now < held.lease_until


HAND = "hand:"  # a worker of this name has no heartbeat: a person or an agent between two commands


def by_hand(worker: str | None) -> bool:
    return worker is not None and worker.startswith(HAND)


def report(step: Step, now: int | None = None) -> dict[str, Any]:
    """What somebody needs to know who is to settle it."""
    return {
        "run": step.run,
        "key": step.key,
        "state": step.state,
        "effect": step.effect,
        "action": step.action,
        "args": msgspec.json.decode(step.args) if step.args else None,
        "args_hash": step.args_hash,
        "idem_key": step.idem_key,
        "epoch": step.epoch,
        "tries": step.tries,
        "error": step.error,
        "begun_at": rfc3339(step.begun_at / 1e6),
        "ended_at": _time(step.ended_at),
        "result": msgspec.json.decode(step.result) if step.result else None,
        "session": step.session,
        "exec_id": step.exec_id,
        "in_doubt_since": _time(step.doubt_since),
        "settle_by": _time(step.doubt_until),
        "overdue": bool(now and step.state == "in_doubt" and step.doubt_until and now >= step.doubt_until),
        "owner": step.doubt_owner,
        "settled_by": step.settled_by,
        "evidence": step.evidence,
        "outcome": step.outcome,
    }


def in_doubt(step: Step) -> StepInDoubt:
    what = f"step {step.key!r} ({step.effect}) was begun under epoch {step.epoch} and its outcome is unknown"
    how = f"find out what happened, then: hold step settle {step.run} {step.key} --done|--not-done --evidence TEXT"
    return StepInDoubt(what, how, report(step))


def _time(micros: int | None) -> str | None:
    return rfc3339(micros / 1e6) if micros else None
