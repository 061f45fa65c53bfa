"""Classifies why an attempt failed, and whether the attempts converge. Pure.

The verification's output weighs more than the backend's: it shows what is wrong with the work, not with its worker.
Only a backend that itself lacked something, the network or a program, is classified by its own output.
Convergence compares with the attempts before: a failing set that shrinks converges, the same signature `stuck_after`
times in a row is stuck, and a further attempt would only cost time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from .failure_patterns import FAILING_MAX, ITEM_MAX, Found, last_line, normal, recognise, unique

Json = dict[str, Any]
TYPES = (
    "test_failure",
    "build_error",
    "timeout",
    "no_progress",
    "network",
    "missing_tool",
    "permission",
    "crash",
    "verification_failed",
    "agent_error",
    "in_doubt",
    "unknown",
)
CONVERGENCE = ("first", "converging", "steady", "diverging", "stuck")
STUCK_AFTER = 3  # the same failure this often in a row: the next attempt would fail the same way
_NOT_THE_WORK = frozenset({"network", "permission", "missing_tool", "crash"})  # when the backend itself met them
_NAMED_MAX = 5  # failing items named in a sentence; all of them are in `failing`


class Evidence(NamedTuple):
    """How an attempt ended. What was not checked is None or empty."""

    exit_code: int | None = None
    signal: str | None = None
    known: bool = True  # False: the backend's exit status is unknown
    timed_out: bool = False
    timeout_s: float | None = None
    changed: int | None = None  # files created, changed or deleted
    tail: str = ""  # the end of the backend's output
    verification: Sequence[Json] = ()  # [{command, exit_code, state, tail}]
    missing: str | None = None  # the backend's program, if it is missing
    in_doubt: str | None = None  # the step whose outcome is unknown


def classify(evidence: Evidence, earlier: Sequence[Json] = (), stuck_after: int = STUCK_AFTER) -> Json:
    """`earlier`: the classifications of the attempts before, oldest first."""
    found, focus = _why(evidence)
    failing = list(unique(found.failing))
    signature = f"{found.type}:{_digest(failing or [normal(found.error)])}"
    told = {
        "failure_type": found.type,
        "failure_detail": found.error[:ITEM_MAX],
        "suggested_focus": focus,
        "signature": signature,
        "failing": failing,
    }
    return {**told, "convergence": convergence(told, earlier, stuck_after)}


def convergence(now: Json, earlier: Sequence[Json], stuck_after: int = STUCK_AFTER) -> str:
    """first | converging | steady | diverging | stuck"""
    before = [c for c in earlier if c and c.get("signature")]
    if not before:
        return "first"
    row = before[-(stuck_after - 1) :] if stuck_after > 1 else []
    if len(row) == stuck_after - 1 and all(c["signature"] == now["signature"] for c in row):
        return "stuck"
    last = before[-1]
    if last["signature"] == now["signature"]:
        return "steady"
    if last["failure_type"] == now["failure_type"] and last["failing"] and now["failing"]:
        was, has = len(last["failing"]), len(now["failing"])
        if was == has == FAILING_MAX:
            return "steady"  # both are truncated: their sizes cannot be compared
        return "converging" if has < was else "diverging" if has > was else "steady"
    order = {"build_error": 1, "test_failure": 2}  # a task that builds is further than one that does not
    was, has = order.get(last["failure_type"], 0), order.get(now["failure_type"], 0)
    if was and has:
        return "converging" if has > was else "diverging"
    return "steady"


def _why(e: Evidence) -> tuple[Found, str]:
    if e.in_doubt:
        return Found("in_doubt", f"the outcome of step {e.in_doubt!r} is unknown", (e.in_doubt,)), (
            "find out what happened, then settle the step"
        )
    if e.missing:
        return Found("missing_tool", f"{e.missing}: no such program on PATH", (e.missing,)), (
            f"install {e.missing}, put it on PATH, or choose another backend"
        )
    own = None if e.timed_out or e.exit_code == 0 else _backend(e)
    if own is not None and own[0].type in _NOT_THE_WORK:
        return own  # what it left unfinished says nothing about the work
    failed = [r for r in e.verification if r.get("state") != "passed"]
    if failed:
        return _verification(e, failed)
    if e.timed_out:
        return _too_long(e)
    return own or _backend(e)


def _verification(e: Evidence, failed: Sequence[Json]) -> tuple[Found, str]:
    """The first failed command decides what kind it is; the failing sets of one kind are taken together."""
    first = failed[0]
    command = str(first.get("command") or "")[:ITEM_MAX]
    if first.get("state") == "timeout":
        return Found("timeout", f"the verification took too long: {command}", (normal(command),)), (
            f"make {command!r} end in time, or give it more"
        )
    seen = [(r, recognise(str(r.get("tail") or ""))) for r in failed]
    found = seen[0][1]
    code = first.get("exit_code")
    signal = _signal_of(code)
    if found is None and signal:
        return Found("crash", f"{command} was ended by {signal}", (f"{normal(command)} {signal}",)), _crash(signal)
    if found is None and code in (126, 127):
        return _shell_code(code, command, str(first.get("tail") or ""))
    if found is None:
        said = last_line(str(first.get("tail") or ""))
        how = "exit status unknown" if code is None else f"exit code {code}"
        error = f"{command}: {how}" + (f": {said}" if said else "")
        return Found("verification_failed", error, (normal(f"{command} {said}"),)), f"make this pass: {command}"
    both = unique(item for _, f in seen if f and f.type == found.type for item in f.failing)
    found = found._replace(failing=both)
    return found, _focus(found, e)


def _too_long(e: Evidence) -> tuple[Found, str]:
    after = f" after {e.timeout_s:g} s" if e.timeout_s else ""
    if e.changed == 0:
        return Found("no_progress", f"time was up{after}, and no file had changed", ("no change",)), (
            "split the task into smaller steps, or try another backend"
        )
    return Found("timeout", f"time was up{after}; {e.changed or 'some'} changed files were kept", ("timeout",)), (
        "continue from its changes, or give it more time"
    )


def _backend(e: Evidence) -> tuple[Found, str]:
    signal = e.signal or _signal_of(e.exit_code)
    found = recognise(e.tail)
    if signal:
        if found is not None and found.type == "crash":
            return found._replace(failing=(signal, *found.failing)), _crash(signal)
        said = " (out of memory, or killed by a person or a program)" if signal == "SIGKILL" else ""
        return Found("crash", f"the backend was ended by {signal}{said}", (signal,)), _crash(signal)
    if not e.known or e.exit_code is None:
        return Found("unknown", "the backend's exit status is unknown", ("unknown",)), (
            "check its changes and its output, then try again"
        )
    if e.exit_code in (126, 127) and (found is None or found.type in ("missing_tool", "permission")):
        return _shell_code(e.exit_code, "the backend", e.tail)
    if found is None:
        said = last_line(e.tail)
        error = f"the backend gave up with exit code {e.exit_code}" + (f": {said}" if said else "")
        return Found("agent_error", error, (normal(said) or f"exit {e.exit_code}",)), (
            "read the end of its output, then try again or choose another backend"
        )
    return found, _focus(found, e)


def _shell_code(code: int, what: str, tail: str) -> tuple[Found, str]:
    """126 and 127 as a shell means them."""
    said = last_line(tail)
    if code == 126:
        found = Found("permission", f"{what} cannot be executed: {said}", (normal(said or what),))
    else:
        found = Found("missing_tool", f"{what}: a program is missing: {said}", (normal(said or what),))
    return found, _focus(found, Evidence())


def _focus(found: Found, e: Evidence) -> str:
    cut = " (the backend was cut off by its timeout)" if e.timed_out else ""
    named = ", ".join(found.failing[:_NAMED_MAX])
    more = f" and {len(found.failing) - _NAMED_MAX} more" if len(found.failing) > _NAMED_MAX else ""
    sentence = {
        "test_failure": f"make these pass: {named or found.error}{more}",
        "build_error": f"fix this first: {found.error}",
        "network": "check whether the address answers; nothing is known to be wrong with the work itself",
        "missing_tool": f"install or provide what is missing: {found.error}",
        "permission": f"grant the access that was refused, or find another way: {found.error}",
        "crash": _crash(found.error),
    }.get(found.type, found.error)
    return (sentence + cut)[: 4 * ITEM_MAX]


def _crash(what: str) -> str:
    if what == "SIGKILL":
        return "find out what ended it: the kernel's out-of-memory killer, a limit, or a person"
    return f"find where it crashes: {what}"[:ITEM_MAX]


_SIGNALS = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}


def _signal_of(code: object) -> str | None:
    """The signal in an exit code of a shell (128+n) or of Python (-n)."""
    if not isinstance(code, int):
        return None
    return _SIGNALS.get(code - 128) if code > 128 else _SIGNALS.get(-code) if code < 0 else None


def _digest(items: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(items)).encode("utf-8", "replace")).hexdigest()[:16]
