"""`hold exec --step RUN:KEY`: records the step's intent before the command is typed, and its outcome after."""

from __future__ import annotations

import time

from ...client._sync.host import Host, Session
from ...model.errors import HoldfastError
from ..ui import printing
from .exec import exit_code, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]


def run_step(host: Host, args: argparse.Namespace, words: list[str]) -> int:
    run, found, key = args.step.partition(":")
    if not run or not found or not key:
        raise HoldfastError("usage", f"--step must be RUN:KEY (got {args.step[:60]!r})", "hold work ls lists the runs")
    plan = host.work.exec_begin(
        run, key, args.session, words, effect=args.effect or "unsafe", why=args.why, epoch=args.epoch
    )
    if plan["decision"] == "reuse":
        return _again(host, args, plan)
    if plan["decision"] == "adopt":
        printing.note(f"hold: step {key} is already running as {plan['exec_id']}; waiting for it")
    at_once = args.json or args.max_output is not None
    if at_once:
        result = host.work.exec_done(plan, words, timeout=args.timeout, why=args.why)
    else:
        result = _live(host, args, words, plan)
    host.work.exec_end(plan, result)
    if at_once:
        show(Session(host, plan["session"], args.session), args, result, step=_about(plan))
    if result["state"] not in ("exited", "shell_ended"):
        printing.note(f"hold: the step stays open; to wait for it, repeat the command (--step {args.step})")
    elif result["exit_code"] is None:
        printing.note(f"hold: in doubt; hold step settle {run} {key} --done|--not-done --evidence TEXT")
        return 5
    return exit_code(result, quiet=args.json, name=args.session, timed_out=args.timeout is not None)


def _about(plan: Json) -> Json:
    return {"run": plan["run"], "key": plan["key"], "decision": plan["decision"]}


def _again(host: Host, args: argparse.Namespace, plan: Json) -> int:
    """Print the recorded output of a step that is already done, and return its exit code."""
    kept = plan["result"]
    if not isinstance(kept, dict) or "exec_id" not in kept:
        raise HoldfastError("conflict", f"step {plan['key']!r} is done, but was not a command", "use another key")
    result = {**kept, "state": "exited", "prompt": None}
    try:
        show(Session(host, kept["session"], args.session), args, result, step=_about(plan))
    except HoldfastError:  # the session is gone; the step record has the end of the output
        if args.json:
            printing.print_json({**result, "omitted_bytes": 0, "step": _about(plan)})
        else:
            printing.write(str(kept.get("output") or "").encode("utf-8", "surrogateescape"))
    if not args.json:
        printing.note(f"hold: step {plan['key']} is already done; showing its recorded result")
    return int(kept["exit_code"] or 0)


def _live(host: Host, args: argparse.Namespace, words: list[str], plan: Json) -> Json:
    """Show the output live."""
    from .exec_live import follow

    began = time.monotonic()
    started = host.work.exec_done(plan, words, why=args.why, start_only=True)
    left = None if args.timeout is None else max(0.0, args.timeout - (time.monotonic() - began))
    try:
        return follow(host, plan["session"], started, left, raw=args.raw)
    except KeyboardInterrupt:
        printing.note(f"hold: the command is still running; to wait for it, repeat the command (--step {args.step})")
        raise
