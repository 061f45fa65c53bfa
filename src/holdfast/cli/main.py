"""`hold`: find the command, load only its module, run it, and turn every failure into one line and an exit code."""

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
    "run": ("sessions.run", "start a session and attach to it (-d: leave it in the background)"),
    "ls": ("sessions.ls", "list the sessions"),
    "top": ("sessions.top", "watch all sessions live"),
    "status": ("sessions.status", "what is happening in a session, or on this host, right now"),
    "attach": ("terminal.attach", "show a session's screen and go on live (detach: Ctrl-\\ then d)"),
    "logs": ("output.logs", "print a session's output"),
    "screen": ("terminal.screen", "print a session's rendered screen"),
    "send": ("terminal.send", "type into a session"),
    "exec": ("terminal.exec", "run a command in a session's own shell and return its exit code"),
    "exec-result": ("terminal.exec_result", "how a command of a session stands or ended"),
    "wait": ("sessions.wait", "wait for a session's exit, a prompt, a port, a text, silence"),
    "ps": ("sessions.ps", "the processes of a session"),
    "ports": ("sessions.ports", "listening ports, with session and pid"),
    "files": ("sessions.files", "open files of a session, with offsets and locks"),
    "kill": ("sessions.kill", "send a signal"),
    "stop": ("sessions.stop", "end a session's whole process tree"),
    "restart": ("sessions.restart", "start a session again as its next generation"),
    "rm": ("sessions.rm", "forget an ended session"),
    "rename": ("sessions.rename", "give a session another name"),
    "who": ("operators.who", "who holds the controls, and who is attached"),
    "take": ("operators.take", "take a session's controls"),
    "release": ("operators.release", "give a session's controls back"),
    "ask": ("operators.ask", "ask a person something, and wait for the answer"),
    "inbox": ("operators.inbox", "what waits for a person"),
    "answer": ("operators.answer", "answer an inbox item"),
    "hand": ("operators.hand", "hand a session's controls to another operator"),
    "timeline": ("operators.timeline", "who did what, in order"),
    "journal": ("operators.journal", "prove the record of who did what"),
    "operator": ("operators.operator", "who may act here, and what each may do"),
    "replay": ("output.replay", "play a session's output again"),
    "export": ("output.export", "write a session as an asciinema recording"),
    "project": ("work.project", "a folder, its phases and its tasks: where it stands"),
    "task": ("work.task", "what is to be done, under which contract; start, verify, block, cancel"),
    "policy": ("work.policy", "how a project's tasks are tried: retries, backends, verification"),
    "backend": ("work.backend", "the command lines that do tasks"),
    "work": ("work.work", "durable runs: begin or submit one, see where it stands, end it"),
    "step": ("work.step", "a step's intent before its effect, its outcome after; settle one in doubt"),
    "note": ("work.note", "leave a decision, a finding or a question in a run's log"),
    "history": ("work.history", "what was thought, done and seen in a run"),
    "checkpoint": ("work.checkpoint", "save where a run stands; show, compare, restore, fork"),
    "memory": ("work.memory", "a run's short-term memory: the window's messages, values that expire"),
    "artifact": ("work.artifact", "files that a run produced, kept by their content"),
    "claim": ("work.claim", "what is believed to be true of this machine, and whether it still is"),
    "resume": ("work.resume", "all that somebody needs to go on with a task, a run, a project"),
    "report": ("work.report", "what was done in a time span, by whom, with what result"),
    "worker": ("work.worker", "run Python jobs; take over from a worker that died"),
    "store": ("admin.store", "which database the work is kept in"),
    "mcp": ("agents.mcp", "the MCP server for agents, on stdin and stdout"),
    "connect": ("agents.connect", "connect an agent's program to this host: claude, codex, cursor, vscode"),
    "hook": ("agents.hook", "an agent's own hook: its approvals and questions become inbox items"),
    "up": ("admin.up", "start the host, and the sessions of holdfast.toml"),
    "down": ("admin.down", "stop the host; sessions go on"),
    "web": ("admin.web", "the console in a browser: a link that logs one in, log all out"),
    "doctor": ("admin.doctor", "check this machine and this home"),
    "service": ("admin.service", "run the host under systemd"),
    "prune": ("admin.prune", "remove ended sessions, or ended work"),
    "usage": ("admin.usage", "what takes how much room on disk"),
    "backup": ("admin.backup", "save the home to a file"),
    "restore": ("admin.restore", "bring a home back from a backup"),
    "completion": ("admin.completion", "completion for bash, zsh or fish"),
    "demo": ("admin.demo", "the acceptance story, each step really done"),
}


# What leaves the daemon that is there as it is: it looks, ends, replaces the home, or must not keep an agent waiting.
LEAVES_DAEMON = ("doctor", "down", "service", "restore", "completion", "connect", "hook", "demo")
TAKES_COMMAND = ("run", "exec", "backend")  # what stands after `--` is the user's, to the letter


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
    """Our own words, and what stands after `--` (the user's command, never parsed)."""
    if "--" in words:
        at = list(words).index("--")
        return list(words[:at]), list(words[at + 1 :])
    return list(words), None


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: hold COMMAND …", "", "commands:"]
    lines += [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    lines += ["", "hold COMMAND --help tells more. Without sessions yet: hold run"]
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
        raise HoldfastError("usage", f"there is no command {name[:60]!r}", hint)
    ours, command = _split(words[1:]) if name in TAKES_COMMAND else (words[1:], None)
    # Options may stand between other words; what looks like an option and is not needs `--` before it.
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
    """Have the daemon replaced that an upgrade left behind."""
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
        broken = HoldfastError("host_gone", f"a connection broke: {e}", "hold status says what is so; then try again")
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
    """Whether nothing reads our stdout any more: only then is a broken pipe the reader's choice."""
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
