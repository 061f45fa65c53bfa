"""What a step is going to do, as its caller says it: checked and encoded. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.work.effects import check_effect, check_word
from ...wire import json_values

Json = dict[str, Any]


class Intent(NamedTuple):
    run: str
    key: str
    effect: str
    action: str | None
    args: str  # JSON
    args_hash: str
    idem_key: str | None
    why: str | None
    session: str | None
    exec_id: str | None
    by: str
    request: str

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
    """What a caller says of a step; raises in words where it cannot be one."""
    check_word("a step's key", key)
    text = json_values.encode(args, f"the arguments of step {key!r}")
    return Intent(
        run,
        key,
        check_effect(effect),
        json_values.said(action, "the action"),
        text,
        json_values.digest(text),
        None if idem_key is None else check_word("an idempotency key", idem_key),
        json_values.said(why, "the reason"),
        None if session is None else check_word("a session", session),
        None if exec_id is None else check_word("an exec's id", exec_id),
        by,
        check_word("a request", request),
    )


def to_execute(stable_key: str, epoch: int) -> Json:
    return {"decision": "execute", "idem_key": stable_key, "epoch": epoch, "result": None, "step": None}


def action_body(intent: Intent) -> str:
    body = {"action": intent.action or intent.key, "effect": intent.effect}
    if intent.why:
        body["why"] = intent.why
    return json_values.encode(body, "why")


def outcome_body(action: str | None, why: str | None) -> str:
    """`action` is named where no entry before this one has."""
    if not action and not why:
        return _DONE
    body: Json = {"outcome": "done"}
    if action:
        body["action"] = action
    if why:
        body["why"] = why
    return json_values.encode(body, "why")


_DONE = json_values.encode({"outcome": "done"}, "the outcome")
