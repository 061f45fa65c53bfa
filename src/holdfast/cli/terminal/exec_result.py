"""Show a command started with `hold exec`: its output on stdout, its state on stderr.

hold exec-result dev exe_2q7…
hold exec-result dev exe_2q7… --wait --json
"""

from __future__ import annotations

from ...client._sync.host import Host, Session
from ...model.errors import HoldfastError
from ...model.limits import EXEC_OUTPUT_BYTES
from ..ui import arguments, printing
from ..ui.each_session import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("exec_id", metavar="EXEC_ID", help="the command's id, from hold exec --json")
    parser.add_argument("--wait", action="store_true", help="wait until it ends, or waits for a person")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="with --wait: at most this long")
    parser.add_argument("--max-output", type=int, metavar="BYTES", help="longer output: keep only its head and tail")
    parser.add_argument("--raw", action="store_true", help="the terminal's exact bytes (CR LF line ends)")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from .exec import document, explain, print_output

    if args.max_output is not None and args.max_output < 0:
        raise HoldfastError("usage", "--max-output cannot be negative", "as in --max-output 65536")
    host = Host()
    result = host.call("exec_result", session=args.session, exec_id=args.exec_id, wait=args.wait, timeout=args.timeout)
    limit = EXEC_OUTPUT_BYTES if args.max_output is None else args.max_output
    raw, omitted = Session(host, args.session, args.session).exec_output(result, limit)
    if args.json:
        printing.print_json(document(result, raw, omitted))
        return 0
    print_output(host.home, raw, args.raw)
    if omitted:
        printing.note(f"hold: {omitted} bytes omitted; use --max-output, or hold logs --from {result['start']}")
    if result["exit_code"] is not None:
        words = f"{result['state'].replace('_', ' ')} with code {result['exit_code']}"
        printing.note(f"hold: {words} after {result['duration_ms'] / 1000:g} s")
    else:
        printing.note(f"hold: {printing.safe(explain(result, args.session))}")
    return 0
