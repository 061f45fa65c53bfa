"""What becomes of a step: the one text of the rule. Pure: rows under their lock in, the answer and what to write out.

(none) ── begin ──> open ── end ──> done
                     │ └── fail ──> failed ── begin ──> open
                     │
                     ├── takeover, or begun again by another call ──> in_doubt
                     │                                                  │
                     │<── begin (idempotent: same key again) ───────────┤
                     │<── begin ── settled (not_done), failed <── settle ┤
                                   settled (done)     <── settle ───────┘

Every change of a step comes with an entry of its run's log.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import SETTLE_S
from ...model.times import rfc3339
from ...model.work.effects import OUTCOMES
from ...store.base import Held, LogEntry, Put, Rows, Step
from ...wire import json_values
from ..runs import lease
from .intent import Intent, action_body, outcome_body, to_execute
from .report import in_doubt, report

Json = dict[str, Any]


class Begin(NamedTuple):
    """`decision` is the caller's answer; `write` is what becomes of the row."""

    decision: str  # execute | reuse | in_doubt
    write: str  # insert | reopen | doubt | nothing


def may_begin(step: Step | None, *, args_hash: str, effect: str, request: str) -> Begin:
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


def may_end(step: Step | None, *, key: str, epoch: int, effect: str | None) -> str:
    """insert | update. Only the holder that began it, under the same epoch, may say how it ended."""
    if step is None:
        if effect == "none":
            return "insert"
        raise not_found(f"step {key!r} was not begun", "begin it first: the intent comes before the effect")
    if finished(step):
        raise HoldfastError("conflict", f"step {key!r} has ended already", "its result is kept; nothing was changed")
    if step.effect == "none":
        return "update"
    if step.state == "in_doubt" and step.epoch != epoch:
        raise in_doubt(step)
    if step.state not in ("open", "in_doubt"):
        raise HoldfastError("conflict", f"step {key!r} is {step.state}, not open", "begin it again first")
    return "update"


def said_before(step: Step | None, request: str) -> Json | None:
    """The answer to a request that ended the step before, whose answer was lost: it is on disk."""
    return {"key": step.key, "state": step.state} if step is not None and step.end_request == request else None


def after_failure(step: Step, *, known: bool, running: bool) -> str:
    """failed | in_doubt. An exception says that the body ended, not that nothing happened; `running`: not even that."""
    if not running and (known or step.effect in ("none", "idempotent")):
        return "failed"
    return "in_doubt"


# -- the calls ---------------------------------------------------------------------------------------------------------


def begin(rows: Rows, intent: Intent, epoch: int) -> tuple[Json, Put]:
    lease.check(rows.held, epoch)
    step, now = rows.steps.get(intent.key), rows.held.now
    decided = may_begin(step, args_hash=intent.args_hash, effect=intent.effect, request=intent.request)
    put = Put()
    if decided.write == "insert":
        put = Put(new=(_first(intent, epoch, now, "open", None, None),))
    elif step is not None and decided.write == "reopen":
        put = Put(changed=(_again(step, intent, epoch, now),))
    elif step is not None and decided.write == "doubt":
        step = _doubted(step, now)
        body = json_values.encode({"outcome": "in_doubt"}, "the outcome")
        entry = LogEntry(intent.run, rows.last + 1, "observation", now, intent.by, epoch, step.key, body)
        put = Put(changed=(step,), log=(entry,))
    if decided.decision == "execute" and decided.write != "nothing":
        put = put._replace(log=(_entry(rows, "action", intent, epoch, action_body(intent)),))
    return _answer(decided.decision, step, intent, epoch), put


def look(rows: Rows, intent: Intent, epoch: int | None) -> Json:
    """Begin a step without effect: nothing is written, so a fenced worker is told at the latest at its end."""
    if epoch is not None:
        lease.check(rows.held, epoch)
    step = rows.steps.get(intent.key)
    decided = may_begin(step, args_hash=intent.args_hash, effect="none", request=intent.request)
    return _answer(decided.decision, step, intent, rows.held.epoch)


def end(rows: Rows, intent: Intent, epoch: int, effect: str | None, result: str) -> tuple[Json, Put]:
    """Its outcome. `effect="none"` also brings a step that was never begun on paper."""
    step, now = rows.steps.get(intent.key), rows.held.now
    before = said_before(step, intent.request)
    if before is not None:
        return before, Put()
    lease.check(rows.held, epoch)
    may_end(step, key=intent.key, epoch=epoch, effect=effect)
    body = outcome_body(None if step is not None else intent.action or intent.key, intent.why)
    log = (_entry(rows, "observation", intent, epoch, body),)
    if step is None:
        put = Put(new=(_first(intent, epoch, now, "done", result, intent.request),), log=log)
    else:
        done = step._replace(
            state="done", result=result, error=None, ended_at=now, end_request=intent.request, epoch=epoch
        )
        put = Put(changed=(done,), log=log)
    return {"key": intent.key, "state": "done"}, put


def following(rows: Rows, done: Intent, result: str, coming: Intent, epoch: int) -> tuple[Json, Put]:
    """The outcome of one step and the intent of the next, for a caller that does nothing in between."""
    _, first = end(rows, done, epoch, None, result)
    answer, second = begin(after(rows, first), coming, epoch)
    return answer, first + second


def after(rows: Rows, put: Put) -> Rows:
    """The rows once this is written."""
    steps = {**rows.steps, **{step.key: step for step in (*put.new, *put.changed)}}
    return rows._replace(last=rows.last + len(put.log), steps=steps)


class Failure(NamedTuple):
    """The body ended without an outcome. `known`: nothing happened, and the caller knows it. `running`: it has not
    ended, and the process that runs it gives the run up."""

    run: str
    key: str
    error: str
    known: bool
    running: bool
    why: str | None
    by: str
    request: str


def fail(rows: Rows, failure: Failure, epoch: int) -> tuple[Json, Put]:
    step, now, key = rows.steps.get(failure.key), rows.held.now, failure.key
    before = said_before(step, failure.request)
    if before is not None:
        return before, Put()
    lease.check(rows.held, epoch)
    may_end(step, key=key, epoch=epoch, effect=None)
    assert step is not None  # one that was never begun is refused above
    state = after_failure(step, known=failure.known, running=failure.running)
    step = step._replace(state=state, error=failure.error, ended_at=now, end_request=failure.request)
    if state == "in_doubt":
        step = _doubted(step, now)
    said = {"outcome": state, "error": failure.error} | ({"why": failure.why} if failure.why else {})
    entry = _entry(rows, "observation", failure, epoch, json_values.encode(said, "error"))
    return {"key": key, "state": state}, Put(changed=(step,), log=(entry,))


class Settlement(NamedTuple):
    """A person, or with an epoch the worker's own rule, says what happened."""

    run: str
    key: str
    outcome: str
    result: str  # JSON
    evidence: str | None
    by: str
    request: str


def settle(rows: Rows, said: Settlement, epoch: int | None) -> tuple[Json, Put]:
    held, step, outcome = rows.held, rows.steps.get(said.key), said.outcome
    again = step is not None and step.end_request == said.request
    if epoch is not None and not again:
        lease.check(held, epoch)
    if held.ended_at is not None and not again:
        raise HoldfastError("conflict", "the run has ended", "there is nothing to settle")
    state = "failed" if outcome == "failed" else "settled"
    answer = {"key": said.key, "state": state, "outcome": outcome}
    if outcome not in OUTCOMES:
        raise invalid(f"a step is settled as one of {', '.join(OUTCOMES)}", f"not {outcome[:40]!r}")
    if step is None:
        raise not_found(f"step {said.key!r} was not begun", "there is nothing to settle")
    if again:
        return answer, Put()
    _may_settle(step, held, said, epoch)
    step = step._replace(
        state=state,
        error=said.evidence or step.error if outcome == "failed" else step.error,
        outcome=outcome,
        result=said.result if outcome == "done" else None,
        settled_by=said.by,
        evidence=said.evidence,
        ended_at=held.now,
        end_request=said.request,
    )
    body = json_values.encode({"outcome": outcome, "by": said.by, "evidence": said.evidence}, "evidence")
    return answer, Put(changed=(step,), log=(_entry(rows, "settlement", said, held.epoch, body),))


def _may_settle(step: Step, held: Held, said: Settlement, epoch: int | None) -> None:
    """Not while its worker is at it, not without a name, and an unsafe one not without evidence."""
    key = said.key
    if step.state not in ("open", "in_doubt"):
        raise HoldfastError("conflict", f"step {key!r} is {step.state}, not in doubt", "there is nothing to settle")
    if step.state == "open" and lease.alive(held) and not lease.by_hand(held.worker) and epoch != held.epoch:
        raise HoldfastError(
            "conflict",
            f"step {key!r} is being run by {held.worker}",
            f"its lease ends at {rfc3339(held.lease_until / 1e6)} unless it is renewed",
        )
    if not said.evidence and step.effect == "unsafe":
        raise invalid(f"settling the unsafe step {key!r} needs evidence", "say how you know: --evidence TEXT")
    # A worker's own rule or hook settles under its lease; the name of an owner binds people.
    if step.doubt_owner and said.by != step.doubt_owner and epoch is None:
        raise HoldfastError(
            "not_allowed", f"step {key!r} is to be settled by {step.doubt_owner}", f"ask them; {said.by} may not"
        )


def assign(rows: Rows, key: str, owner: str | None, within_s: float | None, by: str) -> tuple[Json, Put]:
    """Who is to settle a step in doubt, and by when."""
    held, step = rows.held, rows.steps.get(key)
    if step is None or step.state != "in_doubt":
        raise HoldfastError("conflict", f"step {key!r} is not in doubt", "there is nothing to settle")
    if owner is None and within_s is None:
        return report(step, held.now), Put()
    until = step.doubt_until if within_s is None else held.now + int(within_s * 1e6)
    step = step._replace(doubt_owner=owner or step.doubt_owner, doubt_until=until)
    told = report(step, held.now)
    body = json_values.encode({"outcome": "in_doubt"} | {k: told[k] for k in ("owner", "settle_by")}, "the owner")
    entry = LogEntry(step.run, rows.last + 1, "observation", held.now, by, held.epoch, key, body)
    return told, Put(changed=(step,), log=(entry,))


# -- rows --------------------------------------------------------------------------------------------------------------


def _answer(decision: str, step: Step | None, intent: Intent, epoch: int) -> Json:
    if step is None:
        return to_execute(intent.stable_key, epoch)
    return {
        "decision": decision,
        "idem_key": step.idem_key,
        "epoch": epoch,
        "result": json_values.decode(step.result) if decision == "reuse" else None,
        "step": report(step) if decision != "execute" else None,
    }


def _first(intent: Intent, epoch: int, now: int, state: str, result: str | None, end_request: str | None) -> Step:
    return Step(
        run=intent.run,
        key=intent.key,
        state=state,
        effect=intent.effect,
        action=intent.action,
        args_hash=intent.args_hash,
        args=json_values.shown(intent.args),
        idem_key=intent.stable_key,
        epoch=epoch,
        tries=1,
        begin_request=intent.request,
        end_request=end_request,
        begun_at=now,
        ended_at=now if state == "done" else None,
        result=result,
        error=None,
        session=intent.session,
        exec_id=intent.exec_id,
        doubt_since=None,
        doubt_until=None,
        doubt_owner=None,
        settled_by=None,
        evidence=None,
        outcome=None,
    )


def _again(step: Step, intent: Intent, epoch: int, now: int) -> Step:
    """Once more, under the key it had; what was settled before is in the log."""
    return _first(intent, epoch, now, "open", None, None)._replace(
        action=step.action, args=step.args, idem_key=step.idem_key, tries=step.tries + 1
    )


def _doubted(step: Step, now: int) -> Step:
    return step._replace(state="in_doubt", doubt_since=now, doubt_until=now + int(SETTLE_S * 1e6))


def _entry(rows: Rows, kind: str, call: Intent | Failure | Settlement, epoch: int, body: str) -> LogEntry:
    return LogEntry(call.run, rows.last + 1, kind, rows.held.now, call.by, epoch, call.key, body)
