"""`hold`: finds the command, loads only its module, runs it, and turns every failure into one line and an exit code."""

from __future__ import annotations

import os
import sys

from ..model.errors import HoldfastError, from_disk_error
from ..model.home import Home, default_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

# name -> (module, what it does). Order is the order of `hold help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("sessions.run", "start a session and attach to it (-d: in the background)"),
    "ls": ("sessions.ls", "list sessions"),
    "top": ("sessions.top", "watch all sessions live"),
    "status": ("sessions.status", "show the current state of a session or of this host"),
    "attach": ("terminal.attach", "attach this terminal to a session (detach: Ctrl-\\ then d)"),
    "logs": ("output.logs", "print a session's output"),
    "screen": ("terminal.screen", "print a session's rendered screen"),
    "send": ("terminal.send", "type into a session"),
    "exec": ("terminal.exec", "run a command in a session's shell and return its exit code"),
    "exec-result": ("terminal.exec_result", "show the state or result of a command started with exec"),
    "wait": ("sessions.wait", "wait for a session's exit, prompt, port, text or silence"),
    "ps": ("sessions.ps", "list the processes of a session"),
    "ports": ("sessions.ports", "list listening ports, with session and pid"),
    "files": ("sessions.files", "list open files of a session, with offsets and locks"),
    "kill": ("sessions.kill", "send a signal to a session"),
    "stop": ("sessions.stop", "end a session's whole process tree"),
    "restart": ("sessions.restart", "start a session again as its next generation"),
    "rm": ("sessions.rm", "remove ended sessions and their output"),
    "rename": ("sessions.rename", "rename a session"),
    "who": ("operators.who", "show who holds a session's controls and who is attached"),
    "take": ("operators.take", "take a session's controls"),
    "release": ("operators.release", "release a session's controls; the next operator to type takes them"),
    "ask": ("operators.ask", "ask a person a question, and wait for the answer"),
    "inbox": ("operators.inbox", "list what waits for a person"),
    "answer": ("operators.answer", "answer an inbox item"),
    "hand": ("operators.hand", "hand a session's controls to another operator"),
    "timeline": ("operators.timeline", "show who did what, in order"),
    "journal": ("operators.journal", "verify the journal of who did what"),
    "operator": ("operators.operator", "manage who may act on this host, and their grants"),
    "replay": ("output.replay", "replay a session's output"),
    "export": ("output.export", "export a session as an asciinema recording"),
    "project": ("work.project", "manage a project: its folder, phases and tasks"),
    "task": ("work.task", "manage tasks and their contracts: add, start, verify, block, cancel"),
    "policy": ("work.policy", "show or set a project's policy: retries, backends, verification"),
    "backend": ("work.backend", "manage backends: the command lines that do tasks"),
    "work": ("work.work", "manage durable runs: begin, submit, show, end; run the task runner"),
    "step": ("work.step", "record a step's intent and outcome; settle a step in doubt"),
    "note": ("work.note", "add a decision, a finding or a question to a run's log"),
    "history": ("work.history", "show a run's log: what was thought, done and observed"),
    "checkpoint": ("work.checkpoint", "save a run's state; show, compare, restore, fork"),
    "memory": ("work.memory", "read and write a run's short-term memory"),
    "artifact": ("work.artifact", "store and list files that runs produced"),
    "claim": ("work.claim", "record facts about this machine and check whether they still hold"),
    "resume": ("work.resume", "print everything needed to continue a task, a run or a project"),
    "report": ("work.report", "report what was done in a time span, by whom, with what result"),
    "worker": ("work.worker", "run Python jobs, and take over from dead workers"),
    "store": ("admin.store", "set the database of this home's work, or migrate to it"),
    "mcp": ("agents.mcp", "run the MCP server for agents, on stdin and stdout"),
    "connect": ("agents.connect", "connect an agent program to this host: claude, codex, cursor, vscode"),
    "hook": ("agents.hook", "run as Claude Code's hook: approvals and questions become inbox items"),
    "up": ("admin.up", "start the host and the sessions of holdfast.toml"),
    "down": ("admin.down", "stop the host; sessions keep running"),
    "web": ("admin.web", "log browsers in to the console, or log them out"),
    "doctor": ("admin.doctor", "check this machine and this home"),
    "service": ("admin.service", "run the host under systemd"),
    "prune": ("admin.prune", "remove ended sessions or ended work"),
    "usage": ("admin.usage", "show disk usage of sessions, work and journal"),
    "backup": ("admin.backup", "save the home to one file"),
    "restore": ("admin.restore", "restore a home from a backup"),
    "completion": ("admin.completion", "print the completion script for bash, zsh or fish"),
    "demo": ("admin.demo", "run the guided tour, each step done and checked"),
}


# Commands that do not replace an outdated daemon: they inspect, stop, replace the home, or must not delay an agent.
LEAVES_DAEMON = ("doctor", "down", "service", "restore", "completion", "connect", "hook", "demo")
TAKES_COMMAND = ("run", "exec", "backend")  # what follows `--` is the user's command, unchanged


def parser_for(name: str) -> argparse.ArgumentParser:
    """The parser of one command, with its module's arguments."""
    import importlib

    from .ui.arguments import Parser

    module_name, summary = COMMANDS[name]
    module = importlib.import_module("." + module_name, __package__)
    parser = Parser(prog=f"hold {name}", description=module.__doc__ or summary)
    module.add_arguments(parser)
    parser.set_defaults(_run=module.run)
    return parser


def _split(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """The words of `hold` itself, and what follows `--` (the user's command, never parsed)."""
    if "--" in words:
        at = list(words).index("--")
        return list(words[:at]), list(words[at + 1 :])
    return list(words), None


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: hold COMMAND …", "", "commands:"]
    lines += [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    lines += ["", "More about a command: hold COMMAND --help. To start: hold run"]
    return "\n".join(lines)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("help", "-h", "--help"):
        if len(words) > 1 and words[1] in COMMANDS:
            parser_for(words[1]).print_help()
        else:
            print(usage())
        return 0
    if words[0] in ("-V", "--version", "version"):
        from ..version import VERSION

        print(f"holdfast {VERSION}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        import difflib

        close = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean hold {close[0]}?" if close else "hold help lists the commands"
        raise HoldfastError("usage", f"no such command: {name[:60]!r}", hint)
    ours, command = _split(words[1:]) if name in TAKES_COMMAND else (words[1:], None)
    # Options may come between other words; what looks like an option and is not one needs `--` before it.
    parser = parser_for(name)
    mixed = any(not a.option_strings and a.nargs for a in parser._actions)  # else the plain way, 4 ms quicker
    arguments = parser.parse_intermixed_args(ours) if mixed else parser.parse_args(ours)
    arguments.command_words = command
    if name not in LEAVES_DAEMON:
        _renew(any_installation=name == "up")
    return int(arguments._run(arguments) or 0)


def _home() -> Home:
    return Home(default_home(dict(os.environ), os.path.expanduser("~")))


def _renew(*, any_installation: bool) -> None:
    """Replace a daemon that an upgrade left outdated."""
    from ..client.admin.replace_host import renew

    told = renew(_home(), any_installation=any_installation)
    if told:
        print(f"hold: {told}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `hold` and `holdfast`."""
    words = list(sys.argv[1:] if argv is None else argv)
    before = words[: words.index("--")] if "--" in words else words
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except HoldfastError as e:
        return _told(e, "--json" in before)
    except KeyboardInterrupt:
        return 130
    except ConnectionError as e:
        if isinstance(e, BrokenPipeError) and _reader_left():
            # hold logs | head: not an error, and Python must not complain at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 0
        broken = HoldfastError("host_gone", f"a connection broke: {e}", "check hold status, then retry")
        return _told(broken, "--json" in before)
    except (KeyError, IndexError, TypeError, AttributeError) as e:
        from ..client.admin.replace_host import unreadable

        unread = unreadable(_home(), e)
        if unread is None:
            raise  # ours
        return _told(unread, "--json" in before)
    except OSError as e:  # of what this process writes itself: a key, a backup, an output into a file
        disk = from_disk_error(e)
        if disk is None:
            raise
        return _told(disk, "--json" in before)


def _reader_left() -> bool:
    """Whether stdout has no reader any more: only then the broken pipe is not an error."""
    import select

    stdout = select.poll()
    stdout.register(1, 0)
    return bool(stdout.poll(0))  # POLLERR or POLLHUP: nothing else was asked for


def _told(error: HoldfastError, as_json: bool) -> int:
    if as_json:
        import json

        print(json.dumps({"error": error.as_dict()}))
    else:
        print(f"hold: {error.line()}", file=sys.stderr)
    return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
