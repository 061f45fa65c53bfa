"""Manage tasks: their contracts, their attempts, and the outcome of each.

hold task add 'Log in by mail' --id 1.5 --goal '…' --verify 'pytest -q tests/login' --after 1.4
hold task add 'Log in by mail' --contract login.toml         see docs/tasks.md; JSON works too
hold task edit 1.5 --constraint 'no new dependency' --why 'asked for by the reviewers'    adds one; FILE replaces
hold task ls [--status ready] [--phase build]
hold task show 1.5                                           a blocked one: the blocked report
hold task start 1.5                                          prints the run's id
hold task done 1.5                                           runs its verification; refused (exit 1) if that fails
hold task fail 1.5 --why 'the mail server is gone'           it is retried, or blocked when retries are used up
hold task block 1.5 --question 'which mail server?'          it waits for a person; its run stays open
hold task unblock 1.5 --why 'use mail.example.org'           continue; the reason is the answer
hold task changes 1.5 [--attempt N] [--patch]                the files that an attempt created, changed and deleted
hold task pause|retry|cancel 1.5                             retry: a new attempt from the beginning
"""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError, invalid
from ...model.limits import RUN_LEASE_S
from ...model.work.task_states import FAILURE_TYPES, SHOWN
from ..ui import arguments, printing
from . import task_changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]

_CHANGES = ("unblock", "pause", "retry")
VERBS = ("add", "edit", "ls", "show", "start", "block", "done", "fail", "cancel", "changes", *_CHANGES)
_LISTS = (
    ("scope", "scope"),
    ("constraint", "constraints"),
    ("accept", "acceptance"),
    ("artifact", "artifacts"),
    ("verify", "verification"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("task", metavar="ID|TITLE", nargs="?", help="a task's id, or PROJECT/ID; add: its title")
    contract = parser.add_argument_group("add, edit")
    contract.add_argument("--id", metavar="ID", help="add: its id within the project (default: 1, 2, 3 …)")
    contract.add_argument("--title", metavar="TEXT", help="edit: a new title")
    contract.add_argument("--phase", metavar="P", help="its phase (default: the active one); ls: only this phase")
    contract.add_argument(
        "--contract", metavar="FILE", help="TOML or JSON (-: stdin). The options below are added to it"
    )
    contract.add_argument("--goal", metavar="TEXT", help="its goal (default: the title)")
    contract.add_argument(
        "--after", metavar="ID", action="append", help="start only when this task is done (repeatable)"
    )
    contract.add_argument("--no-after", action="store_true", help="edit: remove all --after, except those given")
    contract.add_argument(
        "--verify", metavar="CMD", action="append", help="a shell command that succeeds when it is done (repeatable)"
    )
    contract.add_argument("--constraint", metavar="TEXT", action="append", help="a rule for the work (repeatable)")
    contract.add_argument("--accept", metavar="TEXT", action="append", help="what is true when it is done (repeatable)")
    contract.add_argument(
        "--artifact", metavar="PATH", action="append", help="a file that exists when it is done (repeatable)"
    )
    contract.add_argument(
        "--scope", metavar="GLOB", action="append", help="paths it may change, from the root (default: **)"
    )
    contract.add_argument("--backend", metavar="NAME", help="the backend to use; start: the backend of this attempt")
    parser.add_argument("--status", choices=SHOWN, help="ls: only this status; ready: can be started now")
    parser.add_argument("--version", metavar="N", type=int, help="show: a version of its contract")
    parser.add_argument("--worker", metavar="NAME", help="start: with a lease for this worker")
    parser.add_argument(
        "--lease", metavar="DURATION", help="start: duration of the lease unless renewed (default: 30s)"
    )
    parser.add_argument("--take", action="store_true", help="start: also a task that another person is doing by hand")
    parser.add_argument("--epoch", type=int, help="done, fail, block: the lease's epoch, for a worker with a lease")
    parser.add_argument("--question", metavar="TEXT", help="block: the question for a person")
    parser.add_argument("--type", choices=FAILURE_TYPES, help="fail, block: the kind of failure")
    parser.add_argument("--detail", metavar="TEXT", help="fail, block: what failed")
    parser.add_argument("--focus", metavar="TEXT", help="fail, block: where to look next")
    task_changes.add_arguments(parser)
    arguments.project(parser)
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    tasks = Host().work.tasks
    if args.verb == "ls":
        return _ls(args, tasks.ls(status=args.status, phase=args.phase, project=args.project))
    if not args.task:
        what = "a TITLE" if args.verb == "add" else "the task's ID"
        raise HoldfastError("usage", f"hold task {args.verb} needs {what}", "hold task ls lists them")
    if args.verb == "show":
        return _show(args, tasks)
    if args.verb == "changes":
        return task_changes.run(args)
    which: Json = {"project": args.project, "why": args.why}
    if args.verb in ("add", "edit"):
        answer = _contracted(args, tasks, which)
    elif args.verb == "start":
        lease = RUN_LEASE_S if args.lease is None else arguments.seconds(args.lease)
        answer = tasks.start(
            args.task, worker=args.worker, backend=args.backend, take=args.take, lease=lease, lasting=False, **which
        )
    elif args.verb == "done":
        answer = _done(args, tasks, which)
    elif args.verb == "fail":
        answer = tasks.fail(args.task, epoch=args.epoch, classification=_classified(args), **which)
    elif args.verb == "block":
        answer = tasks.block(
            args.task, question=args.question, epoch=args.epoch, classification=_classified(args), **which
        )
    else:
        answer = getattr(tasks, args.verb)(args.task, **which)
    return _told(args, answer)


# -- contracts ---------------------------------------------------------------------------------------------------------


def _contracted(args: argparse.Namespace, tasks: Any, which: Json) -> Json:
    before = tasks.show(args.task, project=args.project) if args.verb == "edit" else {"contract": {}, "depends_on": []}
    contract = _contract(args, before["contract"])
    if args.verb == "add":
        title = args.task
        if args.contract:
            from ...model.work import task_contract

            task_contract.check(contract, title=title, whole=True)  # a file has its own goal
            contract.pop("title", None)
        made: Json = tasks.add(title, id=args.id, phase=args.phase, after=args.after or (), contract=contract, **which)
        return made
    after = None
    if args.after or args.no_after:
        after = [*([] if args.no_after else before["depends_on"]), *(args.after or ())]
    edited: Json = tasks.edit(args.task, contract, title=args.title, after=after, phase=args.phase, **which)
    return edited


def _contract(args: argparse.Namespace, before: Json) -> Json:
    """The file's fields and the options on top: lists are extended, a goal is replaced."""
    contract: Json = {}
    if args.contract:
        from ...model.work.task_contract import parse

        contract = parse(_text(args.contract), args.contract)
    for option, field in _LISTS:
        given = getattr(args, option)
        if given:
            there = contract.get(field, before.get(field, []))
            if (option, there) == ("scope", ["**"]):
                there = []  # without a name, the whole policy applies
            contract[field] = [*there, *given] if isinstance(there, list) else there
    for field in ("goal", "backend"):
        if getattr(args, field) is not None and args.verb in ("add", "edit"):
            contract.pop("intent" if field == "goal" else "", None)
            contract[field] = getattr(args, field)
    return contract


def _text(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as e:
        raise HoldfastError("not_found", f"cannot read {path}: {e.strerror}", "give a TOML or JSON file") from None
    except UnicodeDecodeError:
        raise invalid(f"{path} is not UTF-8 text", "give a TOML or JSON file") from None


def _classified(args: argparse.Namespace) -> Json | None:
    given = {"failure_type": args.type, "failure_detail": args.detail, "suggested_focus": args.focus}
    return {k: v for k, v in given.items() if v} or None


# -- acting ------------------------------------------------------------------------------------------------------------


def _done(args: argparse.Namespace, tasks: Any, which: Json) -> Json:
    """Run the verification and say where to watch it; Ctrl-C ends it."""
    sessions: list[str] = []

    def begun(session: str) -> None:
        sessions.append(session)
        if sys.stderr.isatty():
            printing.note(f"verifying; to watch: hold logs -f {session}")

    try:
        made: Json = tasks.done(args.task, epoch=args.epoch, begun=begun, **which)
    except KeyboardInterrupt:
        for session in sessions:
            try:
                Host().call("stop", session=session, grace_s=None, why="interrupted")
            except HoldfastError:
                pass  # it was never begun
        raise
    return made


def _told(args: argparse.Namespace, answer: Json) -> int:
    if args.json:
        printing.print_json(answer)
    elif args.verb == "add":
        print(answer["task_id"])
    elif args.verb == "start":
        print(answer["run_id"])
    elif sys.stdout.isatty():
        print(printing.safe(_line(args.verb, answer)))
    else:
        print(f"{answer['task_id']}\t{answer['status']}")
    if not args.json:
        for left in answer.get("left", ()):
            printing.note(f"hold: session {left['session']} keeps running: {printing.safe(left['why'])}")
    return 0


def _line(verb: str, answer: Json) -> str:
    line = f"{answer['task_id']} is {answer['status']}"
    if verb == "fail" and answer["status"] == "blocked":
        line += f": {answer['why']}; hold task show {answer['task_id']}"
    elif verb == "fail":
        line += ", and may be tried again"
    elif verb == "cancel" and answer["stopped"]:
        line += f"; {len(answer['stopped'])} sessions ended"
    elif verb == "pause" and answer["sessions"]:
        line += f"; its sessions keep running: {', '.join(s['session'] for s in answer['sessions'])}"
    return line


# -- looking -----------------------------------------------------------------------------------------------------------


def _ls(args: argparse.Namespace, found: list[Json]) -> int:
    if args.json:
        printing.print_json(found)
        return 0
    rows = [
        (t["task_id"], t["status"], t["phase"], t["attempt_count"], t["worker"] or "-", t["backend"] or "-", t["title"])
        for t in found
    ]
    printing.table(("TASK", "STATUS", "PHASE", "TRIES", "WORKER", "BACKEND", "TITLE"), rows)
    for t in found:
        if t["waits_for_cancelled"]:
            names = ", ".join(f"{t['project']}/{id}" for id in t["waits_for_cancelled"])
            printing.note(f"hold: {t['project']}/{t['task_id']} waits for cancelled {names} and can never begin")
    return 0


def _show(args: argparse.Namespace, tasks: Any) -> int:
    if args.version is not None:
        found: Json = tasks.call("task_versions", args.project, task=args.task, version=args.version)
        printing.print_json(found if args.json else found["contract"])
        return 0
    found = tasks.show(args.task, project=args.project)
    if args.json:
        printing.print_json(found)
    else:
        from .task_text import lines

        for line in lines(found):
            print(line)
    return 0
