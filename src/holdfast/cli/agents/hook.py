"""Run as Claude Code's hook: permission requests, questions and notifications become inbox items, and a new or
compacted conversation begins with the resume brief.

  hold hook claude                     reads the event on stdin; hold connect claude sets this up
  hold hook claude --wait 10m          wait this long for an approval; then Claude Code asks at its own terminal

It always returns, and never denies without an answer: if there is no answer, no host, or input that it cannot read, it
prints nothing, and Claude Code continues as if there were no hook. HOLDFAST_RUN or HOLDFAST_TASK names the run whose
log gets a note when Claude Code stops, and a checkpoint before it compacts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from ..ui.each_session import seconds
from .hooks import claude_events, resume_brief
from .hooks.open_items import OpenItems

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

APPROVAL_WAIT_S = 300.0  # time for a person with a phone; the dialog of Claude Code is open too
QUESTION_WAIT_S = 60.0  # here its own dialog opens only afterwards: a person at the terminal must not wait long
_READ_S = 10.0  # an event that is not complete by then is given up
_SPARE_S = 20.0  # for starting a host first, and for the last call to it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    assert isinstance(parser, arguments.Parser)
    parser.mistake = "failed"  # exit 2 from a hook would block the agent
    parser.add_argument("agent", metavar="claude", help="the agent program")
    parser.add_argument("--wait", metavar="S", help="wait at most this long for an answer: 30, 10m")
    parser.add_argument("--name", metavar="OPERATOR", default="claude", help="ask as this agent, if it is enrolled")


class _TimeUpError(Exception):
    pass


def _time_up(*_: object) -> None:
    raise _TimeUpError


def run(args: argparse.Namespace) -> int:
    if args.agent != "claude":
        raise HoldfastError("failed", f"no hook for {args.agent[:40]!r}", "hold hook claude")
    signal.signal(signal.SIGALRM, _time_up)
    signal.setitimer(signal.ITIMER_REAL, _READ_S)
    try:
        args.wait = seconds(args.wait) if args.wait is not None else None
        event = claude_events.read(
            sys.stdin.buffer.read(claude_events.INPUT_MAX + 1) if not sys.stdin.isatty() else b""
        )
        signal.setitimer(signal.ITIMER_REAL, _wait(args, event) + _SPARE_S)
        answer = _handled(event, args)
    except _TimeUpError:
        printing.note("hold: the hook timed out; Claude Code asks at its own terminal")
        return 0
    except HoldfastError as e:
        printing.note(f"hold: {e.line()}")
        return 1
    except Exception as e:  # noqa: BLE001  whatever it is, it must not become the agent's problem
        printing.note(f"hold: the hook failed: {e!r}; please report it")
        return 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if answer is not None:
        printing.print_json(answer)
    return 0


def _wait(args: argparse.Namespace, event: Json) -> float:
    if args.wait is not None:
        return float(args.wait)
    return QUESTION_WAIT_S if event["hook_event_name"] == "PreToolUse" else APPROVAL_WAIT_S


def _handled(event: Json, args: argparse.Namespace) -> Json | None:
    handle = _HANDLERS.get(event["hook_event_name"])
    host = Host()
    used = os.environ.get("HOLDFAST_ISOLATED") or os.path.exists(host.home.ledger)
    if not used:
        return None  # no host was ever started in this home: no person would see the item
    _tell_decided(event, args.name)
    if handle is None or _nothing_to_do(event, host.home.path):
        return None
    try:
        return handle(_as_agent(host, args.name), event, args)
    except HoldfastError as e:
        printing.note(f"hold: {e.line()}")  # no host, no room, no right: Claude Code continues without the hook
        return None


def _nothing_to_do(event: Json, home: str) -> bool:
    """Whether the event needs no call to the host; such events come with each prompt and turn."""
    name = event["hook_event_name"]
    if name in ("PermissionRequest", "PreToolUse"):
        return not claude_events.asks(event)
    if name == "Notification":
        return claude_events.notification(event, _in_session()) is None
    works = os.environ.get("HOLDFAST_RUN") or os.environ.get("HOLDFAST_TASK")
    if name in ("Stop", "PreCompact"):
        return not works
    return (
        name in ("UserPromptSubmit", "SessionEnd")
        and not works
        and not OpenItems(home, claude_events.tag(event)).asks()
    )


def _in_session() -> bool:
    return bool(os.environ.get("HOLDFAST_SESSION"))


def _tell_decided(event: Json, name: str) -> None:
    """Close the items whose dialogs this event decides. A host that is down has no open items: a hook that waits
    for one would have started it again."""
    over = claude_events.over(event, time.time())
    if over is not None:
        with contextlib.suppress(HoldfastError):  # no host runs, or an older one
            _as_agent(Host(autostart=False), name).call("decided", **over)


def _as_agent(host: Host, name: str) -> Host:
    """The agent's key if it is enrolled here; otherwise the identity that the kernel reports for this process."""
    if host.operator:
        return host
    agent = Host(operator=name, autostart=host.autostart)
    try:
        agent.call("whoami")
    except HoldfastError:
        agent.close()
        return host
    return agent


def _ask(host: Host, event: Json, args: argparse.Namespace) -> Json | None:
    asked = claude_events.asks(event)
    items: list[Json] = []
    deadline = time.monotonic() + _wait(args, event)
    for one in asked:
        left = max(0.0, deadline - time.monotonic())
        items.append(
            host.ask_held(
                one.text,
                kind=one.kind,
                options=one.options,
                wait=left,
                why=claude_events.tag(event),
                dialog=claude_events.dialog(event),
            )
        )
        if items[-1]["state"] != "answered":
            break
    return claude_events.answer(event, asked, items)


def _notify(host: Host, event: Json, args: argparse.Namespace) -> Json | None:
    mine = [i for i in host.call("inbox")["items"] if i["detail"].get("why") == claude_events.tag(event)]
    if mine:
        return None  # this is in the inbox already
    text = claude_events.notification(event, _in_session()) or ""
    dialog = {**claude_events.dialog(event), "call": None}
    item = host.ask_raw(text, session=None, options=(), why=claude_events.tag(event), dialog=dialog)
    kept = OpenItems(host.home.path, claude_events.tag(event))
    kept.keep([*kept.asks(), item["id"]])
    return None


def _answers(host: Host, event: Json) -> str:
    """The answers that arrived since the last event; does not wait."""
    kept = OpenItems(host.home.path, claude_events.tag(event))
    items = []
    for ask in kept.asks():
        try:
            items.append(host.withdraw(ask))
        except HoldfastError:
            continue  # too old: the host removed it
    kept.forget()
    return claude_events.said_meanwhile(items)


def _prompt(host: Host, event: Json, args: argparse.Namespace) -> Json | None:
    said = _answers(host, event)
    return claude_events.context("UserPromptSubmit", said) if said else None


def _begin(host: Host, event: Json, args: argparse.Namespace) -> Json | None:
    parts = [resume_brief.of(host), _answers(host, event)]
    text = "\n\n".join(p for p in parts if p)
    return claude_events.context("SessionStart", text) if text else None


def _stop(host: Host, event: Json, args: argparse.Namespace) -> Json | None:
    run, text = resume_brief.run_of(host), claude_events.note(event)
    if run and text:
        host.work.call("log_append", run=run, body=text, kind="note", step=None)
    if event["hook_event_name"] == "SessionEnd":
        _answers(host, event)
    return None


def _compact(host: Host, event: Json, args: argparse.Namespace) -> Json | None:
    run = resume_brief.run_of(host)
    if run:
        label = f"before Claude Code compacts ({'auto' if event.get('trigger') == 'auto' else 'manual'})"
        host.work.call("checkpoint_save", run=run, state={}, replace=False, label=label, epoch=None)
    return None


_HANDLERS: dict[str, Callable[[Host, Json, argparse.Namespace], Json | None]] = {
    "PermissionRequest": _ask,
    "PreToolUse": _ask,
    "Notification": _notify,
    "UserPromptSubmit": _prompt,
    "SessionStart": _begin,
    "PreCompact": _compact,
    "Stop": _stop,
    "SessionEnd": _stop,
}
