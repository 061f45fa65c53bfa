"""Manage durable runs: begin one by hand or submit it to a worker, show its status, end it. Also the task runner.

hold work run [--project P] [--once] [--parallel N]             the runner: backends do ready tasks, it verifies them
hold work begin [--task ID] [--params JSON] [--item NAME]…      prints the run's id
hold work submit JOB [--task ID] [--params JSON] [--item NAME]…   the same, for hold worker
hold work ls [--task ID] [--job JOB] [--state STATE]
hold work status RUN                                            items done, in doubt, pending
hold work end RUN [--failed]
hold work retry RUN                                             retry a failed run from its last step
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...client.current_project import context
from ...model.errors import HoldfastError
from ...model.work.effects import RUN_STATES_SHOWN
from ..ui import arguments, printing
from . import work_run
from .step import parsed, settling

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ...client._sync.work import Work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("run", "begin", "submit", "ls", "status", "end", "retry"))
    parser.add_argument("run", metavar="RUN|JOB", nargs="?", help="a run's id, or a prefix of it; submit: the job")
    parser.add_argument("--task", metavar="ID", help="begin, submit, ls: the task it belongs to")
    parser.add_argument("--job", metavar="JOB", help="ls: only runs of this job")
    parser.add_argument("--state", choices=RUN_STATES_SHOWN, help="ls: only runs in this state")
    parser.add_argument("--params", metavar="JSON", help="begin, submit: its parameters")
    parser.add_argument(
        "--item", metavar="NAME", dest="items", action="append", help="begin, submit: an item to process (repeatable)"
    )
    parser.add_argument("--again", action="store_true", help="begin: a new attempt at a task that is done")
    parser.add_argument("--failed", action="store_true", help="end: it failed")
    parser.add_argument("--epoch", type=int, help="the lease's epoch, for a worker with a lease")
    work_run.add_arguments(parser)
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.verb == "run":
        return work_run.become(args)
    if args.verb in ("status", "end", "retry") and not args.run:
        raise HoldfastError("usage", f"hold work {args.verb} needs a RUN", "hold work ls lists them")
    if args.verb == "submit" and not args.run:
        raise HoldfastError("usage", "hold work submit needs a JOB", "the name of a function in holdfast.Jobs()")
    answer = _asked(Host().work, args)
    if args.json:
        printing.print_json(answer)
    elif args.verb in ("begin", "submit"):
        print(answer["run"])
    elif args.verb == "ls":
        rows = [
            (r["run"], r["task"] or "-", r["job"] or "-", r["state"], r["worker"] or "-", r["created_at"])
            for r in answer
        ]
        printing.table(("RUN", "TASK", "JOB", "STATE", "WORKER", "BEGUN"), rows)
    elif args.verb == "status":
        _show(answer)
    return 0


def _asked(work: Work, args: argparse.Namespace) -> Any:
    if args.verb in ("begin", "submit"):
        which = {"run": args.run} if args.verb == "begin" else {"job": args.run}
        wanted = {**which, "task": args.task, "items": args.items, "again": args.again}
        params = parsed(args.params, "--params")
        return work.call("begin_run", **wanted, params=params, why=args.why, **context())
    if args.verb == "ls":
        return work.runs(task=args.task, job=args.job, state=args.state)
    if args.verb == "status":
        return work.status(args.run)
    if args.verb == "retry":
        return work.retry(args.run, why=args.why)
    state = "failed" if args.failed else "done"
    return work.call("run_end", run=args.run, epoch=args.epoch, state=state, why=args.why)


def _show(status: dict[str, Any]) -> None:
    held = f"held by {status['worker']} until {status['lease_until']}" if status["leased"] else "not leased"
    rows: list[tuple[object, object]] = [("run", status["run"]), ("task", status["task"] or "-")]
    rows += [("job", status["job"] or "-"), ("state", status["state"]), ("lease", f"{held}, epoch {status['epoch']}")]
    rows += [("steps", ", ".join(f"{n} {state}" for state, n in status["steps"].items() if n) or "none yet")]
    for kind in ("done", "in_doubt", "failed", "pending") if status["items"] else ():
        rows.append((kind, f"{len(status['items'][kind])} of {status['items']['total']}"))
    rows += [("to settle", f"{s['key']} ({s['effect']}) by {s['settle_by']}") for s in status["in_doubt"]]
    rows += [("waits for", status["waits_for"])] if status["waits_for"] else []
    rows += [("crashes", f"{status['crashes']} workers died during it")] if status["crashes"] else []
    if status["state"] == "failed":
        rows.append(("failed with", _failure(status["outcome"])))
    rows += [("session", f"{s['session']} from {s['from_offset']}") for s in status["sessions"]]
    printing.table(("WHAT", "IS"), rows)
    if status["parked"] and status["parked"]["reason"] == "crashes":
        printing.note(printing.safe(status["parked"]["hint"]))
    for step in status["in_doubt"]:
        command = settling(status["run"], step["key"])
        printing.note(printing.safe(f"check the outcome of {step['key']}, then: {command}"))


def _failure(outcome: Any) -> str:
    """Why a run failed: the exception of its job, or the reason given at its end."""
    said = outcome.get("error") if isinstance(outcome, dict) else outcome
    return " ".join(str(said).split())[:500] if said else "no reason given"
