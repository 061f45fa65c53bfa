"""Connect an agent program to this host: write its configuration, and test it with a live call.

  hold connect claude                  Claude Code: the MCP server, and the hook for approvals, questions and the brief
  hold connect codex|cursor|vscode     the MCP server
  hold connect cursor --scope project  in this project's files instead of yours
  hold connect claude --print          show the change without writing it
  hold connect claude --undo           remove exactly what was added

The change is shown and needs a confirmation (--yes: no question). Then the files are read back as that program reads
them, and the server is started with the environment that program gives it, and called. A second call changes nothing.
"""

from __future__ import annotations

import os
import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ...model.home import default_home
from ...model.redact import redact
from ..ui import arguments, printing
from .connecting import agent_programs, change_plan, config_files, live_proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from .connecting.change_plan import Change

    Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="PROGRAM", choices=agent_programs.NAMES, help=", ".join(agent_programs.NAMES))
    # The command that is written is a path of this machine, so it does not belong into a project that others share.
    parser.add_argument(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="write your files, or the project's (default: user)",
    )
    parser.add_argument("--undo", action="store_true", help="remove what was added")
    parser.add_argument("--print", dest="only_print", action="store_true", help="show the change without writing it")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    live_proof.require_mcp()
    environ = dict(os.environ)
    home = Host().home.path
    places = agent_programs.Places(environ, os.path.expanduser("~"), folder_of_project())
    wanted = agent_programs.files(args.client, args.scope, _hold(), _env(args.client, environ, home), places)
    records = config_files.Records(home)
    changes = [_planned(f, records, args.undo) for f in wanted]
    told: Json = {
        "client": args.client,
        "scope": args.scope,
        "undo": args.undo,
        "written": False,
        "proof": None,
        "files": [{"path": c.file.path, "change": c.what, "diff": _diff(c)} for c in changes],
    }
    due = [c for c in changes if c.what != "none"]
    _show(args, told)
    if args.only_print:
        return _end(args, told)
    if due:
        if not args.yes and not _agreed(len(due)):
            printing.note("nothing was changed")
            return 1
        for change in due:
            _write(change, records, args.undo)
        told["written"] = True
    if not args.undo:
        told["proof"] = live_proof.prove(args.client, wanted, places.project, environ)
        _tell_proof(args, told["proof"])
    return _end(args, told)


def _planned(file: agent_programs.File, records: config_files.Records, undo: bool) -> Change:
    text, record = config_files.read(file.path), records.of(file.path)
    return change_plan.disconnect(file, text, record) if undo else change_plan.connect(file, text, record)


def _write(change: Change, records: config_files.Records, undo: bool) -> None:
    """Write the record first, so that --undo works even if this is interrupted."""
    path, old = change.file.path, records.of(change.file.path) or {}
    folders = old.get("folders", [])
    if undo:
        config_files.replace(path, change.before, change.after, change.file.private)
        config_files.remove_folders(folders if change.after is None else [])
        records.keep(path, None)
        return
    made = change.before is None or bool(old.get("made"))
    record = {**change.record(made), "folders": [*config_files.missing_folders(path), *folders]}
    records.keep(path, record)
    config_files.replace(path, change.before, change.after, change.file.private)


def _hold() -> list[str]:
    """The absolute command of this installation, which works in every folder and without an active environment."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "hold")
    module = [os.path.abspath(sys.executable), "-P", "-m", "holdfast.cli.main"]  # -P: no module of the current folder
    words = [beside] if os.access(beside, os.X_OK) else module
    if any("${" in word for word in words):
        raise HoldfastError(
            "failed", f"agent programs would expand the '${{' in {words[0]}", "install Holdfast in another folder"
        )
    return words


def _env(client: str, environ: Mapping[str, str], home: str) -> dict[str, str]:
    """The environment that the server needs to find this home; empty for the default home."""
    there = agent_programs.passed_on(client, environ)
    found = default_home(there, os.path.expanduser("~"))
    return {} if found == home and "XDG_DATA_HOME" not in there else {"HOLDFAST_HOME": home}


def folder_of_project() -> str:
    """The folder of the project's files: the repository's root, or the current folder."""
    here = folder = os.getcwd()
    while folder != os.path.dirname(folder):
        if os.path.exists(os.path.join(folder, ".git")) or os.path.exists(os.path.join(folder, "holdfast.toml")):
            return folder
        folder = os.path.dirname(folder)
    return here


def _diff(change: Change) -> str:
    """The change as a diff, with secrets in the context lines removed."""
    import difflib

    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    old, new = (change.file.path if t is not None else "/dev/null" for t in (change.before, change.after))
    lines = difflib.unified_diff(before, after, old, new, lineterm="")
    return "\n".join(redact(line) if line.startswith(" ") else line for line in lines)


def _show(args: argparse.Namespace, told: Json) -> None:
    if args.json:
        return
    for file in told["files"]:
        if file["change"] == "none":
            print(f"{file['path']}: nothing to do")
        for line in file["diff"].splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            print(printing.paint("".join(c if c.isprintable() or c == "\t" else "�" for c in line), style))
    printing.flush()


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise HoldfastError(
            "usage",
            f"{count} file{'s' if count > 1 else ''} would change",
            "no terminal to confirm at: pass --yes, or look with --print",
        )
    sys.stderr.write("Write this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell_proof(args: argparse.Namespace, seen: Json) -> None:
    if args.json:
        return
    server = seen["server"]
    print(f"test: started {' '.join(server['command'])} as {args.client} does;")
    print(f"      it has {len(server['tools'])} tools; its status: {_words(server['status'])}")
    if "hook" in seen:
        print(f"test: the hook answers; it is called for {', '.join(seen['hook']['events'])}")


def _words(status: object) -> str:
    import json

    text = json.dumps(status, ensure_ascii=True)
    return text if len(text) <= 200 else text[:199] + "…"


def _end(args: argparse.Namespace, told: Json) -> int:
    if args.json:
        printing.print_json(told)
    elif told["written"]:
        again = "restart" if args.client != "claude" else "start a new conversation in"
        printing.note(f"done; {again} {args.client} to use it" if not args.undo else "done")
    return 0
