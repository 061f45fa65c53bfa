"""The transactions of a step: lock, check the lease, ask the rules, write. What the rules say is in steps.py."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import HoldfastError
from ...model.limits import SETTLE_S
from ...model.work.effects import check_effect, check_word
from ...store import queries
from ...store.base import Held, Query, Step, Transaction
from ...wire import json_values
from ..runs import lease
from . import rules

Json = dict[str, Any]


class Intent(NamedTuple):
    """What a step is going to do, checked and encoded."""

    run: str
    key: str
    effect: str
    action: str | None
    args: str  # JSON
    idem_key: str | None
    why: str | None
    session: str | None
    exec_id: str | None
    by: str
    request: str

    @property
    def args_hash(self) -> str:
        return json_values.digest(self.args)

    @property
    def stable_key(self) -> str:
        """The same for every try of this step, and for no other one: what an idempotent target is given."""
        return self.idem_key or "idem_" + json_values.digest(f"{self.run}\0{self.key}")[:32]


def intended(
    run: str,
    key: str,
    effect: str,
    args: Any,
    action: str | None,
    idem_key: str | None,
    why: str | None,
    session: str | None,
    exec_id: str | None,
    by: str,
    request: str,
) -> Intent:
    """What a caller says of a step, checked; raises in words where it cannot be one."""
    return Intent(
        run,
        check_word("a step's key", key),
        check_effect(effect),
        json_values.said(action, "the action"),
        json_values.encode(args, f"the arguments of step {key!r}"),
        None if idem_key is None else check_word("an idempotency key", idem_key),
        json_values.said(why, "the reason"),
        None if session is None else check_word("a session", session),
        None if exec_id is None else check_word("an exec's id", exec_id),
        by,
        check_word("a request", request),
    )


def peek(intent: Intent, epoch: int | None) -> Transaction[Json]:
    """Begin a step without effect: nothing is written, so a fenced worker is told at the latest at its end."""
    held = yield from queries.seen(intent.run)
    if epoch is not None:
        lease.check(held, epoch)
    step = yield from queries.step(intent.run, intent.key)
    decided = rules.begin(step, args_hash=intent.args_hash, effect="none", request=intent.request)
    return _answer(decided.decision, step, intent, held.epoch)


def begin(intent: Intent, epoch: int | None) -> Transaction[Json]:
    held, hand = (yield from queries.held(intent.run)), epoch is None
    epoch = yield from lease.writer(intent.run, held, epoch, intent.by, intent.request)
    step = yield from queries.step(intent.run, intent.key)
    decided = rules.begin(step, args_hash=intent.args_hash, effect=intent.effect, request=intent.request)
    if decided.write == "insert":
        yield from _insert(intent, held, epoch, "open", None, None)
    elif decided.write == "reopen":
        yield from _reopen(intent, held, epoch)
    elif decided.write == "doubt":
        yield from _doubt(intent.run, intent.key, held)
        step = yield from queries.step(intent.run, intent.key)
    if decided.decision == "execute" and decided.write != "nothing":
        yield from _note_action(intent, held, epoch)
    elif hand:
        yield from lease.let_go(held)
    return _answer(decided.decision, step, intent, epoch)


def to_execute(stable_key: str, epoch: int) -> Json:
    return {"decision": "execute", "idem_key": stable_key, "epoch": epoch, "result": None, "step": None}


def _answer(decision: str, step: Step | None, intent: Intent, epoch: int) -> Json:
    if step is None:
        return to_execute(intent.stable_key, epoch)
    return {
        "decision": decision,
        "idem_key": step.idem_key,
        "epoch": epoch,
        "result": json_values.decode(step.result) if decision == "reuse" else None,
        "step": rules.report(step) if decision != "execute" else None,
    }


def _insert(
    intent: Intent, held: Held, epoch: int, state: str, result: str | None, end_request: str | None
) -> Transaction[None]:
    yield Query(
        "INSERT INTO step (run, key, state, effect, action, args_hash, args, idem_key, epoch, tries, begin_request,"
        " end_request, begun_at, ended_at, result, session, exec_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)",
        (
            intent.run,
            intent.key,
            state,
            intent.effect,
            intent.action,
            intent.args_hash,
            json_values.shown(intent.args),
            intent.stable_key,
            epoch,
            intent.request,
            end_request,
            held.now,
            held.now if state == "done" else None,
            result,
            intent.session,
            intent.exec_id,
        ),
    )


def _reopen(intent: Intent, held: Held, epoch: int) -> Transaction[None]:
    """Once more, under the key it had; what was settled before is in the log."""
    yield Query(
        "UPDATE step SET state = 'open', epoch = ?, tries = tries + 1, begin_request = ?, end_request = NULL,"
        " begun_at = ?, ended_at = NULL, result = NULL, error = NULL, session = ?, exec_id = ?, doubt_since = NULL,"
        " doubt_until = NULL, doubt_owner = NULL, settled_by = NULL, evidence = NULL, outcome = NULL"
        " WHERE run = ? AND key = ?",
        (epoch, intent.request, held.now, intent.session, intent.exec_id, intent.run, intent.key),
    )


def _doubt(run: str, key: str, held: Held) -> Transaction[None]:
    yield Query(
        "UPDATE step SET state = 'in_doubt', doubt_since = ?, doubt_until = ? WHERE run = ? AND key = ?",
        (held.now, held.now + int(SETTLE_S * 1e6), run, key),
    )


def action_body(intent: Intent) -> str:
    body = {"action": intent.action or intent.key, "effect": intent.effect}
    if intent.why:
        body["why"] = intent.why
    return json_values.encode(body, "why")


def outcome_body(action: str | None, why: str | None) -> str:
    """`action` is named where no entry before this one has."""
    body: Json = {"outcome": "done"}
    if action:
        body["action"] = action
    if why:
        body["why"] = why
    return json_values.encode(body, "why")


def _note_action(intent: Intent, held: Held, epoch: int) -> Transaction[int]:
    return (
        yield from queries.append(
            intent.run, "action", action_body(intent), at=held.now, epoch=epoch, by=intent.by, step=intent.key
        )
    )


def following(done: Intent, result: str, coming: Intent, epoch: int) -> Transaction[Json]:
    """The outcome of one step and the intent of the next, for whoever does nothing in between."""
    yield from end(done, epoch, None, result)
    return (yield from begin(coming, epoch))


def end(intent: Intent, epoch: int | None, effect: str | None, result: str) -> Transaction[Json]:
    """Its outcome, on disk. `effect="none"` also brings a step that was never begun on paper."""
    run, key = intent.run, intent.key
    held, hand = (yield from queries.held(run)), epoch is None
    step = yield from queries.step(run, key)
    if step is not None and step.end_request == intent.request:
        return {"key": key, "state": step.state}  # said before, and its answer was lost: it is on disk
    epoch = yield from lease.writer(run, held, epoch, intent.by, intent.request)
    if held.epoch != epoch:
        step = yield from queries.step(run, key)  # taking the lease by hand has put what was open in doubt
    what = rules.end(step, key=key, epoch=epoch, request=intent.request, effect=effect)
    if what == "insert":
        yield from _insert(intent, held, epoch, "done", result, intent.request)
    else:
        yield Query(
            "UPDATE step SET state = 'done', result = ?, error = NULL, ended_at = ?, end_request = ?, epoch = ?"
            " WHERE run = ? AND key = ?",
            (result, held.now, intent.request, epoch, run, key),
        )
    body = outcome_body(intent.action or key if what == "insert" else None, intent.why)
    yield from queries.append(run, "observation", body, at=held.now, epoch=epoch, by=intent.by, step=key)
    if hand:
        yield from lease.let_go(held)
    return {"key": key, "state": "done"}


def fail(
    run: str,
    key: str,
    epoch: int | None,
    error: str,
    known: bool,
    by: str,
    why: str | None,
    request: str,
    running: bool = False,
) -> Transaction[Json]:
    """The body ended without an outcome. `known`: nothing happened, and whoever says so knows it. `running`: it has
    not ended, and the process that runs it gives the run up."""
    held, hand = (yield from queries.held(run)), epoch is None
    step = yield from queries.step(run, key)
    if step is not None and step.end_request == request:
        return {"key": key, "state": step.state}
    epoch = yield from lease.writer(run, held, epoch, by, request)
    if held.epoch != epoch:
        step = yield from queries.step(run, key)
    rules.end(step, key=key, epoch=epoch, request=request, effect=None)
    assert step is not None  # what was never begun is refused above
    state = rules.after_failure(step, known=known, running=running)
    yield Query(
        "UPDATE step SET state = ?, error = ?, ended_at = ?, end_request = ? WHERE run = ? AND key = ?",
        (state, error, held.now, request, run, key),
    )
    if state == "in_doubt":
        yield from _doubt(run, key, held)
    body = {"outcome": state, "error": error} | ({"why": why} if why else {})
    yield from queries.append(
        run, "observation", json_values.encode(body, "error"), at=held.now, epoch=epoch, by=by, step=key
    )
    if hand:
        yield from lease.let_go(held)
    return {"key": key, "state": state}


def settle(
    run: str, key: str, outcome: str, result: str, by: str, evidence: str | None, epoch: int | None, request: str
) -> Transaction[Json]:
    """Somebody who may says what happened. With an epoch it is the worker's own rule, and fenced like every write."""
    held = yield from queries.held(run)
    step = yield from queries.step(run, key)
    if epoch is not None and (step is None or step.end_request != request):
        lease.check(held, epoch)
    if held.ended_at is not None and (step is None or step.end_request != request):
        raise HoldfastError("conflict", "the run has ended", "there is nothing to settle")
    what = rules.settle(step, held, key=key, outcome=outcome, by=by, evidence=evidence, request=request, epoch=epoch)
    state = "failed" if outcome == "failed" else "settled"
    if what == "settle":
        yield Query(
            "UPDATE step SET state = ?, error = COALESCE(?, error), outcome = ?, result = ?, settled_by = ?,"
            " evidence = ?, ended_at = ?, end_request = ? WHERE run = ? AND key = ?",
            (
                state,
                evidence if outcome == "failed" else None,
                outcome,
                result if outcome == "done" else None,
                by,
                evidence,
                held.now,
                request,
                run,
                key,
            ),
        )
        body = {"outcome": outcome, "by": by, "evidence": evidence}
        yield from queries.append(
            run, "settlement", json_values.encode(body, "evidence"), at=held.now, epoch=held.epoch, by=by, step=key
        )
        if rules.by_hand(held.worker):
            yield from lease.let_go(held)
    return {"key": key, "state": state, "outcome": outcome}


def assign(run: str, key: str, owner: str | None, within_s: float | None) -> Transaction[Json]:
    """Who is to settle a step in doubt, and by when."""
    held = yield from queries.held(run)
    step = yield from queries.step(run, key)
    if step is None or step.state != "in_doubt":
        raise HoldfastError("conflict", f"step {key!r} is not in doubt", "there is nothing to settle")
    yield Query(
        "UPDATE step SET doubt_owner = COALESCE(?, doubt_owner), doubt_until = COALESCE(?, doubt_until)"
        " WHERE run = ? AND key = ?",
        (owner, None if within_s is None else held.now + int(within_s * 1e6), run, key),
    )
    step = yield from queries.step(run, key)
    assert step is not None  # it was there, and its run is locked
    return rules.report(step, held.now)
