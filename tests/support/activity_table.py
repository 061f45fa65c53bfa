"""Programs whose activity is known beforehand, and the engine that compares it with what Holdfast judges."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.host.observe.ports import ports
from holdfast.model.sessions.activity import Activity, Look, judge

from .ptyproc import PtyProgram

HELD_SAMPLES = 20  # taken after the state was reached: half a second in which it must not flicker
NOBODY = 65534
PY = sys.executable
MENU_PROGRAM = Path(__file__).with_name("menu.py")

INPUT = "waiting_for_input"
SECRET = "waiting_for_secret"
PROMPT = "at_prompt"
SCREEN = "full_screen"
MENU = "menu"
RUNNING = "running"


class Program(NamedTuple):
    """One row: what to run, how to bring it to its state, and what that state is."""

    name: str
    argv: Sequence[str]
    expected: Sequence[str]
    needs: Sequence[str] = ()
    steps: Sequence[tuple[bytes, bytes]] = ()  # (wait for this output, then type this)
    ready: bytes = b""  # output that says the state is reached
    also: Sequence[str] = ()  # what is true of it at moments: a loop that wakes up is running then
    line_read: bool = False  # a canonical read(): it has to be found, and certainly
    uid: int | None = None
    files: Sequence[tuple[str, str]] = ()
    env: Sequence[tuple[str, str]] = ()

    def missing(self) -> list[str]:
        missing = [need for need in self.needs if shutil.which(need) is None]
        if self.uid is not None and os.geteuid() != 0:
            missing.append("root, to become another user")
        return missing


class Verdict(NamedTuple):
    """What was judged of one program, over all held samples."""

    program: Program
    kinds: Counter[str]
    last: Activity
    false_certain: Activity | None

    @property
    def correct(self) -> float:
        """The share of samples that were right."""
        true = {*self.program.expected, *self.program.also}
        return sum(self.kinds[kind] for kind in true) / self.kinds.total()

    @property
    def got(self) -> str:
        return self.kinds.most_common(1)[0][0]


def judged(sample: dict[str, Any], leader: int) -> Activity:
    return judge(
        sample["facts"],
        look=Look(sample["alternate"], sample["addressed"], sample["hidden"], sample["pastes"]),
        last_output_age=sample["age"],
        cursor_line=sample["line"],
        leader=leader,
        exited=sample["exited"],
        listening=frozenset(port["pid"] for port in ports(sample["members"])),
    )


def observe(program: Program, folder: Path) -> Verdict:
    """Run it, bring it to its state, and judge it again and again."""
    if program.uid is not None:
        folder = Path("/")  # the folders of a test are closed to other users
    for name, text in program.files:
        (folder / name).write_text(text)
    with PtyProgram(program.argv, cwd=folder, env=dict(program.env), uid=program.uid) as running:
        for awaited, typed in program.steps:
            running.until_output(awaited)
            running.send(typed)
        running.until_output(program.ready)
        last = running.until(lambda sample: judged(sample, running.leader).kind in program.expected)
        seen = [judged(last, running.leader)]
        for _ in range(HELD_SAMPLES):
            seen.append(judged(running.sample(), running.leader))
            running.pause()
    true = {*program.expected, *program.also}
    wrong = [a for a in seen if a.confidence == "certain" and a.kind not in true]
    return Verdict(program, Counter(a.kind for a in seen), seen[-1], wrong[0] if wrong else None)


def table(verdicts: Sequence[Verdict]) -> str:
    """The confusion table, one line a program."""
    lines = []
    for v in verdicts:
        mark = " " if v.correct == 1.0 else "~" if v.got in v.program.expected else "X"
        expected = "|".join(v.program.expected)
        lines.append(f"{mark} {v.program.name:34} {expected:36} {v.got:19} {v.last.confidence:8} {v.last.evidence}")
    return "\n".join(lines)


def _py(source: str) -> list[str]:
    return [PY, "-c", source]


def _sh(source: str) -> list[str]:
    return ["bash", "-c", source]


def _line(name: str, argv: Sequence[str], kind: str, *needs: str, **more: Any) -> Program:
    """A program that reads a line: it has to be found, and with certainty."""
    return Program(name, argv, [kind], needs, line_read=True, **more)


def _typed(name: str, line: str, kind: str, ready: bytes, *needs: str) -> Program:
    """An interactive bash with a line typed into it."""
    return Program(name, _BASH, [kind], needs, steps=[(b"bash", line.encode() + b"\r")], ready=ready)


_BASH = ["bash", "--norc", "--noprofile"]
_GIT_ENV = tuple(
    {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }.items()
)
_GIT_CHANGED = "git init -q && echo one > f && git add f && git commit -qm first && echo two >> f && "
_LONG = (("long.txt", "".join(f"line {n}\n" for n in range(500))),)
_ASK = f"{PY} -c \"input('x: ')\""
_ASK_TTY = f"{PY} -c \"open('/dev/tty').readline()\""
_ASK_IN_THREAD = "import threading, time; threading.Thread(target=input).start(); time.sleep(100)"
_STARS = (
    "import tty, sys; tty.setcbreak(0); print('Password: ', end='', flush=True)\n"
    "while (c := sys.stdin.read(1)) != chr(10): print('*', end='', flush=True)"
)
_NODE_ASK = "require('readline').createInterface(process.stdin, process.stdout).question('name? ', () => {})"
_SCRIPT = ["script", "-qc", "bash --norc --noprofile", "/dev/null"]
_QUIET_SELECT = "import select\nwhile not select.select([0], [], [], 0.3)[0]: pass"
_QUIET_ASYNCIO = (
    "import asyncio\nasync def main():\n asyncio.get_running_loop().add_reader(0, input)\n"
    " await asyncio.Event().wait()\nasyncio.run(main())"
)

SHELLS = [
    Program("bash prompt", _BASH, [PROMPT]),
    Program("bash without line editing", [*_BASH, "--noediting"], [PROMPT]),
    _typed("bash continuation prompt", "for i in 1 2", PROMPT, b"> "),
    _typed("bash prompt, background ticker", "while sleep 0.1; do echo ti''ck; done &", PROMPT, b"tick"),
    Program("zsh prompt", ["zsh", "-f"], [PROMPT], ["zsh"]),
    Program("fish prompt", ["fish", "--no-config"], [PROMPT], ["fish"]),
    Program("dash prompt", ["dash"], [PROMPT], ["dash"]),
    _typed("bash inside bash", "PS1=in''ner. bash --norc", PROMPT, b"inner."),
    _typed("zsh inside bash", "PS1=in''ner. zsh -f", PROMPT, b"inner.", "zsh"),
    _typed("dash inside bash", "PS1=in''ner. dash", PROMPT, b"inner.", "dash"),
    _typed("bash runs sleep", "echo g''o; sleep 100", RUNNING, b"go"),
    _typed("bash asks at its prompt", "read -p n''ame: x", INPUT, b"name:")._replace(line_read=True),
]

QUESTIONS = [
    _line("bash read", _sh("read x"), INPUT),
    _line("bash read -s", _sh("read -s x"), SECRET),
    Program("bash read -n 1", _sh("read -n 1 x"), [INPUT]),
    Program("bash read -s -n 1", _sh("read -s -n 1 x"), [INPUT, SECRET]),
    Program("bash read -t 60", _sh("read -t 60 -p 'name: ' x"), [INPUT]),
    _line("bash select", _sh("select x in a b; do :; done"), INPUT),
    _line("dash read", ["dash", "-c", "read x"], INPUT, "dash"),
    _line("zsh read", ["zsh", "-fc", "read x"], INPUT, "zsh"),
    Program("zsh read -k", ["zsh", "-fc", "read -k x"], [INPUT], ["zsh"]),
    _line("input()", _py("input('name: ')"), INPUT),
    _line("input() after a clear", _sh(f"clear; {_ASK}"), INPUT, "clear"),
    _line("input() before a pipe", _sh(f"{_ASK} | tail"), INPUT),
    _line("input() beside a silent child", _sh(f"sleep 100 & {_ASK}"), INPUT),
    _line("a line of /dev/tty", _sh(f"echo | {_ASK_TTY}"), INPUT),
    Program("input() in a thread of a sleeper", _py(_ASK_IN_THREAD), [INPUT]),
    _line("getpass", _py("import getpass; getpass.getpass()"), SECRET),
    Program("stars for a password", _py(_STARS), [INPUT, SECRET]),  # the kernel cannot tell these two
    Program("python prompt", [PY, "-q"], [INPUT]),
    Program("pdb", [PY, "-m", "pdb", "x.py"], [INPUT], files=[("x.py", "x = 1\n")]),
    _line("cat", ["cat"], INPUT),
    _line("cat before a pipe", _sh("cat | tail"), INPUT),
    Program("cat of another session", _sh('setsid cat < "$(tty)" & sleep 100'), [INPUT], ["setsid"]),
    _line("ssh-keygen", ["ssh-keygen", "-t", "ed25519", "-f", "key"], SECRET, "ssh-keygen"),
    _line("openssl passwd", ["openssl", "passwd"], SECRET, "openssl"),
    Program("su, as another user", ["su", "root"], [SECRET], ["su"], uid=NOBODY, ready=b"assword"),
    Program("sudo, as another user", ["sudo", "-k", "id"], [SECRET], ["sudo"], uid=NOBODY, ready=b"assword"),
    _line("git add -p", _sh(_GIT_CHANGED + "git add -p"), INPUT, "git", "perl", env=_GIT_ENV),
    Program("node question", ["node", "-e", _NODE_ASK], [INPUT], ["node"]),
    Program("node prompt", ["node"], [INPUT], ["node"]),
    Program("bc", ["bc", "-q"], [INPUT], ["bc"]),
    _line("ed", ["ed"], INPUT, "ed"),
    Program("sqlite3", ["sqlite3", "x.db"], [INPUT], ["sqlite3"]),
    Program("gdb", ["gdb", "-q", "-nx"], [INPUT], ["gdb"]),
    Program("script around bash", _SCRIPT, [INPUT, PROMPT], ["script"], ready=b"bash-"),
    Program("quiet select() with a timeout", _py(_QUIET_SELECT), [INPUT], also=[RUNNING]),
    Program("quiet asyncio stdin reader", _py(_QUIET_ASYNCIO), [INPUT]),
]

_MAN_PAGE = ".TH PAGE 1\n.SH NAME\npage\n" + ".PP\nA line of text.\n" * 80
_WHIPTAIL = ["whiptail", "--menu", "Pick", "12", "30", "2", "a", "A", "b", "B"]
_LESS_ENV = (*_GIT_ENV, ("LESS", "RX"), ("GIT_PAGER", "less"))
_CURSES = "import curses; curses.wrapper(lambda screen: screen.getch())"

SCREENS = [
    Program("less", ["less", "long.txt"], [SCREEN], ["less"], files=_LONG),
    Program("less -X behind a pipe", _sh("cat long.txt | less -X"), [SCREEN], ["less"], files=_LONG),
    Program("more", ["more", "long.txt"], [SCREEN], ["more"], files=_LONG),
    Program("man", ["man", "./page.1"], [SCREEN], ["man", "nroff"], files=[("page.1", _MAN_PAGE)]),
    Program("git log", _sh(_GIT_CHANGED + "git log -p"), [SCREEN], ["git", "less"], env=_LESS_ENV),
    Program("vim", ["vim", "-u", "NONE", "f"], [SCREEN], ["vim"]),
    Program("nano", ["nano", "f"], [SCREEN], ["nano"]),
    Program("top", ["top", "-d", "1"], [SCREEN], ["top"]),
    Program("htop", ["htop"], [SCREEN], ["htop"]),
    Program("watch", ["watch", "-n", "1", "date"], [SCREEN], ["watch"]),
    Program("dialog", ["dialog", "--yesno", "Go on?", "8", "30"], [SCREEN], ["dialog"]),
    Program("dialog passwordbox", ["dialog", "--passwordbox", "Secret", "8", "30"], [SCREEN], ["dialog"]),
    Program("whiptail", _WHIPTAIL, [SCREEN], ["whiptail"]),
    Program("curses", _py(_CURSES), [SCREEN]),
    Program("tmux", ["tmux", "-S", "sock", "-f", "/dev/null", "new", "dash"], [SCREEN], ["tmux"]),
]

MENUS = [
    Program("menu by row and column", [PY, str(MENU_PROGRAM)], [MENU], ready=b"2. No"),
    Program("menu drawn in place", [PY, str(MENU_PROGRAM), "--relative"], [MENU], ready=b"2. No"),
    Program("menu of an event loop", [PY, str(MENU_PROGRAM), "--relative", "--loop"], [MENU], ready=b"2. No"),
]

_PROGRESS = (
    "import select, sys\nn = 0\nwhile not select.select([0], [], [], 0.1)[0]:\n"
    " n += 1; print(f'\\r{n} done', end='', flush=True)"
)
_SLOW_PROGRESS = _PROGRESS.replace("0.1", "1.5")
_TICKING = (
    "import asyncio\nasync def main():\n asyncio.get_running_loop().add_reader(0, input)\n"
    " while True: print('tick', flush=True); await asyncio.sleep(0.3)\nasyncio.run(main())"
)
_SERVING = (
    "import asyncio\nasync def main():\n asyncio.get_running_loop().add_reader(0, input)\n"
    " server = await asyncio.start_server(lambda r, w: None, '127.0.0.1', 0); print('up', flush=True)\n"
    " await server.serve_forever()\nasyncio.run(main())"
)
_HUNG = (
    "import socket as s\na = s.create_server(('127.0.0.1', 0)); c = s.create_connection(a.getsockname())\n"
    "print('Password: ', end='', flush=True); c.recv(1)"
)
_ACCEPT = "import socket; s = socket.create_server(('127.0.0.1', 0)); print('> ', flush=True); s.accept()"
_NODE_SPIN = (
    "require('readline').createInterface(process.stdin, process.stdout);"
    "setInterval(() => process.stdout.write('.'), 100)"
)
_LOCKED = "exec 9>lock; flock 9; (exec 8>lock; printf ok; flock 8)"
_SERVER = [PY, "-um", "http.server", "0", "--bind", "127.0.0.1"]

WORK = [
    Program("sleep", ["sleep", "100"], [RUNNING]),
    Program("busy loop", _sh("while :; do :; done"), [RUNNING]),
    Program("a silent job on the CPU", _sh("cat /dev/zero | sha256sum"), [RUNNING]),
    Program("make, silently", ["make", "-s"], [RUNNING], ["make"], files=[("Makefile", "x:\n\tsleep 100\n")]),
    Program("a flood of output", ["yes"], [RUNNING], ready=b"y\r\ny"),
    Program("http server", _SERVER, [RUNNING], ready=b"Serving"),
    Program("tail -f", ["tail", "-f", "long.txt"], [RUNNING], files=_LONG, ready=b"line 499"),
    Program("a password prompt nobody reads", _sh("printf 'Password: '; sleep 100"), [RUNNING], ready=b": "),
    Program("a prompt sign, then sleep", _sh("printf '> '; sleep 100"), [RUNNING], ready=b"> "),
    Program("echo off, then sleep", _sh("stty -echo; printf ok; sleep 100"), [RUNNING], ready=b"ok"),
    Program("raw mode, then sleep", _sh("stty raw -echo; printf ok; sleep 100"), [RUNNING], ready=b"ok"),
    Program("a server that does not answer", _py(_HUNG), [RUNNING], ready=b": "),
    Program("accept()", _py(_ACCEPT), [RUNNING], ready=b"> "),
    Program("a pipe that stays empty", _sh("sleep 100 | cat"), [RUNNING]),
    Program("a lock held by another", _sh(_LOCKED), [RUNNING], ["flock"], ready=b"ok"),
    Program("progress that watches stdin", _py(_PROGRESS), [RUNNING], ready=b"2 done"),
    Program("slow progress that watches stdin", _py(_SLOW_PROGRESS), [RUNNING], ready=b"2 done"),
    Program("asyncio timers and stdin reader", _py(_TICKING), [RUNNING], ready=b"tick\r\ntick"),
    Program("asyncio server and stdin reader", _py(_SERVING), [RUNNING], ready=b"up"),
    Program("node spinner and readline", ["node", "-e", _NODE_SPIN], [RUNNING], ["node"], ready=b".."),
    Program("ended", _sh("exit 3"), ["exited"]),
    Program("stopped", _sh("printf ok; kill -STOP $$"), ["unknown"], ready=b"ok"),
]

PROGRAMS = [*SHELLS, *QUESTIONS, *SCREENS, *MENUS, *WORK]
