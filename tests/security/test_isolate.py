"""`hold run --isolate`: what a program inside can see and reach, and that it is a session like any other."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from holdfast.model import limits
from holdfast.model.errors import HoldfastError
from holdfast.system import kernel
from holdfast.wire import host_requests
from tests.support.home import HomeForTests, alive, read_all, until
from tests.support.needs import needs

pytestmark = [pytest.mark.home("file"), needs("bwrap")]

HOLD = shlex.join([sys.executable, "-m", "holdfast.cli.main"])
WAIT_S = 60  # a bound on the machine's worst day, never the time it takes

Start = Callable[..., Session]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def start(hold: HomeForTests, work: Path) -> Start:
    """An isolated session in a folder of its own."""

    def run(*command: str, **options: Any) -> Session:
        options.setdefault("cwd", str(work))
        return hold.run(*command, isolate=True, **options)

    return run


@pytest.fixture
def inside(start: Start) -> Session:
    return start("bash", "--norc", name="inside", env={"PS1": "inside> "})


def told(session: Session, source: str) -> str:
    """What a command inside says; its failure is the test's."""
    done = session.exec(source, timeout=WAIT_S)
    assert (done.state, done.exit_code) == ("exited", 0), done.output
    return done.output


def fails(session: Session, source: str) -> str:
    done = session.exec(source, timeout=WAIT_S)
    assert done.state == "exited"
    assert done.exit_code != 0, done.output
    return done.output


def code_of(session: Session) -> int | None:
    detail = session.wait(exit=True, timeout=WAIT_S).detail
    return detail["exit"]["code"]  # type: ignore[no-any-return, index]


# -- what it sees ----------------------------------------------------------------------------------------------


@pytest.mark.home("own")
def test_the_home_is_one_socket_and_the_keys_are_not_there(hold: HomeForTests, inside: Session) -> None:
    keys = hold.path / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    (keys / "probe").write_text("KEY")
    assert told(inside, f"ls -A {hold.path}").split() == ["host.sock"]
    assert told(inside, "echo $HOLDFAST_HOME").strip() == str(hold.path)
    for path in (keys / "probe", hold.path / "host.json", hold.path / "sessions" / inside.id / "manifest.json"):
        assert path.exists()
        fails(inside, f"cat {path}")
    fails(inside, f"touch {hold.path}/x")
    fails(inside, f"rm {hold.path}/host.sock")


def test_other_sessions_sockets_and_processes_are_not_there(hold: HomeForTests, inside: Session) -> None:
    other = hold.run("sleep", "1000", name="other")
    pid, keeper = other.status().pid, hold.keeper_pid(other)
    sock = hold.path / "sessions" / other.id / "keeper.sock"
    assert sock.exists()
    fails(inside, f"ls {sock}")
    outside = {str(number) for number in (pid, keeper, hold.daemon_pid(), os.getpid())}
    listed = [name for name in told(inside, "ls /proc").split() if name.isdigit()]
    mapped = told(inside, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert len(listed) < 10
    assert "sleep 1000" not in mapped
    assert "hold-keeper" not in told(inside, "cat /proc/[0-9]*/comm")
    for number in outside - set(listed):
        fails(inside, f"kill -0 {number}")
        fails(inside, f"cat /proc/{number}/environ")


def test_its_folder_is_written_and_the_system_only_read(inside: Session, work: Path) -> None:
    told(inside, "echo made > made && cat /etc/passwd > /dev/null")
    assert (work / "made").read_text() == "made\n"
    for path in ("/usr/x", "/etc/x", "/usr/bin/x", sys.prefix + "/x"):
        assert "ead-only" in fails(inside, f"touch {path}")


def test_its_temporary_folder_is_its_own(inside: Session, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    fails(inside, f"cat {tmp_path}/secret")
    told(inside, f"echo x > /tmp/{tmp_path.name}-made")
    assert not os.path.exists(f"/tmp/{tmp_path.name}-made")


def test_agents_buses_and_runtime_folders_stay_outside(start: Start, tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(runtime / "agent"))
        agent.listen()
        env = {
            "SSH_AUTH_SOCK": str(runtime / "agent"),
            "XDG_RUNTIME_DIR": str(runtime),
            "DISPLAY": ":7",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
            "HOLDFAST_OPERATOR": "",
            "PS1": "p> ",
        }
        s = start("bash", "--norc", env=env, read=[str(tmp_path)])
        assert (
            told(s, "env | grep -cE '^(SSH_AUTH_SOCK|XDG_RUNTIME_DIR|DISPLAY|DBUS_|HOLDFAST_OPERATOR)' || true")
            == "0\n"
        )
        assert told(s, f"ls -A {runtime}") == ""  # the folder around it is shown, and this one is empty
        fails(s, "ls /run/user /run/dbus /run/systemd /var/spool/cron")


def test_only_the_named_paths_are_shown_and_only_as_named(start: Start, tmp_path: Path) -> None:
    for name in ("in", "out", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    s = start("bash", "--norc", read=[str(tmp_path / "in")], write=[str(tmp_path / "out")], env={"PS1": "p> "})
    assert told(s, f"cat {tmp_path}/in/file {tmp_path}/out/file") == "inout"
    fails(s, f"cat {tmp_path}/other/file")
    fails(s, f"touch {tmp_path}/in/x")
    told(s, f"echo new > {tmp_path}/out/file")
    assert (tmp_path / "out" / "file").read_text() == "new\n"


@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_or_not_as_asked(start: Start, network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        s = start("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}", network=network)
        assert (code_of(s) == 0) is network


def test_nothing_of_the_keeper_is_inherited(start: Start) -> None:
    s = start("bash", "--norc", env={"PS1": "p> "})
    assert told(s, "ls /proc/$$/fd").split() == ["0", "1", "2", "255"]
    assert "0000000000000000" in told(s, "grep CapEff /proc/self/status")


def test_bubblewrap_itself_hears_nothing_of_the_session_s_variables(start: Start) -> None:
    """It runs outside: a library to preload that was asked for inside would be loaded out here."""
    s = start("cat", env={"LD_PRELOAD": "/nowhere/evil.so", "TOKEN": "secret"})
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    wrappers = [p for p in s.status().processes if p.name == "bwrap"]
    assert len(wrappers) == 2
    for process in wrappers:
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert {pair.partition(b"=")[0] for pair in environ.split(b"\0") if pair} <= {
            b"PATH",
            b"HOLDFAST_HOME",
            b"HOLDFAST_SESSION",
        }
        assert "secret" not in process.command


# -- its door ------------------------------------------------------------------------------------------------------


def asks(session: Session, /, **request: Any) -> Any:
    """One raw request through the door, made by a program inside."""
    program = (
        "import sys, json, os, socket\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['HOLDFAST_HOME'] + '/host.sock')\n"
        "b = sys.argv[1].encode(); s.sendall(len(b).to_bytes(4, 'big') + b)\n"
        "f = s.makefile('rb'); print(f.read(int.from_bytes(f.read(4), 'big')).decode())\n"
    )
    words = [sys.executable, "-c", program, json.dumps(request)]
    return json.loads(told(session, shlex.join(words)))


def test_through_its_door_a_program_sees_its_own_session_and_no_other(hold: HomeForTests, inside: Session) -> None:
    other = hold.run("sleep", "1000", name="other")
    assert [row["id"] for row in asks(inside, op="ls", all=True)["ok"]] == [inside.id]
    assert [row["id"] for row in asks(inside, op="status")["ok"]["sessions"]] == [inside.id]
    assert asks(inside, op="status", session="inside")["ok"]["id"] == inside.id
    for op in ("status", "stop", "open", "attach", "send", "exec", "screen", "wait", "kill", "rm"):
        wanted = {"status": "other", "stop": other.id[:8]}.get(op, other.id)
        more: dict[str, Any] = {"words": ["id"]} if op == "exec" else {"until": "exit"} if op == "wait" else {}
        assert asks(inside, op=op, session=wanted, **more)["error"]["code"] == "not_found"
    assert "other" not in told(inside, f"{HOLD} ls -a --json")


def test_a_door_is_only_for_those_inside(hold: HomeForTests, inside: Session) -> None:
    """Its socket lies in the home, where another program of this user can reach it."""
    with socket.socket(socket.AF_UNIX) as sock:
        folder = os.open(hold.path / "sessions" / inside.id / "door", os.O_PATH)
        sock.connect(f"/proc/self/fd/{folder}/host.sock")
        os.close(folder)
        sock.sendall(host_requests.encode({"op": "ls"}))
        sock.settimeout(WAIT_S)
        decoder = host_requests.Decoder()
        while not (answers := decoder.feed(sock.recv(65536))):
            pass
    assert answers[0]["error"]["code"] == "not_allowed"


def test_a_claim_to_be_somebody_else_is_not_heard(hold: HomeForTests, inside: Session) -> None:
    mine = inside.status().acts_as
    claim = {"operator": "op_somebody", "kind": "human", "name": "root"}
    for field, said in {"operator": "op_somebody", "as": claim, "isolation": {}, "door": inside.id}.items():
        for op in ("ping", "run"):
            refused = asks(inside, op=op, **{field: said})["error"]
            assert (refused["code"], f"unknown field `{field}`" in refused["message"]) == ("invalid", True)
    assert asks(inside, op="ping")["ok"]["operator"]["operator"] == mine


@pytest.mark.home("own")
def test_what_was_asked_outside_is_not_seen_from_inside(hold: HomeForTests, inside: Session) -> None:
    other = hold.run("sleep", "1000", name="other")
    outside = [hold.host.ask("Who knows?"), hold.host.ask("And there?", session=other.id)]
    for item in outside:
        for id in (item.id, item.id[:6]):
            assert asks(inside, op="asked", ask=id, timeout=0)["error"]["code"] == "not_found"
    mine = asks(inside, op="ask", text="May I?")["ok"]["id"]
    assert asks(inside, op="asked", ask=mine, timeout=0)["ok"]["text"] == "May I?"


@pytest.mark.parametrize(
    "op", ["down", "doctor", "prune", "rename", "answer", "inbox", "operator_add", "grant", "journal", "nonsense", ""]
)
def test_what_is_not_for_inside_is_refused(inside: Session, op: str) -> None:
    assert asks(inside, op=op, session=inside.id, name="x")["error"]["code"] == "not_allowed"


def test_what_is_refused_at_a_door_is_journaled(hold: HomeForTests, inside: Session) -> None:
    assert asks(inside, op="down")["error"]["code"] == "not_allowed"
    entries = json.loads(hold("timeline", inside.id, "--json").out)
    refusal = next(e for e in entries if e["kind"] == "refuse")
    assert (refusal["op"], refusal["via"], refusal["session"]) == ("down", "door", inside.id)


def test_only_so_many_sessions_are_started_through_a_door(inside: Session) -> None:
    program = (
        "import sys, json, os, socket\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['HOLDFAST_HOME'] + '/host.sock'); f = s.makefile('rb')\n"
        f"for _ in range({limits.DOOR_CHILDREN_MAX + 1}):\n"
        "    b = json.dumps({'op': 'run', 'brief': True, 'command': ['sleep', '1000'], 'env': dict(os.environ)}).encode()\n"
        "    s.sendall(len(b).to_bytes(4, 'big') + b)\n"
        "    print(json.loads(f.read(int.from_bytes(f.read(4), 'big'))).get('error', {}).get('code', 'ok'))\n"
    )
    said = told(inside, shlex.join([sys.executable, "-c", program])).split()
    assert said == ["ok"] * limits.DOOR_CHILDREN_MAX + ["conflict"]


def test_it_may_not_end_its_own_session_and_its_channel_may_not_either(inside: Session) -> None:
    for op in ("stop", "kill", "restart", "rm"):
        assert asks(inside, op=op, session=inside.id)["error"]["code"] == "not_allowed"
    assert inside.status().state == "live"


def test_a_program_types_into_its_own_session(inside: Session) -> None:
    told(inside, f"(until {HOLD} send inside --enter 'echo typed-$((40 + 2))'; do sleep 0.2; done) > /dev/null 2>&1 &")
    assert inside.wait(text="typed-42", timeout=WAIT_S).event == "text"


def test_what_it_starts_is_isolated_as_it_is(hold: HomeForTests, inside: Session, work: Path, tmp_path: Path) -> None:
    (work / "sub").mkdir()
    told(inside, f"{HOLD} run -d -n child --cwd sub -- sh -c 'ls -A {hold.path}; pwd; cat {tmp_path}/secret; cat'")
    child = hold.host.session("child")
    assert child.wait(input=True, timeout=WAIT_S).event != "timeout"
    said = read_all(child).decode()
    assert "host.sock" in said
    assert f"{work}/sub" in said
    assert "No such file" in said
    view = child.status().isolation
    assert view is not None
    assert (view["read"], view["write"]) == ([], [str(work)])
    assert {row["name"] for row in json.loads(told(inside, f"{HOLD} ls --json"))} == {"inside", "child"}
    told(inside, f"{HOLD} stop child")
    assert child.status().state == "exited"


def test_what_it_starts_never_sees_more(hold: HomeForTests, inside: Session, work: Path, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "file").write_text("SECRET")
    (work / "link").symlink_to(secret)
    for words in (f"--write {secret}", f"--read {secret}", "--cwd /", f"--cwd {secret}", f"--cwd {tmp_path}"):
        assert "this session may not " in fails(inside, f"{HOLD} run -d --isolate {words} -- true")
    fails(inside, f"{HOLD} run -d --as op_other -- true")
    # A link in its own folder is its own to make; followed inside, it leads to nothing.
    told(inside, f"{HOLD} run -d -n linked --isolate --write link -- sh -c 'cat {work}/link/file; echo rc $?; cat'")
    linked = hold.host.session("linked")
    assert linked.wait(text="rc 1", timeout=WAIT_S).event != "timeout"
    assert b"SECRET" not in read_all(linked)
    fails(inside, f"{HOLD} run -d --cwd link -- true")


def test_a_name_that_is_taken_outside_stays_with_its_owner(hold: HomeForTests, inside: Session) -> None:
    ended = hold.run("true", name="web")
    assert ended.wait(exit=True, timeout=WAIT_S).event != "timeout"
    told(inside, f"{HOLD} run -d -n web -- cat")
    assert hold.host.session("web").id == ended.id


def test_the_door_dies_with_its_session(hold: HomeForTests, start: Start) -> None:
    s = start("cat")
    door = hold.path / "sessions" / s.id / "door" / "host.sock"
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    assert door.is_socket()
    s.stop(0)
    until(lambda: not door.exists())


def test_a_start_that_fails_leaves_no_door(hold: HomeForTests, start: Start) -> None:
    with pytest.raises(HoldfastError):
        start("/usr/bin/nosuchprogram")
    assert list((hold.path / "sessions").glob("*/door")) == []


@pytest.mark.home("own")
def test_the_door_works_again_after_the_daemon_was_killed(hold: HomeForTests, inside: Session) -> None:
    assert [row["id"] for row in asks(inside, op="ls")["ok"]] == [inside.id]
    pid = inside.status().pid
    hold.kill_daemon()
    assert [row["id"] for row in asks(inside, op="ls")["ok"]] == [inside.id]
    assert inside.status().pid == pid


@pytest.mark.home("own")
def test_without_a_daemon_a_program_inside_is_told_so_and_starts_none(
    hold: HomeForTests, start: Start, work: Path
) -> None:
    s = start("sh", "-c", f"read go; {HOLD} ls > said 2>&1; echo $? > code")
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    channel = s.open()  # straight to the keeper: typing through the host would start it again
    channel.welcome()
    hold.kill_daemon()
    channel.send(b"go\n")
    until(lambda: (work / "code").exists() and (work / "code").read_text(), timeout=WAIT_S)
    channel.close()
    assert "the host is not running" in (work / "said").read_text()


# -- a session like any other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["bash", "--norc"], ["zsh", "-f"], ["dash", "-i"]], ids=lambda w: w[0])
def test_commands_run_in_an_isolated_shell(start: Start, words: list[str], work: Path) -> None:
    s = start(*words, env={"PS1": "p> "})
    for source, code, output in (("echo one; false", 1, "one\n"), ("cd /tmp", 0, ""), ("pwd", 0, "/tmp\n")):
        done = s.exec(source, timeout=WAIT_S)
        assert (done.state, done.exit_code, done.output) == ("exited", code, output)
    assert s.exec("true", timeout=WAIT_S).cwd == "/tmp"


def test_a_replaced_shell_is_known_by_its_pid_inside(inside: Session) -> None:
    done = inside.exec("exec bash --norc", timeout=WAIT_S)
    assert (done.state, done.exit_code) == ("exited", 0)
    assert told(inside, "echo $$") == "2\n"


def test_what_it_waits_for_is_seen_from_outside(start: Start) -> None:
    s = start("sh", "-c", "printf 'name? '; read x; exit ${#x}")
    found = s.wait(input=True, timeout=WAIT_S).detail
    assert found is not None
    assert (found["kind"], found["confidence"]) == ("waiting_for_input", "certain")
    until(lambda: s.status().activity.prompt == "name?", timeout=WAIT_S)
    s.send("four", enter=True)
    assert code_of(s) == 4


def test_exit_codes_pass_through(start: Start) -> None:
    assert code_of(start("sh", "-c", "exit 7")) == 7


@pytest.mark.parametrize(("name", "code"), [("SIGKILL", 137), ("SIGTERM", 143)])
def test_a_signal_is_told_as_such_or_counted_as_a_shell_counts_it(start: Start, name: str, code: int) -> None:
    """The latter where the program was over before it was looked for."""
    found = start("sh", "-c", f"kill -{name[3:]} $$").wait(exit=True, timeout=WAIT_S).detail
    assert found is not None
    ended: Any = found["exit"]
    assert (ended["code"], ended["signal"]) in ((code, None), (None, name))


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_the_kernel_tells_which_signal_ended_a_program_that_was_there(start: Start, name: str) -> None:
    s = start("cat")
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"  # it was looked at
    if not tells_endings():
        pytest.skip("this kernel does not tell how another's child ended (Linux 6.15 does)")
    s.kill(name)
    found = s.wait(exit=True, timeout=WAIT_S).detail
    assert found is not None
    ended: Any = found["exit"]
    assert (ended["code"], ended["signal"], ended["known"]) == (None, name, True)


def tells_endings() -> bool:
    gone = subprocess.Popen(["true"])
    pidfd = os.pidfd_open(gone.pid)
    try:
        gone.wait()
        return kernel.status_of(pidfd) == 0
    finally:
        os.close(pidfd)


def test_the_command_line_passes_the_code_and_says_what_is_not_to_be_seen(hold: HomeForTests, work: Path) -> None:
    assert hold("run", "--isolate", "--cwd", str(work), "--", "sh", "-c", "exit 9").code == 9
    hidden = work.parent / "bin"
    hidden.mkdir()
    (hidden / "tool").write_text("#!/bin/sh\nexit 5\n")
    (hidden / "tool").chmod(0o755)
    path = f"{hidden}:{os.environ['PATH']}"
    missing = hold("run", "--isolate", "--cwd", str(work), "--", "tool", PATH=path)
    assert (missing.code, f"--read {hidden}" in missing.err) == (127, True)
    assert hold("run", "--isolate", "--read", str(hidden), "--cwd", str(work), "--", "tool", PATH=path).code == 5
    assert hold("run", "--isolate", "--cwd", str(work), "--", "nosuchprogram").code == 127


SIGNALS = """
import signal
for name in ("SIGUSR1", "SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), lambda number, _: print("got", signal.Signals(number).name, flush=True))
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_signals_and_keys_reach_the_program_not_bubblewrap(start: Start, work: Path) -> None:
    (work / "program.py").write_text(SIGNALS)
    s = start(sys.executable, "program.py")
    assert s.wait(text="ready", timeout=WAIT_S).event != "timeout"
    pid = s.status().pid
    s.kill("USR1")
    assert s.wait(text="got SIGUSR1", timeout=WAIT_S).event == "text"
    s.send(keys=["C-c"])
    assert s.wait(text="got SIGINT", timeout=WAIT_S).event == "text"
    s.kill("TERM")
    assert s.wait(text="got SIGTERM", timeout=WAIT_S).event == "text"
    status = s.status()
    assert (status.state, status.pid, status.exit) == ("live", pid, None)
    assert [p.name for p in status.processes].count("bwrap") == 2


def test_stopping_leaves_nothing_and_is_quick_where_the_program_listens(start: Start) -> None:
    s = start("bash", "-c", "trap '' HUP; sleep 1000 & setsid sleep 1001 & (trap '' TERM; sleep 1002) & wait")
    until(lambda: [p.name for p in s.status().processes].count("sleep") == 3, timeout=WAIT_S)
    pids = [p.pid for p in s.status().processes]
    s.stop(0.5)
    assert s.status().state == "exited"
    until(lambda: not any(alive(pid) for pid in pids))


def test_what_goes_on_in_the_background_keeps_the_session(start: Start) -> None:
    s = start("sh", "-c", "trap '' HUP; sleep 1000 & exit 5")
    assert code_of(s) == 5
    until(lambda: "sleep" in [p.name for p in s.status().processes], timeout=WAIT_S)  # forked, it is a shell at first
    assert s.status().state == "live"
    s.stop(0)
    assert s.status().state == "exited"


def test_pipes_work_inside(start: Start) -> None:
    s = start("sh", "-c", "cat; echo err >&2; exit 3", pipes=True)
    s.send(b"typed\n")
    s.send(eof=True)
    assert code_of(s) == 3
    until(lambda: s.status().state == "exited")
    assert {c.stream: c.data for c in s.output()} == {"stdout": b"typed\n", "stderr": b"err\n"}


@pytest.mark.home("own")
def test_a_lost_session_s_survivors_are_found_inside_too(hold: HomeForTests, start: Start) -> None:
    s = start("sh", "-c", "trap '' HUP; sleep 1000; true")
    until(lambda: "sleep" in [p.name for p in s.status().processes], timeout=WAIT_S)
    os.kill(hold.keeper_pid(s), signal.SIGKILL)
    status = until(lambda: (got := s.status()).state == "lost" and got, timeout=WAIT_S)
    assert "sleep" in [p.name for p in status.processes]
    pids = [p.pid for p in status.processes]
    s.stop(0)
    until(lambda: not any(alive(pid) for pid in pids))


def test_a_restarted_session_is_isolated_again(hold: HomeForTests, start: Start) -> None:
    s = start("sh", "-c", f"ls -A {hold.path}; cat")
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    s.restart()
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    assert s.status().generation == 2
    assert read_all(s).split() == [b"host.sock", b"host.sock"]
    assert (hold.path / "sessions" / s.id / "door" / "host.sock").is_socket()


# -- asking for it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cwd", ["/", "/etc", "/tmp", "~"])  # not the path itself: each test process has its own home
def test_a_folder_that_is_too_much_is_refused_with_what_to_do(hold: HomeForTests, cwd: str) -> None:
    refused = hold("run", "-d", "--isolate", "--cwd", os.path.expanduser(cwd), "--", "true")
    assert (refused.code, "--write" in refused.err) == (2, True)
    assert hold("ls", "-a", "--json").json == []


def test_the_home_is_never_shown_and_missing_paths_are_named(hold: HomeForTests, work: Path) -> None:
    for words, code in (
        (["--read", str(hold.path)], 2),
        (["--cwd", str(hold.path)], 2),
        (["--read", "/"], 2),
        (["--write", "/nowhere/at/all"], 3),
        (["--cwd", "/nowhere"], 3),
    ):
        refused = hold("run", "-d", "--isolate", "--cwd", str(work), *words, "--", "true")
        assert (refused.code, refused.err.count("\n")) == (code, 1), refused.err


def test_what_it_may_see_is_said_only_of_an_isolated_program(hold: HomeForTests) -> None:
    for words in (["--read", "/etc"], ["--write", "/tmp"], ["--no-network"]):
        refused = hold("run", "-d", *words, "--", "true")
        assert (refused.code, "--isolate" in refused.err) == (2, True)


def test_holdfast_toml_isolates(hold: HomeForTests, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "data").mkdir()
    (work / "holdfast.toml").write_text(
        "[session.one]\ncommand = ['sh', '-c', 'ls -A $HOLDFAST_HOME; cat']\nisolate = true\nread = ['data']\nnetwork = false\n"
    )
    monkeypatch.chdir(work)
    assert hold("up").code == 0
    s = hold.host.session("one")
    assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    assert read_all(s).split() == [b"host.sock"]
    view = s.status().isolation
    assert view is not None
    assert (view["read"], view["network"]) == ([str(work / "data")], False)


def test_the_doctor_tries_it(hold: HomeForTests) -> None:
    checks = {check["name"]: check for check in hold("doctor", "--json").json["checks"]}
    assert (checks["isolation"]["status"], "bubblewrap works" in checks["isolation"]["seen"]) == ("ok", True)
