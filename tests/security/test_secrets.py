"""A secret that was sent or answered is nowhere afterwards: no file, no row, no log, no argument, no error, no core."""

from __future__ import annotations

import base64
import hashlib
import os
import resource
import secrets
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from tests.support.attached import AttachedTerminal
from tests.support.home import HOLD, HomeForTests, read_all, until

GETPASS = "import getpass, sys\nx = getpass.getpass('key: ')\nprint('got', len(x))\nsys.stdin.read()"
SILENT = "read -s -p 'key: ' x; echo; echo got ${#x}; cat"


def forms(secret: str) -> list[bytes]:
    """The secret, and what somebody might have thought harmless to keep instead."""
    raw = secret.encode()
    shifted = [base64.b64encode(b"\0" * n + raw)[4:-4] for n in range(3)]  # inside a longer text, at any alignment
    digests = [hashlib.sha256(raw).hexdigest().encode(), hashlib.sha256(raw + b"\r").hexdigest().encode()]
    return [raw, raw.hex().encode(), raw[::-1], *shifted, *digests, repr(raw)[2:-1].encode()]


def found_in(data: bytes, secret: str) -> bool:
    return any(form in data for form in forms(secret))


def files_with(folder: Path, secret: str) -> list[str]:
    return [
        str(f) for f in folder.rglob("*") if f.is_file() and not f.is_symlink() and found_in(f.read_bytes(), secret)
    ]


class Onlooker:
    """Reads the command line and environment of every process, again and again, as anybody on the machine could."""

    def __init__(self, secret: str) -> None:
        self._secret, self._stop = secret.encode(), threading.Event()
        self.seen: list[str] = []
        self.looks = 0
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._stop.is_set():
            for name in filter(str.isdigit, os.listdir("/proc")):
                for what in ("cmdline", "environ"):
                    try:
                        if int(name) != os.getpid() and self._secret in Path(f"/proc/{name}/{what}").read_bytes():
                            self.seen.append(f"{name}/{what}")
                    except OSError:
                        continue
            self.looks += 1
            self._stop.wait(0.01)  # what it looks for needs the processor too

    def __enter__(self) -> Onlooker:
        self._thread.start()
        until(lambda: self.looks)
        return self

    def __exit__(self, *exc: object) -> None:
        looks = self.looks
        until(lambda: self.looks > looks + 1)
        self._stop.set()
        self._thread.join()


def secret_item(hold: HomeForTests, session: Session) -> str:
    def waits() -> Any:
        return [
            i["id"] for i in hold.host.call("inbox")["items"] if i["session"] == session.id and i["kind"] == "secret"
        ]

    return str(until(waits, 30)[0])


def nowhere(hold: HomeForTests, session: Session, secret: str) -> None:
    """Look at everything that Holdfast keeps or tells of this session."""
    told = [
        hold("timeline", "-n", "0", "--json"),
        hold("timeline", "-n", "0"),
        hold("inbox", "-a", "--json"),
        hold("logs", session.name, "--raw"),
        hold("export", session.name, "--cast", "-"),
        hold("export", session.name, "--cast", "-", "--v2"),
        hold("replay", session.name, "--speed", "1000"),
        hold("status", session.name, "--json"),
        hold("screen", session.name),
        hold("journal", "verify", "--json"),
    ]
    for answer in told:
        assert not found_in(answer.raw + answer.err.encode(), secret), answer.raw
    assert files_with(hold.path, secret) == []
    hold("down")  # what was only in memory is written now
    assert files_with(hold.path, secret) == []


@pytest.mark.parametrize("program", [["python3", "-c", GETPASS], ["bash", "-c", SILENT]], ids=["getpass", "read -s"])
@pytest.mark.parametrize("way", ["answer --stdin", "answer at a terminal", "send --secret", "send", "sdk"])
def test_a_secret_is_nowhere_after_it_was_given(hold: HomeForTests, program: list[str], way: str) -> None:
    secret = "Zq" + secrets.token_hex(12)
    s = hold.run(*program, name="key")
    ask = secret_item(hold, s)
    with Onlooker(secret) as onlooker:
        if way == "answer --stdin":
            assert hold("answer", ask, "--stdin", stdin=secret.encode() + b"\n").code == 0
        elif way == "answer at a terminal":
            with AttachedTerminal(hold, "answer", ask) as terminal:
                terminal.shows("secret for key")
                terminal.type(secret.encode() + b"\r")
                assert terminal.wait(60) == 0
                assert not found_in(bytes(terminal.raw), secret)
        elif way == "send --secret":
            assert hold("send", "key", "--secret", "--stdin", "--enter", stdin=secret.encode() + b"\n").code == 0
        elif way == "send":  # not marked: the terminal does not echo, which says the same
            s.send(secret, enter=True)
        else:
            hold.host.answer(ask, secret)
        assert s.wait(text=f"got {len(secret)}", timeout=30).event == "text", read_all(s)
    assert onlooker.seen == []
    nowhere(hold, s, secret)


def test_what_was_sent_openly_is_found_by_the_same_search(hold: HomeForTests) -> None:
    """Else the searches above would prove nothing."""
    text = "Zq" + secrets.token_hex(12)
    s = hold.run("cat", name="open")
    assert s.wait(input=True, timeout=30).event != "timeout"
    s.send(text, enter=True)
    assert s.wait(text=text, timeout=30).event != "timeout"
    hold("down")
    names = {Path(f).suffix for f in files_with(hold.path, text)}
    assert {".out", ".db"} <= names | {Path(f).suffix.removesuffix("-wal") for f in files_with(hold.path, text)}


def test_a_secret_that_came_too_late_is_nowhere_either(hold: HomeForTests) -> None:
    secret = "Zq" + secrets.token_hex(12)
    s = hold.run("python3", "-c", GETPASS, name="key")
    ask = secret_item(hold, s)
    s.send("other", enter=True)
    assert s.wait(text="got 5", timeout=30).event != "timeout"
    late = hold("answer", ask, "--stdin", stdin=secret.encode())
    assert (late.code, found_in(late.raw + late.err.encode(), secret)) == (5, False)
    refused = hold("answer", ask, "--stdin", stdin=secret.encode() + b"\n" + secret.encode())
    assert (refused.code in (2, 5), found_in(refused.raw + refused.err.encode(), secret)) == (True, False)
    assert found_in(read_all(s), secret) is False
    nowhere(hold, s, secret)


def test_a_secret_prompt_whose_echo_came_back_is_not_answered(hold: HomeForTests) -> None:
    """The terminal would print it."""
    secret = "Zq" + secrets.token_hex(12)
    s = hold.run("python3", "-c", GETPASS, name="key")
    ask = secret_item(hold, s)
    pty = s.status().pty
    assert pty is not None
    subprocess.run(["stty", "-F", str(pty.path), "echo"], check=True, timeout=30)
    late = hold("answer", ask, "--stdin", stdin=secret.encode())
    assert late.code == 5
    assert not found_in(read_all(s), secret)
    nowhere(hold, s, secret)


def test_a_client_that_holds_a_secret_leaves_no_core(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("python3", "-c", GETPASS, name="key")
    ask = secret_item(hold, s)
    for words in (["answer", ask], ["send", "key", "--secret"]):
        before = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
        try:
            terminal = AttachedTerminal(hold, *words)
        finally:
            resource.setrlimit(resource.RLIMIT_CORE, before)
        with terminal:
            terminal.shows("secret for key")
            limits = Path(f"/proc/{terminal.pid}/limits").read_text()
            core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
            assert core.split()[4] == "0"
            terminal.type(b"half a sec")
            os.kill(terminal.pid, signal.SIGABRT)
            deadline = time.monotonic() + 30
            while True:
                terminal.pump(0.02)
                pid, status = os.waitpid(terminal.pid, os.WNOHANG)
                if pid:
                    break
                assert time.monotonic() < deadline
            terminal.status = -signal.SIGABRT
            assert os.WIFSIGNALED(status)
            assert not os.WCOREDUMP(status)


def test_the_host_and_its_keepers_leave_no_core_and_programs_keep_their_limit(hold: HomeForTests) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("cores are forbidden here altogether")
    script = f'ulimit -S -c {"unlimited" if hard == resource.RLIM_INFINITY else hard // 1024}; exec "$@"'
    started = subprocess.run(
        ["bash", "-c", script, "sh", *HOLD, "run", "-d", "-n", "sh", "--", "bash", "-c", "ulimit -S -c; cat"],
        env=hold.env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 0, started.stderr
    s = hold.host.session("sh")
    assert s.wait(text=r"\d+|unlimited", timeout=30).event != "timeout"
    assert read_all(s).strip() != b"0"
    for pid in (hold.daemon_pid(), hold.keeper_pid(s)):
        limits = Path(f"/proc/{pid}/limits").read_text()
        core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
        assert core.split()[4] == "0"
