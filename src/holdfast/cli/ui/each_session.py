"""Runs one command on several sessions in parallel, prints each failure, and returns the first failure's exit code."""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.durations import duration_s
from ...model.errors import HoldfastError
from . import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any

    Json = dict[str, Any]
    Action = Callable[[Host, str], Json]

_AT_ONCE = 16  # a stop may take its whole grace time: several must not wait for each other


def each(sessions: Sequence[str], action: Action, tell: Callable[[Json], None], *, as_json: bool) -> int:
    """Act on each session; in JSON one answer is an object, several are a list in the given order."""
    wanted = list(dict.fromkeys(sessions))
    if len(wanted) == 1:
        answer = action(Host(), wanted[0])
        if as_json:
            printing.print_json(answer)
        else:
            tell(answer)
        return 0
    code, documents = 0, []
    for session, outcome in zip(wanted, _at_once(wanted, action), strict=True):
        if isinstance(outcome, HoldfastError):
            code = code or outcome.exit_status
            documents.append({"session": session, "error": outcome.as_dict()})
            if not as_json:
                printing.note(f"hold: {outcome.line()}")
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            documents.append(outcome)
            if not as_json:
                tell(outcome)
    if as_json:
        printing.print_json(documents)
    return code


def _at_once(wanted: list[str], action: Action) -> list[Json | BaseException]:
    """Run each in a thread with its own connection. Daemon threads: Ctrl-C does not wait for them."""
    import threading

    outcomes: list[Any] = [None] * len(wanted)
    left = list(enumerate(wanted))

    def work() -> None:
        host = Host()
        while left:
            try:
                n, session = left.pop()
            except IndexError:
                break
            try:
                outcomes[n] = action(host, session)
            except BaseException as e:  # noqa: BLE001  (raised again, or told, by the caller's thread)
                outcomes[n] = e
        host.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(_AT_ONCE, len(wanted)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def seconds(text: str) -> float:
    """Parse a duration: 5, 1.5, 30s, 10m, 2h."""
    return duration_s(text)


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that ends process trees."""
    arguments.session(parser, nargs="+")
    parser.add_argument("-t", "--time", type=seconds, metavar="S", help="grace time before KILL (default: 10 s)")
    arguments.json_flag(parser)
    arguments.why(parser)


def stopping(op: str, args: argparse.Namespace, tell: Callable[[Json], None]) -> int:
    """Run `stop` or `restart` on each session."""

    def act(host: Host, session: str) -> Json:
        answer: Json = host.call(op, session=session, grace_s=args.time, why=args.why)
        return answer

    return each(args.session, act, tell, as_json=args.json)


def say(sentence: str, *cells: object) -> None:
    """Print a sentence on a terminal, tab-separated facts in a pipe."""
    if sys.stdout.isatty():
        print(printing.safe(sentence))
    else:
        print("\t".join(printing.safe(c).replace("\t", " ") for c in cells))


def say_holder(session: str, controls: Json, more: str = "") -> None:
    """Print who holds the controls now."""
    holder, epoch = controls.get("name") or controls["holder"], controls["epoch"]
    say(f"{holder} holds the controls of {session} (epoch {epoch}){more}", session, holder, epoch)
