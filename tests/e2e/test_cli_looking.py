"""Commands that look: status, ps, ports, files, screen, who, top."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios

import pytest

from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, until

pytestmark = pytest.mark.home("file")

SERVER = "import socket; s = socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1]); input()"


def serve(hold: HomeForTests) -> int:
    """A session `web` that listens; its port."""
    s = hold.run(sys.executable, "-c", SERVER, name="web")
    found = s.wait(text=r"port \d+", timeout=30)
    return int(str(found.detail["match"]).split()[1])


def test_status_tells_what_a_session_is_doing_with_its_evidence(hold: HomeForTests) -> None:
    assert (
        hold.run("sh", "-c", "printf 'Proceed? '; read x", name="ask").wait(input=True, timeout=30).event != "timeout"
    )
    lines = dict(line.split("\t", 1) for line in hold("status", "ask").out.splitlines())
    assert (lines["state"], lines["activity"], lines["confidence"]) == ("live", "waiting_for_input", "certain")
    assert lines["prompt"] == "Proceed?"
    assert "read" in lines["evidence"]
    full = hold("status", "ask", "--json").json
    assert {"processes", "files", "connections", "pty", "controls", "observed_at"} <= full.keys()
    assert full["activity"]["prompt"] == "Proceed?"


def test_status_without_a_session_tells_of_the_host_and_all_sessions(hold: HomeForTests) -> None:
    hold.run("cat", name="one")
    ended = hold.run("true", name="two")
    assert ended.wait(exit=True, timeout=30).event != "timeout"
    until(lambda: ended.status().state == "exited")
    answer = hold("status", "--json").json
    assert answer["host"].keys() >= {"id", "pid", "version", "started_at"}
    assert {s["name"]: s["state"] for s in answer["sessions"]} == {"one": "live", "two": "exited"}
    human = hold("status")
    assert human.out.splitlines()[0].startswith("host\thst_")
    assert "and 1 ended" in human.err


def test_the_page_of_a_session_is_for_people_and_hides_control_characters(hold: HomeForTests) -> None:
    hold.run("sh", "-c", "sleep 1000 | cat", name="web")
    until(lambda: len(hold("ps", "web", "--json").json) == 3)
    with AttachedTerminal(hold, "status", "web", size=(120, 40)) as terminal:
        assert terminal.wait() == 0
        page = terminal.raw.decode()
    assert "● web  running" in page
    assert "command   sh -c sleep 1000 | cat" in page
    assert "└─ " in page
    assert "\x1b" not in page  # NO_COLOR is set


@pytest.mark.home("own")
def test_colours_are_for_terminals_that_want_them(hold: HomeForTests) -> None:
    hold.run("cat", name="web")
    del hold.env["NO_COLOR"]
    with AttachedTerminal(hold, "status", "web") as terminal:
        assert terminal.wait() == 0
        assert b"\x1b[1mweb\x1b[0m" in terminal.raw
    assert "\x1b" not in hold("status", "web").out


def test_ps_lists_every_process_with_its_parent(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "sleep 1000 & wait", name="tree")
    processes = until(lambda: len(found := hold("ps", "tree", "--json").json) == 2 and found)
    shell = next(p for p in processes if p["name"] == "sh")
    assert [p["ppid"] for p in processes if p["name"] == "sleep"] == [shell["pid"]]
    assert processes[0].keys() == {"pid", "ppid", "name", "command", "state", "cpu_s", "rss"}
    rows = [line.split("\t") for line in hold("ps", "tree").out.splitlines()]
    assert sorted(int(row[0]) for row in rows) == sorted(p["pid"] for p in processes)
    s.stop(0)
    gone = hold("ps", "tree")
    assert (gone.code, gone.out) == (0, "")
    assert hold("ps", "tree", "--json").json == []


def test_ports_name_the_session_and_the_pid_behind_each(hold: HomeForTests) -> None:
    port = serve(hold)
    pid = hold("status", "web", "--json").json["pid"]
    rows = hold("ports", "--json").json
    assert [(r["port"], r["pid"], r["session_name"], r["protocol"]) for r in rows] == [(port, pid, "web", "tcp")]
    assert rows[0]["session"].startswith("ses_")
    assert hold("ports", str(port)).out.split("\t")[3] == "web"


def test_a_port_that_no_session_serves_is_an_empty_list_and_exit_1(hold: HomeForTests) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:  # somebody serves it, but no session
        port = str(ours.getsockname()[1])
        answer = hold("ports", port, "--json")
        assert (answer.code, answer.json) == (1, [])
        human = hold("ports", port)
    assert (human.code, human.out) == (1, "")
    assert port in human.err
    assert hold("ports").code == 0
    assert hold("ports", "0").code == hold("ports", "70000").code == hold("ports", "http").code == 2


@pytest.mark.home("own")
def test_files_show_offsets_and_locks(hold: HomeForTests) -> None:
    path = hold.path / "data"
    assert (
        hold.run("sh", "-c", f"exec 7>{path}; flock 7; printf hello >&7; cat", name="f")
        .wait(input=True, timeout=30)
        .event
        != "timeout"
    )
    found = [f for f in hold("files", "f", "--json").json if f["path"] == str(path) and f["fd"] == 7]
    assert {(f["kind"], f["offset"], f["lock"]) for f in found} == {("file", 5, "write")}
    rows = [row.split("\t")[2:] for row in hold("files", "f").out.splitlines()]
    assert ["7", "file", "5", "write", str(path)] in rows


def test_screen_is_the_picture_not_the_bytes(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", r"printf '\033[2J\033[3;5Hhere\033[1;1Htop'; cat", name="scr")
    assert s.wait(input=True, timeout=30).event != "timeout"
    assert hold("screen", "scr").out == "top\n\n    here\n"
    picture = hold("screen", "scr", "--json").json
    assert (picture["cols"], picture["rows"], picture["cursor"]["x"]) == (80, 24, 3)
    assert picture["offset"] == hold("status", "scr", "--json").json["output"]["end"]


def test_who_tells_the_holder_of_the_controls(hold: HomeForTests) -> None:
    hold.run("cat", name="c")
    free = hold("who", "c", "--json").json
    assert (free["controls"]["holder"], free["attached"]) == (None, [])
    assert hold("take", "c").code == 0
    held = hold("who", "c", "--json").json
    assert (held["controls"]["kind"], held["controls"]["epoch"]) == ("human", free["controls"]["epoch"] + 1)
    assert hold("who", "c").out.split("\t")[0] == "controls"


def test_top_in_a_pipe_is_one_table(hold: HomeForTests) -> None:
    hold.run("sh", "-c", "while :; do :; done", name="busy")
    rows = [line.split("\t") for line in hold("top").out.splitlines()]
    assert [row[0] for row in rows] == ["busy"]
    assert int(rows[0][3]) >= 0
    assert rows[0][4].endswith("MB")
    (busy,) = hold("top", "--json").json
    assert busy["cpu_percent"] >= 0
    assert [p["name"] for p in busy["processes"]] == ["sh"]


def test_top_redraws_until_q_and_gives_the_terminal_back(hold: HomeForTests) -> None:
    assert hold.run("sh", "-c", "printf 'sure? '; read x", name="ask").wait(input=True, timeout=30).event != "timeout"
    with AttachedTerminal(hold, "top", size=(120, 20)) as terminal:
        terminal.shows("1 waiting for input")
        terminal.shows("> sure?")
        assert terminal.screen.alternate
        assert terminal.mode() != fresh_mode()
        terminal.until(lambda: terminal.raw.count(b"\x1b[H") >= 2)  # drawn a second time
        terminal.type(b"q")
        assert terminal.wait() == 0
        assert terminal.mode() == fresh_mode()
        assert not terminal.screen.alternate


@pytest.mark.parametrize("end", ["SIGTERM", "Ctrl-C"])
def test_top_gives_the_terminal_back_however_it_ends(hold: HomeForTests, end: str) -> None:
    hold.run("cat", name="one")
    with AttachedTerminal(hold, "top") as terminal:
        terminal.shows("1 sessions")
        if end == "SIGTERM":
            terminal.kill(signal.SIGTERM)
        else:
            terminal.type(b"\x03")
        terminal.wait()
        assert terminal.mode() == fresh_mode()
        assert not terminal.screen.alternate


def fresh_mode() -> list[object]:
    """The modes of a terminal that nobody has touched."""
    master, slave = pty.openpty()
    try:
        return termios.tcgetattr(slave)
    finally:
        os.close(master)
        os.close(slave)


NOT_THERE = (
    "status .",
    "ps .",
    "files .",
    "screen .",
    "who .",
    "logs .",
    "take .",
    "release .",
    "stop .",
    "kill .",
    "rm .",
    "restart .",
    "send . x",
    "wait . --for exit",
    "exec-result . exe_1",
    "rename . new",
    "replay .",
    "export . --cast -",
)
# Many commands in one process: each would take longer to start than to answer.
ASK_ALL = """
import contextlib, io, json, sys
from holdfast.cli.main import main
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    answers.append([words, code, out.getvalue(), err.getvalue()])
json.dump(answers, sys.stdout)
"""


def test_a_session_that_is_not_there_is_exit_3_everywhere(hold: HomeForTests) -> None:
    hold.run("cat", name="there")
    asked = [line.replace(".", "nope").split() for line in NOT_THERE]
    asked += [[*words, "--json"] for words in asked if words[0] not in ("replay", "export")]
    argv = [sys.executable, "-c", ASK_ALL, json.dumps(asked)]
    done = subprocess.run(argv, env=hold.env, capture_output=True, check=True, timeout=60)
    for words, code, out, err in json.loads(done.stdout):
        assert code == 3, words
        if words[-1] == "--json":
            assert (json.loads(out)["error"]["code"], err) == ("not_found", ""), words
        else:
            assert (out, len(err.splitlines())) == ("", 1), words


def test_an_id_or_the_beginning_of_one_is_as_good_as_a_name(hold: HomeForTests) -> None:
    s = hold.run("cat", name="c")
    for word in (s.id, s.id[:12], s.id[4:12]):
        assert hold("status", word, "--json").json["name"] == "c"


def test_a_short_command_loads_no_more_of_the_api_than_it_asks(hold: HomeForTests) -> None:
    hold.run("cat")
    program = (
        "import sys\n"
        "from holdfast.cli.main import main\n"
        "sys.argv = ['hold', 'ls']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "found = {'typing', 'msgspec', 'inspect', 'importlib.metadata', 'lzma', 'bz2'} & set(sys.modules)\n"
        "print('loaded', *sorted(found), *sorted(m for m in sys.modules if m.startswith('holdfast.api.')))"
    )
    env = {**os.environ, "HOLDFAST_HOME": str(hold.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded holdfast.api.observe holdfast.api.operation"
