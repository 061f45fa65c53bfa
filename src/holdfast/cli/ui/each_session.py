"""One command on several sessions: all are tried at once, each failure is told, the first one's code is returned."""

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

_AT_ONCE = 16  # a stop may take its whole grace time: a handful must not wait for each other


def each(sessions: Sequence[str], action: Action, tell: Callable[[Json], None], *, as_json: bool) -> int:
    """Act on each; one answer is one object in JSON, several are a list in the order asked for."""
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
    """Each in a thread with a connection of its own. Daemon threads: Ctrl-C does not wait for them."""
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
    """A length of time on the command line: 5, 1.5, 30s, 10m, 2h."""
    return duration_s(text)


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    """Of a command that ends whole process trees."""
    arguments.session(parser, nargs="+")
    parser.add_argument("-t", "--time", type=seconds, metavar="S", help="grace time before KILL (10 s unless told)")
    arguments.json_flag(parser)
    arguments.why(parser)


def stopping(op: str, args: argparse.Namespace, tell: Callable[[Json], None]) -> int:
    """`stop` or `restart` for each session."""

    def act(host: Host, session: str) -> Json:
        answer: Json = host.call(op, session=session, grace_s=args.time, why=args.why)
        return answer

    return each(args.session, act, tell, as_json=args.json)


def say(sentence: str, *cells: object) -> None:
    """A sentence for a person, its facts apart by tabs for a pipe."""
    if sys.stdout.isatty():
        print(printing.safe(sentence))
    else:
        print("\t".join(printing.safe(c).replace("\t", " ") for c in cells))


def say_holder(session: str, controls: Json, more: str = "") -> None:
    """Who has the controls now."""
    holder, epoch = controls.get("name") or controls["holder"], controls["epoch"]
    say(f"{holder} holds the controls of {session} (epoch {epoch}){more}", session, holder, epoch)
