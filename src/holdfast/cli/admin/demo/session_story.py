"""Demo steps with live sessions: each function does one thing and checks the result."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import socket
import sys
import urllib.request

from .demo_home import DemoHome, Step, start_time

_LINES_MIN = 400  # 8 s of build: enough for the killings, on a machine that is not too busy
_LINES_MAX = 20000  # and on one that is
# Numbered lines, coloured, with text beyond ASCII. It runs until the demo has killed everything around it.
_BUILD = """
import os, time
for n in range(1, {most} + 1):
    print(f"[{{n:05d}}] compiling unit-{{n * 7919 % 1000:03d}}.c \\x1b[32m✓\\x1b[0m", flush=True)
    if n >= {least} and os.path.exists({flag!r}):
        break
    time.sleep(0.02)
print(f"built {{n}}", flush=True)
"""
_ASK = """
import getpass, hashlib
given = getpass.getpass("Deploy password: ")
print("accepted", hashlib.sha256(given.encode()).hexdigest())
"""
_TREE = "sleep 1000 & (setsid sleep 1000 &) ; nohup sleep 1000 >/dev/null 2>&1 & (sleep 1000 & sleep 1000) & wait"
_NUMBER = re.compile(rb"\[(\d{5})\]")


def start_a_build(stage: DemoHome) -> str:
    source = _BUILD.format(most=_LINES_MAX, least=_LINES_MIN, flag=stage.path("finish"))
    terminal = stage.terminal("run", "-n", "build", "--", sys.executable, "-c", source)
    stage.check(
        terminal.until(rb"\[00010\]"),
        "a program started in a terminal shows its output there",
        output=terminal.output[-500:],
    )
    status = stage.ask("status", "build")
    stage.check(
        status["state"] == "live" and status["attached_count"] == 1,
        "it is live, with one client attached",
        status=status,
    )
    stage.seen.update(pid=status["pid"], began=start_time(status["pid"]), terminal=terminal)
    return f"`hold run -n build` in a terminal: pid {status['pid']}, session {status['id']}"


def kill_its_terminal(stage: DemoHome) -> str:
    stage.seen.pop("terminal").kill()
    before = _last_number(stage)
    _same_program(stage, "killing the terminal")
    stage.until(lambda: _last_number(stage) > before + 10, "the build keeps running without a terminal")
    stage.until(lambda: stage.ask("status", "build")["attached_count"] == 0, "no client is attached any more")
    return (
        f"SIGKILL to the client, its terminal closed: pid {stage.seen['pid']} keeps counting, past line {before + 10}"
    )


def attach_from_another(stage: DemoHome) -> str:
    before = _last_number(stage)
    terminal = stage.terminal("attach", "build")
    first = terminal.until(rb"\[(\d{5})\]")
    stage.check(first, "attach shows the screen at once", output=terminal.output[-500:])
    restored = int(first[1]) if first else 0
    stage.check(
        restored <= before,
        "the screen is restored: lines from before the attach are on it",
        first=restored,
        before=before,
    )
    wanted = before + 30
    stage.check(terminal.until(rb"\[%05d\]" % wanted), "and then it is live", line=wanted, output=terminal.output[-99:])
    terminal.kill()
    _same_program(stage, "killing the second terminal")
    return (
        f"screen restored from line {restored} on, then live to line {wanted}; killed too, and the build keeps running"
    )


def kill_the_daemon(stage: DemoHome) -> str:
    watcher = stage.terminal("attach", "build", "-r")
    stage.check(watcher.until(rb"\[\d{5}\]"), "a watcher sees the screen", output=watcher.output[-300:])
    daemon = stage.ask("status")["host"]["pid"]
    stage.kill(daemon)
    seen = max(int(n) for n in _NUMBER.findall(watcher.output))
    stage.check(
        watcher.until(rb"\[%05d\]" % (seen + 20)),
        "an attached terminal keeps showing output without a daemon",
        line=seen,
        output=watcher.output[-300:],
    )
    _same_program(stage, "kill -9 of the daemon")
    after = stage.ask("status")["host"]["pid"]
    stage.check(after != daemon, "the next command has a new daemon", before=daemon, after=after)
    watcher.kill()
    return f"kill -9 {daemon}: the attached terminal never noticed; the next command had daemon {after}"


def read_all_output(stage: DemoHome) -> str:
    with open(stage.path("finish"), "wb"):
        pass
    ended = stage.ask("wait", "build", "--for", "exit", "--timeout", "60")
    stage.check(ended["detail"]["exit"]["code"] == 0, "the build ends with its own exit code", ended=ended)
    data, at = b"", 0
    for line in stage.hold("logs", "--json", "build", "--from", "0").splitlines():
        record = json.loads(line)
        stage.check(
            record["gap"] is None and record["offset"] == at,
            "the output is there from offset 0 without a gap",
            record=record,
            expected=at,
        )
        data += base64.b64decode(record["bytes_base64"])
        at = len(data)
    count = len(_NUMBER.findall(data))
    expected = _expected(count)
    digest = hashlib.sha256(data).hexdigest()
    stage.check(
        count >= _LINES_MIN and digest == hashlib.sha256(expected).hexdigest(),
        "every line is there, in order, once, exactly",
        lines=count,
        **_difference(data, expected),
    )
    return f"{count} numbered lines in {len(data)} bytes, none missing or doubled; sha256 {digest[:16]}… as expected"


def serve_on_a_port(stage: DemoHome) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = f"{sys.executable} -m http.server {port} --bind 127.0.0.1; exit 7"
    stage.hold("run", "-d", "-n", "dev", "--cwd", stage.home, "--", "sh", "-c", server)
    waited = stage.ask("wait", "dev", "--for", f"port={port}", "--timeout", "60")
    [row] = stage.ask("ports", str(port))
    stage.check(
        row["session_name"] == "dev" and row["pid"] == waited["detail"]["pid"],
        "a port has a session and a pid",
        ports=row,
        waited=waited,
    )
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as reply:  # a port of this machine
        stage.check(reply.status == 200, "and it is the one that answers there", status=reply.status)
    stage.kill(row["pid"])
    stage.ask("wait", "dev", "--for", "exit", "--timeout", "30")
    status = stage.until(lambda: (s := stage.ask("status", "dev"))["state"] == "exited" and s, "its death is known")
    ended = status["exit"]
    stage.check(
        ended["known"] and ended["code"] == 7 and not status["ports"],
        "a dead server is reported dead, with its code",
        exit=ended,
        ports=status["ports"],
    )
    return f"port {port} belonged to dev, pid {row['pid']}; killed, the status says exited with code 7 and no port"


def find_the_prompt(stage: DemoHome) -> str:
    secret = os.urandom(12).hex()
    stage.hold("run", "-d", "-n", "deploy", "--", sys.executable, "-c", _ASK)
    waited = stage.ask("wait", "deploy", "--for", "input", "--timeout", "60")
    activity = stage.ask("status", "deploy")["activity"]
    stage.check(
        waited["event"] == "input" and activity["kind"] == "waiting_for_secret" and activity["evidence"],
        "a password prompt is recognised, with evidence",
        activity=activity,
    )
    stage.hold("send", "deploy", "--secret", "--stdin", "--enter", stdin=secret.encode())
    stage.ask("wait", "deploy", "--for", "exit", "--timeout", "30")
    said = stage.hold("logs", "deploy").decode("utf-8", "replace")
    digest = hashlib.sha256(secret.encode()).hexdigest()
    stage.check(f"accepted {digest}" in said, "the answer arrives as it was sent", output=said)
    holding = [path for path in _files(stage.home) if secret.encode() in _content(path)]
    stage.check(not holding, "the secret is not stored: not in a log, not in a record", found_in=holding)
    return f"“{activity['prompt']}”: {activity['evidence']}; answered, and the secret is in no file of the home"


def exec_in_a_shell(stage: DemoHome) -> str:
    shell = ["bash", "--norc"] if shutil.which("bash") else ["sh"]
    stage.hold("run", "-d", "-n", "shell", "--cwd", "/", "--", *shell)
    folder = os.path.realpath(stage.path("a folder"))
    os.mkdir(folder)
    stage.ask("exec", "shell", "--", "cd", folder)
    stage.ask("exec", "shell", "--", "export GREETING='hello there'")
    here = stage.ask("exec", "shell", "--", "pwd; echo $GREETING")
    stage.check(
        here["output"].split("\n") == [folder, "hello there", ""] and here["cwd"] == folder,
        "folder and environment last from one command to the next",
        result=here,
    )
    failed = stage.ask("exec", "shell", "--", "sh", "-c", "echo no; exit 42", code=42)
    stage.check(failed["exit_code"] == 42 and failed["output"] == "no\n", "an exit code is exact", result=failed)
    return f"cd, export, then both still there; exit code 42 came through exactly ({failed['duration_ms']} ms)"


def stop_leaves_nothing(stage: DemoHome) -> str:
    stage.hold("run", "-d", "-n", "tree", "--", "sh", "-c", _TREE)
    listed = stage.until(
        lambda: len(p := stage.ask("ps", "tree")) >= 6 and p, "all processes that it starts are in its tree"
    )
    started = {p["pid"]: start_time(p["pid"]) for p in listed}
    stage.hold("stop", "tree", "shell", "-t", "5")
    left = [pid for pid, began in started.items() if began and start_time(pid) == began]
    stage.check(not left, "stop ends the whole tree, also what tried to escape", left=left)
    stage.hold("down", "--all", "--yes")
    stage.until(lambda: not stage.marked(), "nothing of it is left on the machine")
    return f"{len(started)} processes, some with setsid and nohup, all ended; after `hold down --all` none is left"


def _same_program(stage: DemoHome, after: str) -> None:
    """Check that pid and start time are unchanged, in /proc and in the status."""
    pid, began = stage.seen["pid"], stage.seen["began"]
    now = start_time(pid)
    stage.check(now == began, f"after {after} the same process keeps running", pid=pid, began=began, now=now)
    status = stage.ask("status", "build")
    stage.check(status["pid"] == pid and status["state"] == "live", f"after {after} the status says so", status=status)


def _last_number(stage: DemoHome) -> int:
    numbers = _NUMBER.findall(stage.hold("screen", "build"))
    stage.check(numbers, "the screen can be read without attaching")
    return max(int(n) for n in numbers)


def _expected(count: int) -> bytes:
    """The build's output, as a terminal passes it on."""
    lines = [f"[{n:05d}] compiling unit-{n * 7919 % 1000:03d}.c \x1b[32m✓\x1b[0m\r\n" for n in range(1, count + 1)]
    return ("".join(lines) + f"built {count}\r\n").encode()


def _difference(data: bytes, expected: bytes) -> dict[str, object]:
    pairs = enumerate(zip(data, expected, strict=False))
    at = next((n for n, (there, wanted) in pairs if there != wanted), min(len(data), len(expected)))
    return {"differs_at": at, "there": data[at : at + 80], "expected": expected[at : at + 80]}


def _files(home: str) -> list[str]:
    return [os.path.join(folder, name) for folder, _, names in os.walk(home) for name in names]


def _content(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""  # a socket
    with open(fd, "rb") as f:
        return f.read()


STEPS: list[Step] = [
    ("A build starts in a terminal", start_a_build),
    ("The terminal is killed: the build keeps running", kill_its_terminal),
    ("Another terminal attaches, and is killed too", attach_from_another),
    ("The daemon is killed: no session notices", kill_the_daemon),
    ("Its whole output, by offset", read_all_output),
    ("A server: which session has the port, and is it alive", serve_on_a_port),
    ("A prompt in an unattended session", find_the_prompt),
    ("Commands in a persistent shell", exec_in_a_shell),
]
END: list[Step] = [("Stop leaves no process", stop_leaves_nothing)]
