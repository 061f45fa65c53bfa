"""Kernel truth: what status says of a live session is what the kernel says of it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.home import HomeForTests, until

pytestmark = pytest.mark.home("file")

SERVER = "import http.server\ns = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)\nprint('port', s.server_port, flush=True)\ns.serve_forever()"


def port_of(session: object) -> int:
    found = session.wait(text=r"port \d+", timeout=30).detail["match"]  # type: ignore[attr-defined]
    return int(str(found).split()[1])


def test_ports_name_the_right_session_and_pid_also_of_what_was_double_forked(hold: HomeForTests) -> None:
    plain = hold.run(sys.executable, "-c", SERVER, name="plain")
    hidden = hold.run("sh", "-c", f'(setsid {sys.executable} -c "{SERVER}" &) ; cat', name="hidden")
    ports = {s.name: port_of(s) for s in (plain, hidden)}
    listed = {p.session_name: p for p in hold.host.ports() if p.port in ports.values()}
    assert {name: p.port for name, p in listed.items()} == ports
    assert listed["plain"].pid == plain.status().pid
    assert listed["hidden"].pid in [p.pid for p in hidden.status().processes]
    assert listed["hidden"].pid != hidden.status().pid
    asked = hold("ports", str(ports["plain"]), "--json").json
    assert [(p["port"], p["session_name"], p["protocol"], p["address"]) for p in asked] == [
        (ports["plain"], "plain", "tcp", "127.0.0.1")
    ]
    plain.stop(1)
    until(lambda: ports["plain"] not in [p.port for p in hold.host.ports()])


def test_waiting_for_a_port_returns_when_it_is_served(hold: HomeForTests) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    s = hold.run("sh", "-c", f"read x; exec {sys.executable} -m http.server {port} --bind 127.0.0.1")
    assert s.wait(port=port, timeout=0.2).event == "timeout"
    s.send("go\n")
    found = s.wait(port=port, timeout=30)
    assert (found.event, found.detail["pid"]) == ("port", s.status().pid)


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_a_lock_and_a_live_database_connection_show_in_status(hold: HomeForTests, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    try:
        locked = tmp_path / "locked"
        program = (
            "import fcntl, socket, sys, time\n"
            f"f = open({str(locked)!r}, 'w'); f.write('12345'); f.flush(); fcntl.flock(f, fcntl.LOCK_EX)\n"
            "while True:\n"
            f"    try: c = socket.create_connection(('127.0.0.1', {port})); break\n"
            "    except OSError: time.sleep(0.05)\n"
            "c.sendall(b'PING\\r\\n'); print(c.recv(100), flush=True); input()\n"
        )
        s = hold.run(sys.executable, "-c", program)
        assert s.wait(text="PONG", timeout=30).event != "timeout"
        status = s.status()
        file = next(f for f in status.files if f.path == str(locked))
        assert (file.kind, file.offset, file.lock, file.pid) == ("file", 5, "write", status.pid)
        link = next(c for c in status.connections if c.remote.endswith(f":{port}"))
        assert (link.state, link.pid) == ("ESTABLISHED", status.pid)
    finally:
        server.terminate()
        server.wait()


def test_the_session_object_has_every_field_of_the_contract(hold: HomeForTests) -> None:
    hold.run("cat", name="s")
    view = hold("status", "s", "--json").json
    fields = {
        "id",
        "name",
        "host",
        "kind",
        "generation",
        "state",
        "attached_count",
        "activity",
        "command",
        "cwd",
        "pid",
        "created_at",
        "started_by",
        "acts_as",
        "exit",
        "output",
        "processes",
        "ports",
        "connections",
        "files",
        "pty",
        "controls",
        "attached",
        "observed_at",
    }
    assert fields <= set(view)
    assert set(view["activity"]) == {"kind", "confidence", "evidence", "prompt", "says"}
    assert set(view["output"]) == {"start", "end", "durable"}
    assert {"cols", "rows", "canonical", "echo", "foreground_pgid"} <= set(view["pty"])
    assert {"holder", "kind", "epoch", "since"} <= set(view["controls"])
    assert {"pid", "ppid", "name", "command", "state", "cpu_s", "rss"} == set(view["processes"][0])
    assert view["id"].startswith("ses_")
    assert view["host"].startswith("hst_")
    assert view["started_by"].startswith("op_")
    assert view["observed_at"].endswith("Z")
    listed = hold("ls", "--json").json
    assert [s["id"] for s in listed] == [view["id"]]
    whole = hold("status", "--json").json
    assert set(whole) == {"host", "sessions"}
    assert {"id", "pid", "version", "started_at"} <= set(whole["host"])


def test_the_folder_and_the_foreground_job_are_observed_not_remembered(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("bash", "--norc")
    s.exec(f"cd {tmp_path}", timeout=30)
    assert s.status().cwd == str(tmp_path)
    s.send("sleep 1000\r")
    until(lambda: "sleep" in [p.name for p in s.status().processes])
    status = until(lambda: (got := s.status()).activity.kind == "running" and got)
    assert status.pty is not None
    assert status.pty.foreground_pgid == next(p.pid for p in status.processes if p.name == "sleep")


def test_a_prompt_and_a_secret_are_recognised_with_evidence(hold: HomeForTests) -> None:
    s = hold.run(sys.executable, "-c", "input('name: ')\nimport getpass\ngetpass.getpass('token: ')")
    seen = s.wait(input=True, timeout=20)
    assert (seen.event, seen.detail["kind"], seen.detail["confidence"]) == ("input", "waiting_for_input", "certain")
    assert seen.detail["prompt"] == "name:"
    s.send("me\n")
    until(lambda: s.status().activity.kind == "waiting_for_secret")
    assert "echo" in s.status().activity.evidence
    hidden = "do-not-keep-this"
    s.send(hidden + "\n", secret=True)
    assert s.wait(exit=True, timeout=20).event != "timeout"
    folder = hold.path / "sessions" / s.id
    kept = [p for p in folder.rglob("*") if p.is_file() and hidden.encode() in p.read_bytes()]
    assert kept == []


def test_wait_for_text_spans_chunks_and_resumes_by_offset(hold: HomeForTests) -> None:
    s = hold.run(
        "sh", "-c", "printf 'needle in '; sleep 0.2; printf 'a haystack\\n'; sleep 0.2; echo needle in another; cat"
    )
    first = s.wait(text="needle in a h", timeout=20)
    assert first.detail["match"] == "needle in a h"
    second = s.wait(text="needle", start=first.offset, timeout=20)
    assert int(str(second.detail["start"])) > first.offset


def test_the_environment_is_the_starters(hold: HomeForTests) -> None:
    s = hold.run("env", "-0", pipes=True, env={"STARTER": "yes", "ODD": "a=b\nc"})
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    data = b"".join(c.data for c in s.output())
    inside = dict(item.partition(b"=")[::2] for item in data.split(b"\0") if item)
    assert inside[b"STARTER"] == b"yes"
    assert inside[b"ODD"] == b"a=b\nc"
    assert inside[b"HOLDFAST_SESSION"].decode() == s.id
    assert inside[b"PATH"] == os.environb[b"PATH"]
    terminal = hold.run("sh", "-c", "echo $TERM; cat", env={"TERM": "vt52", "TMUX": "x"})
    assert terminal.wait(text="xterm-256color", timeout=20).event != "timeout"


def test_umask_and_limits_are_the_callers(hold: HomeForTests) -> None:
    before = os.umask(0o027)
    try:
        s = hold.run("sh", "-c", "umask; ulimit -n; trap; cat /proc/self/status | grep SigIgn", pipes=True)
    finally:
        os.umask(before)
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    lines = b"".join(c.data for c in s.output()).split(b"\n")
    assert lines[0] == b"0027"
    ignored = int(lines[2].split()[1], 16) & ~(0b11 << 31)  # 32 and 33 are the C library's own: nobody can reset them
    assert ignored == 0


def test_the_keeper_loads_neither_asyncio_nor_anything_outside_the_standard_library(hold: HomeForTests) -> None:
    program = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import holdfast.keeper.start.zygote; "
        "print(json.dumps(sorted(sys.modules)))"
    )
    root = Path(sys.modules["holdfast"].__file__ or "").parent.parent
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(root)], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    unwanted = {
        "asyncio",
        "typing",
        "dataclasses",
        "msgspec",
        "re2",
        "subprocess",
        "logging",
        "threading",
        "datetime",
        "tempfile",
    }
    assert loaded & unwanted == set()
    assert hold.path.exists()
