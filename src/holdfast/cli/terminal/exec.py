"""Run a command in a session's shell; prints its output and returns its exit code.

hold exec dev -- make test
hold exec dev 'cd src && ls | wc -l'      one argument is shell source
hold exec calc 'x + 1'                    in a kernel: code (hold run --kernel python3)
hold exec dev --step RUN:deploy -- ./deploy.sh      as a step of a durable run: never silently twice
"""

from __future__ import annotations

import sys
import time

from ...client._sync.host import Host, Session, plain_text
from ...model import ids
from ...model.errors import HoldfastError
from ...model.limits import EXEC_OUTPUT_BYTES
from ...model.work.effects import EFFECTS
from ..ui import arguments, printing
from ..ui.held_for_caller import passing_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ...model.home import Home

_BEGINS_S = 0.02  # a typed command begins at once; this wait is only for a new daemon


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("--timeout", type=float, metavar="S", help="return after this time; the command keeps running")
    parser.add_argument("--max-output", type=int, metavar="BYTES", help="longer output: keep only its head and tail")
    parser.add_argument("--raw", action="store_true", help="the terminal's exact bytes (CR LF line ends)")
    parser.add_argument("--step", metavar="RUN:KEY", help="run it as this step: record its intent first")
    parser.add_argument("--effect", choices=EFFECTS, help="--step: what running it twice would do (default: unsafe)")
    parser.add_argument("--epoch", type=int, help="--step: the lease's epoch, for a worker with a lease")
    parser.add_argument(
        "cmd", nargs="*", metavar="CMD", help="the command: one argument is shell source, several are quoted"
    )
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if not args.step and (args.effect or args.epoch is not None):
        raise HoldfastError("usage", "--effect and --epoch need --step", "--step RUN:KEY")
    if args.timeout is not None and args.timeout < 0:
        raise HoldfastError("usage", "a timeout cannot be negative", "as in --timeout 30")
    if args.max_output is not None and args.max_output < 0:
        raise HoldfastError("usage", "--max-output cannot be negative", "as in --max-output 65536")
    words = [*args.cmd, *(args.command_words or [])]
    if not words:
        raise HoldfastError("usage", "no command to run", "hold exec SESSION -- COMMAND")
    host = passing_host()
    if args.step:
        from .exec_step import run_step

        return run_step(host, args, words)
    return _json(host, args, words) if args.json or args.max_output is not None else _stream(host, args, words)


def _json(host: Host, args: argparse.Namespace, words: list[str]) -> int:
    session = Session(host, args.session, args.session)
    result = session.exec_raw(words, args.timeout, args.why)
    show(session, args, result)
    return exit_code(result, quiet=args.json, name=args.session, timed_out=args.timeout is not None)


def show(session: Session, args: argparse.Namespace, result: dict[str, Any], **more: Any) -> None:
    """Print the whole result: a JSON document, or the output within the limit."""
    raw, omitted = session.exec_output(result, EXEC_OUTPUT_BYTES if args.max_output is None else args.max_output)
    if args.json:
        printing.print_json({**document(result, raw, omitted), **more})
    else:
        print_output(session.host.home, raw, args.raw)


def document(result: dict[str, Any], raw: bytes, omitted: int) -> dict[str, Any]:
    """The result as the documented JSON object."""
    keys = ("exec_id", "state", "exit_code", "start", "end", "duration_ms", "cwd", "prompt")
    more = ("outputs", "error", "execution_count", "outputs_omitted", "ask")  # of a kernel's cell; of an approval
    return {
        **{k: result[k] for k in keys},
        "output": plain_text(raw),
        "omitted_bytes": omitted,
        **{k: result[k] for k in more if k in result},
    }


def print_output(home: Home, raw: bytes, as_is: bool) -> None:
    """Print an exec's output: filtered for a terminal, with plain line ends for a pipe, or raw."""
    from ...client.terminal_output import shown_on

    shown = shown_on(sys.stdout.fileno(), home, raw=as_is)
    data = raw if as_is or sys.stdout.isatty() else raw.replace(b"\r\n", b"\n")
    sys.stdout.buffer.write(shown.strip(data) + shown.flush())
    sys.stdout.buffer.flush()


def _stream(host: Host, args: argparse.Namespace, words: list[str]) -> int:
    """Show the output live, then return the command's exit code."""
    from .exec_live import follow

    began = time.monotonic()
    exec_id = ids.new("exe_")
    started = _started(host, args, words, exec_id)
    left = None if args.timeout is None else max(0.0, args.timeout - (time.monotonic() - began))
    if started["state"] == "waiting_for_approval":
        return exit_code(started, quiet=False, name=args.session, timed_out=True)
    exec_id = started["exec_id"]  # of the same command, if it was started before
    try:
        result = follow(host, args.session, started, left, raw=args.raw)
    except KeyboardInterrupt:
        printing.note(
            f"hold: the command is still running; hold exec-result {args.session} {exec_id}, or send Ctrl-C to it:"
            f" hold send {args.session} --key C-c"
        )
        raise
    return exit_code(result, quiet=False, name=args.session, timed_out=args.timeout is not None)


def _started(host: Host, args: argparse.Namespace, words: list[str], exec_id: str) -> dict[str, Any]:
    """The command, once it has begun. It may wait for approval first, longer than a daemon lives."""
    while True:
        try:
            return host.call(  # type: ignore[no-any-return]
                "exec",
                session=args.session,
                words=words,
                exec_id=exec_id,
                start_only=True,
                why=args.why,
                timeout=args.timeout,
                standing=args.timeout is not None,
            )
        except HoldfastError as e:
            if e.code != "host_gone":
                raise
        try:  # the record says whether it was typed
            return _begun(host, args.session, exec_id)
        except HoldfastError as e:
            if e.code not in ("not_found", "host_gone"):
                raise


def _begun(host: Host, session: str, exec_id: str) -> dict[str, Any]:
    while True:
        result: dict[str, Any] = host.call("exec_result", session=session, exec_id=exec_id)
        if result["start"] is not None or result["state"] != "running":
            return result
        time.sleep(_BEGINS_S)


def exit_code(result: dict[str, Any], *, quiet: bool, name: str, timed_out: bool) -> int:
    """The command's exit code; 124 on timeout, also before a person approved it; 1 if it waits for input or its code
    is unknown."""
    state = result["state"]
    if state in ("exited", "shell_ended") and result["exit_code"] is not None:
        return int(result["exit_code"])
    if not quiet:
        printing.note(f"hold: {explain(result, name)}")
    return 124 if state in ("running", "waiting_for_approval") and timed_out else 1


def explain(result: dict[str, Any], name: str) -> str:
    later = f"hold exec-result {name} {result['exec_id']}"
    return {
        "running": f"still running; {later}",
        "waiting_for_input": f"it waits for input ({result['prompt']!r}); answer with hold send {name}, then {later}",
        "waiting_for_secret": f"it waits for a secret; answer with hold send {name} --secret --stdin, then {later}",
        "menu": f"it shows a menu; hold attach {name}, or hold send {name} --key down --key enter, then {later}",
        "full_screen": f"it shows a full-screen program; hold attach {name}, then {later}",
        "waiting_for_approval": f"{result.get('ask')} waits for a person's approval; it runs after that, then {later}",
        "shell_ended": "the shell ended and its exit status is unknown",
        "exited": "it ended, and its exit status is unknown",
    }[str(result["state"])]
