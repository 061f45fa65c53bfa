"""Claude Code's hook events: which questions they ask, and what an answer becomes. Pure.

    PermissionRequest              an approval, held while its dialog is open       allow or deny, with the reason
    PreToolUse of AskUserQuestion  one question after the other                     the answers, as the tool's input
    PostToolUse, PostToolUseFailure, UserPromptSubmit, Stop                         open items were decided elsewhere
    Notification                   a question, when Claude Code waits for a person  sent with the next prompt
    SessionStart                   -                                                the resume brief as context
    PreCompact, Stop, SessionEnd   -                                                a note or checkpoint in the run

Empty output is the safe answer: Claude Code then asks at its own terminal, as if there were no hook.
Exit status 2 would block the agent's action, so it is never used.
"""

from __future__ import annotations

import hashlib
import json

from ....model.errors import HoldfastError
from ....model.limits import ASK_OPTIONS_MAX
from ....model.redact import bounded, hides_acts, redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Json = dict[str, Any]

INPUT_MAX = 16 << 20  # bytes on stdin: an event of the Write tool contains the whole file
COMMAND_MAX = 3000  # characters of a command to approve: it is shown whole, or not asked at all
VALUE_MAX = 300  # characters of any other argument: enough to recognise it
MESSAGE_MAX = 500  # characters of a message that becomes a note or an item
CONTEXT_MAX = 9500  # characters of additionalContext: Claude Code itself cuts at 10,000
QUESTIONS_MAX = 8  # Claude Code asks at most four at once

# Notifications that mean that Claude Code waits for a person; the others, also an idle agent, are only information.
_DIALOGS = ("permission_prompt", "elicitation_dialog")  # drawn on its terminal: in a session the inbox shows the menu
_WAITING = (*_DIALOGS, "agent_needs_input")
_CALLED = "Claude Code calls this; hold connect claude sets it up"
_TARGETS = ("file_path", "notebook_path", "path", "url")  # the target: shown whole, or not asked at all
_PATHS = (*_TARGETS, "pattern", "query", "description")


class HookQuestion:
    """One question for a person."""

    __slots__ = ("key", "kind", "options", "text")

    def __init__(self, kind: str, text: str, options: Sequence[str] = (), key: str = "") -> None:
        self.kind, self.text, self.options, self.key = kind, text, list(options), key


def read(data: bytes) -> Json:
    """Parse the event on stdin; raises HoldfastError if it is not valid."""
    if len(data) > INPUT_MAX:
        raise HoldfastError(
            "failed", f"a hook event of more than {INPUT_MAX} bytes", "Claude Code asks at its own terminal"
        )
    try:
        event = json.loads(data)
    except ValueError:
        raise HoldfastError("failed", "stdin is not a hook event in JSON", _CALLED) from None
    if not isinstance(event, dict) or not isinstance(event.get("hook_event_name"), str):
        raise HoldfastError("failed", "stdin is JSON without hook_event_name", _CALLED)
    return event


def tag(event: Json) -> str:
    """The label of all items of one Claude Code conversation."""
    return f"Claude Code {bounded(str(event.get('session_id') or '?'), 80)}"


def dialog(event: Json) -> Json:
    """The key of a dialog: the conversation, the agent inside it, and the tool call."""
    return {"conversation": tag(event), "agent": _agent(event), "call": _call(event)}


def over(event: Json, now: float) -> Json | None:
    """The dialogs that an event shows to be decided (model.asks.decided); None if it shows none."""
    name = event["hook_event_name"]
    if name in ("UserPromptSubmit", "SessionEnd"):
        return {"conversation": tag(event)}
    if name == "Stop":
        return {"conversation": tag(event), "agent": _agent(event)}
    if name not in ("PostToolUse", "PostToolUseFailure"):
        return None
    took = event.get("duration_ms")
    took_s = took / 1000 if isinstance(took, int | float) and 0 < took < now * 1000 else 0.0
    return {**dialog(event), "began": now - took_s}


def _agent(event: Json) -> str | None:
    """The subagent, which asks and continues independently of its conversation."""
    return bounded(str(event["agent_id"]), 80) if event.get("agent_id") else None


def _call(event: Json) -> str | None:
    """A key that is equal for the request to use a tool and for its use: the two events share no id."""
    if not event.get("tool_name"):
        return None
    given = json.dumps([event["tool_name"], event.get("tool_input")], sort_keys=True, default=str)
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


def asks(event: Json) -> list[HookQuestion]:
    """The questions for a person; empty if only Claude Code itself can ask."""
    name = event["hook_event_name"]
    if name == "PermissionRequest" and event.get("tool_name") != "AskUserQuestion":
        text = described(event)
        return [HookQuestion("approval", text)] if text else []
    if name == "PreToolUse" and event.get("tool_name") == "AskUserQuestion":
        return _questions(event)
    return []


def described(event: Json) -> str | None:
    """The tool and its arguments, without secrets; None if they cannot be shown whole."""
    tool, given = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not tool or not isinstance(given, dict):
        return None
    where = f"{bounded(tool, 100)} in {bounded(str(event.get('cwd') or '?'), VALUE_MAX)}"
    if any(isinstance(given.get(k), str) and len(given[k]) > VALUE_MAX for k in _TARGETS):
        return None  # a truncated name is a different name
    command, plan = given.get("command"), given.get("plan")
    if isinstance(command, str):
        if len(command) > COMMAND_MAX or hides_acts(command):
            return None  # an approval of a truncated command would approve the hidden part too
        about = given.get("description")
        said = redact(command) + (f"\n# {bounded(about, VALUE_MAX)}" if isinstance(about, str) else "")
        return "\n".join([where, said, *_others(given, ("command", "description"))])
    if isinstance(plan, str):
        return "\n".join([where, bounded(plan, COMMAND_MAX), *_others(given, ("plan",))])
    return bounded("\n".join([where, *_others(given, ())]), COMMAND_MAX)


def _others(given: Json, shown: Sequence[str]) -> list[str]:
    """All other arguments: one of them may turn a sandbox off."""
    lines = [f"{k}: {bounded(given[k], VALUE_MAX)}" for k in _PATHS if k not in shown and isinstance(given.get(k), str)]
    known = [*shown, *(k for k in _PATHS if isinstance(given.get(k), str))]
    return [*lines, *(f"{bounded(str(k), 60)}: {_sized(v)}" for k, v in given.items() if k not in known)]


def _sized(value: object) -> str:
    """The size of a value that is not shown; numbers and booleans are shown as they are."""
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    return f"({len(value)} characters)" if isinstance(value, str) else f"({len(json.dumps(value))} bytes of JSON)"


def _questions(event: Json) -> list[HookQuestion]:
    given = event.get("tool_input")
    questions = given.get("questions") if isinstance(given, dict) else None
    if not isinstance(questions, list) or not 0 < len(questions) <= QUESTIONS_MAX:
        return []
    found = []
    for question in questions:
        text = question.get("question") if isinstance(question, dict) else None
        if not isinstance(text, str) or not text.strip() or len(text) > COMMAND_MAX:
            return []
        labels = [o.get("label") for o in question.get("options") or [] if isinstance(o, dict)]
        options = [o for o in labels if isinstance(o, str) and o.strip()][:ASK_OPTIONS_MAX]
        if question.get("multiSelect"):  # several, joined by commas: an item's options are for one
            found.append(HookQuestion("question", f"{text}\n(several may be named: {', '.join(options)})", key=text))
        else:
            found.append(HookQuestion("question", text, options, key=text))
    return found


def answer(event: Json, asked: Sequence[HookQuestion], items: Sequence[Json]) -> Json | None:
    """The hook's output for the given answers; None (Claude Code asks itself) if one is missing."""
    no = next((i for i in items if i["state"] == "denied"), None)
    if no is None and (not items or len(items) < len(asked) or any(i["state"] != "answered" for i in items)):
        return None
    if event["hook_event_name"] == "PermissionRequest":
        decision = {"behavior": "deny", "message": _reason(no)} if no else {"behavior": "allow"}
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    out: Json = {"hookEventName": "PreToolUse"}
    if no:
        return {"hookSpecificOutput": {**out, "permissionDecision": "deny", "permissionDecisionReason": _reason(no)}}
    answers = {a.key: str(i["answer"]) for a, i in zip(asked, items, strict=True)}
    given = {**event["tool_input"], "answers": answers}
    reason = f"answered in the inbox by {_who(items[-1])}"
    out.update(permissionDecision="allow", permissionDecisionReason=reason, updatedInput=given)
    return {"hookSpecificOutput": out}


def _reason(item: Json) -> str:
    why = item.get("answer_why")
    return f"{_who(item)} denied it" + (f": {bounded(str(why), MESSAGE_MAX)}" if why else "")


def _who(item: Json) -> str:
    by = item.get("answered_by") or {}
    return str(by.get("name") or "a person (unknown)")


def notification(event: Json, in_session: bool) -> str | None:
    """The item's text when Claude Code waits for a person; None for other notifications."""
    kind = event.get("notification_type")
    if event["hook_event_name"] != "Notification" or kind not in _WAITING or (in_session and kind in _DIALOGS):
        return None
    message = event.get("message")
    where = bounded(str(event.get("cwd") or "?"), VALUE_MAX)
    said = bounded(message, MESSAGE_MAX) if isinstance(message, str) and message.strip() else "Claude Code waits"
    return f"{said} (in {where})\nAn answer reaches it with its next prompt; to type there now: its terminal."


def context(name: str, text: str) -> Json:
    """The hook's output that adds text to the model's context."""
    if len(text) > CONTEXT_MAX:
        text = text[:CONTEXT_MAX] + f"\n… [{len(text) - CONTEXT_MAX} more characters: hold resume]"
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def said_meanwhile(items: Sequence[Json]) -> str:
    """Answers to earlier notifications, as text for the model."""
    lines = [f"- {_who(i)}: {i['answer']}" for i in items if i["state"] == "answered" and i["answer"]]
    return "\n".join(["While you waited, people answered through the Holdfast inbox:", *lines]) if lines else ""


def note(event: Json) -> str | None:
    """The note for the run when Claude Code stops or ends, with the beginning of its last message."""
    name = event["hook_event_name"]
    if name == "SessionEnd":
        return f"Claude Code's session ended ({bounded(str(event.get('reason') or 'other'), 60)})"
    if name != "Stop":
        return None
    last = event.get("last_assistant_message")
    return "Claude Code stopped" + (f": {bounded(last, MESSAGE_MAX)}" if isinstance(last, str) and last else "")
