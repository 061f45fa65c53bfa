"""Derives a run's state at any position of its log, and renders its history. Pure.

The state of a run at a position is its last checkpoint up to there with the entries since folded in. Folding reads
entries and changes a state, nothing else: no step is run.
"""

from __future__ import annotations

import copy
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

# The fields of an agent's checkpoint. Others may be added; these always exist.
FIELDS: Json = {
    "goal": None,
    "constraints": [],
    "plan": [],
    "current_step": None,
    "context": {},
    "messages": [],
    "artifacts": [],
    "sessions": [],  # [{"session", "generation", "offset"}]
    "open_paths": [],  # what was not tried, or rejected, and why
    "resume_point": None,
    "scratch": {},  # short-term values: name -> {"value", "until"}
}

# How history names each kind of entry.
SAID = {
    "run": "run",
    "message": "said",
    "reasoning": "thought",
    "action": "did",
    "observation": "saw",
    "settlement": "settled",
    "decision": "decided",
    "learned": "learned",
    "rejected": "rejected",
    "question": "asked",
    "answer": "answered",
    "note": "noted",
    "scratch": "kept",
    "checkpoint": "saved",
}


def blank() -> Json:
    """The state of a run with an empty log."""
    return copy.deepcopy(FIELDS)


def owned(fields: Json) -> Json:
    """A copy of the fields: folding changes them, and must not change the caller's."""
    mine = dict(fields)
    for name in ("context", "scratch"):
        if name in mine:
            mine[name] = copy.deepcopy(mine[name])
    for name in ("messages", "open_paths"):
        if isinstance(mine.get(name), list):
            mine[name] = list(mine[name])  # appended to, never edited: the elements may be shared
    return mine


def fold(state: Json, entry: Json) -> None:
    """Apply one log entry (seq, kind, body, step) to the state."""
    rule = _RULES.get(entry["kind"])
    if rule is not None:
        rule(state, entry)


def folded(state: Json, entries: Iterable[Json]) -> Json:
    """Apply all entries in order. Most set the position, of which only the last counts."""
    last, step = None, None
    for entry in entries:
        if entry["kind"] in _POSITIONS:
            last, step = entry, entry.get("step") or step
        else:
            fold(state, entry)
    if step is not None:
        state["current_step"] = step
    if last is not None:
        _position(state, last)
    return state


def text_of(body: Any) -> str:
    """The text of an entry, in any of its forms."""
    if isinstance(body, str):
        return body
    if isinstance(body, dict):
        for name in ("text", "content", "action", "event", "name", "label", "result", "error"):
            if isinstance(body.get(name), str) and body[name]:
                return str(body[name])
    import msgspec

    return "" if body in (None, {}, []) else msgspec.json.encode(body).decode()


def _why(entry: Json) -> Any:
    return entry["body"].get("why") if isinstance(entry["body"], dict) else None


def _message(state: Json, entry: Json) -> None:
    _items(state, "messages").append(entry["body"])


def _listed(name: str) -> Any:
    def rule(state: Json, entry: Json) -> None:
        context = _object(state, "context")
        _items(context, name).append({"seq": entry["seq"], "text": text_of(entry["body"]), "why": _why(entry)})

    return rule


def _rejected(state: Json, entry: Json) -> None:
    path = {"seq": entry["seq"], "path": text_of(entry["body"]), "why": _why(entry)}
    _items(state, "open_paths").append(path)


def _question(state: Json, entry: Json) -> None:
    asked = {"seq": entry["seq"], "text": text_of(entry["body"]), "answer": None}
    _items(_object(state, "context"), "questions").append(asked)


def _answer(state: Json, entry: Json) -> None:
    """The answer to the question it names (`to`: the question's seq), or to the oldest open one."""
    to = entry["body"].get("to") if isinstance(entry["body"], dict) else None
    for asked in _items(_object(state, "context"), "questions"):
        if isinstance(asked, dict) and asked.get("answer") is None and to in (None, asked.get("seq")):
            asked["answer"] = text_of(entry["body"])
            return


def _position(state: Json, entry: Json) -> None:
    """An action or its outcome: where another worker would continue."""
    said, text = SAID[entry["kind"]], text_of(entry["body"])
    state["resume_point"] = {"seq": entry["seq"], "step": entry.get("step"), "last": said, "text": text}
    if entry.get("step"):
        state["current_step"] = entry["step"]


def _scratch(state: Json, entry: Json) -> None:
    """A value that was set, and expired ones that were dropped. The clock was read when it was written."""
    body = entry["body"]
    kept = _object(state, "scratch")
    kept[body["name"]] = {"value": body["value"], "until": body["until"]}
    for name in body["drop"]:
        kept.pop(name, None)


def _items(state: Json, name: str) -> list[Any]:
    """The list of a name; another value that an agent put there becomes its first element."""
    value = state.get(name)
    if not isinstance(value, list):
        value = state[name] = [] if value is None else [value]
    return value


def _object(state: Json, name: str) -> Json:
    value = state.get(name)
    if not isinstance(value, dict):
        value = state[name] = {} if value is None else {"value": value}
    return value


_POSITIONS = frozenset({"action", "observation", "settlement"})
_RULES = {
    "message": _message,
    "decision": _listed("decisions"),
    "learned": _listed("learned"),
    "rejected": _rejected,
    "question": _question,
    "answer": _answer,
    "scratch": _scratch,
    **dict.fromkeys(_POSITIONS, _position),
}


def told(entry: Json) -> Json:
    """An entry for history: who did what, its text, and why."""
    body = entry["body"]
    return {**entry, "said": SAID.get(entry["kind"], entry["kind"]), "text": text_of(body), "why": _why(entry)}


def differences(before: Json, after: Json) -> list[Json]:
    """The differences of two states, by key; lists by added, removed and changed elements."""
    found = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            found.append({"key": name, "change": "added", "to": after[name]})
        elif name not in after:
            found.append({"key": name, "change": "removed", "from": before[name]})
        elif not _same(before[name], after[name]):
            found.append({"key": name, "change": "changed", **_detail(before[name], after[name])})
    return found


def _same(a: Any, b: Any) -> bool:
    import msgspec

    encode = msgspec.json.Encoder(order="sorted").encode  # 1, 1.0 and True are different values
    return encode(a) == encode(b)


def _detail(old: Any, new: Any) -> Json:
    if isinstance(old, list) and isinstance(new, list):
        pairs = enumerate(zip(old, new, strict=False))
        head = next((i for i, (a, b) in pairs if not _same(a, b)), min(len(old), len(new)))
        return {"at": head, "removed": old[head:], "added": new[head:]}
    if isinstance(old, dict) and isinstance(new, dict):
        return {"entries": differences(old, new)}
    return {"from": old, "to": new}
