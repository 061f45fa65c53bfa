"""A step as people and agents are told of it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.times import rfc3339
from ...model.work.effects import StepInDoubt
from ...store.base import Step


def report(step: Step, now: int | None = None) -> dict[str, Any]:
    """What a person needs to know who is to settle it."""
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
