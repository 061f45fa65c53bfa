"""A journal entry of a session as a few words for whoever watches a recording: who did what. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Kinds that are told, with the words for them; a size is an event of the recording already.
_WORDS = {
    "start": "started it", "restart": "restarted it", "stop": "stopped it", "input": "typed", "send": "sent text",
    "exec": "ran a command", "end_input": "ended the input", "attach": "attached", "detach": "detached",
    "take": "took the controls", "release": "released the controls", "preempt": "took over", "ask": "asked",
    "deny": "said no", "approve": "approved", "answer": "answered", "rename": "renamed it",
}  # fmt: skip
_NOBODY = {"expire": "the controls became free", "reap": "it was idle and was ended"}


def who(actor: Mapping[str, Any] | None) -> str:
    if not actor or not actor.get("name"):
        return "nobody"
    kind = actor.get("operator_kind") or actor.get("kind")
    return f"{actor['name']} ({kind})" if kind else str(actor["name"])


def label(entry: Mapping[str, Any]) -> str | None:
    """`ada (human) took over from bot (agent)`, or None for what is not worth a mark."""
    kind = str(entry.get("kind"))
    if kind in _NOBODY:
        return _NOBODY[kind]
    if not entry.get("name"):
        return None
    words = _WORDS.get(kind)
    if kind == "hand":
        words = f"handed the controls to {who(entry.get('to'))}"
    elif kind == "signal":
        words = f"sent {entry.get('signal', 'a signal')}"
    elif kind == "input" and entry.get("what") == "answer":
        words = "answered the prompt"
    elif kind in ("take", "preempt") and entry.get("from"):
        words = f"took over from {who(entry['from'])}"
    if words is None:
        return None
    why = entry.get("note") or entry.get("why")
    return f"{who(entry)} {words}" + (f": {why}" if why else "")
