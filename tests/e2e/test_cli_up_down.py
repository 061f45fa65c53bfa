"""`hold up` and `hold down`: a project's sessions come up in order; the daemon goes, and sessions stay unless told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.model.work.effects import Fenced
from tests.support.attached import AttachedTerminal
from tests.support.home import HOLD, HomeForTests, Result, alive, until

SERVER = "import socket,time; time.sleep(0.3); s=socket.create_server(('127.0.0.1', {port})); time.sleep(1000)"


def up(hold: HomeForTests, folder: Path, *words: str) -> Result:
    done = subprocess.run([*HOLD, "up", *words], env=hold.env, cwd=folder, capture_output=True, timeout=60, check=False)
    return Result(done)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "deep" / "below").mkdir(parents=True)
    return folder


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as s:
        return int(s.getsockname()[1])


def test_up_without_a_project_starts_the_host_alone(hold: HomeForTests, project: Path) -> None:
    answer = up(hold, project)
    assert answer.code == 0
    assert answer.out.startswith("hst_")
    assert up(hold, project, "web").code == 3


def test_up_starts_what_the_nearest_file_describes_and_leaves_what_runs(hold: HomeForTests, project: Path) -> None:
    (project / "holdfast.toml").write_text(
        '[session.one]\ncommand = "echo from $PWD with $WORD; cat"\ncwd = "deep"\nenv = { WORD = "care" }\n'
        '[session.two]\ncommand = ["cat"]\npipes = true\nrestart = "on-failure"\nsize = "100x30"\n'
    )
    answer = up(hold, project / "deep" / "below", "--json").json
    assert {s["name"]: s["kind"] for s in answer["started"]} == {"one": "terminal", "two": "pipes"}
    assert answer["host"]["id"].startswith("hst_")
    one = hold.host.session("one")
    assert one.wait(text=f"from {project / 'deep'} with care", timeout=30).event != "timeout"
    assert hold("status", "two", "--json").json["restart"] == "on-failure"
    pid = one.status().pid
    again = up(hold, project)
    assert again.code == 0
    assert again.err.count(" is already running\n") == 2
    assert one.status().pid == pid


def test_an_ended_session_is_started_anew_under_its_name(hold: HomeForTests, project: Path) -> None:
    (project / "holdfast.toml").write_text('[session.one]\ncommand = "cat"\n')
    first = up(hold, project, "--json").json["started"][0]["id"]
    hold("stop", "one")
    second = up(hold, project, "--json").json["started"][0]["id"]
    assert first != second
    assert hold("status", "one", "--json").json["id"] == second


def test_sessions_wait_for_those_they_come_after(hold: HomeForTests, project: Path) -> None:
    port = free_port()
    server = [sys.executable, "-c", SERVER.format(port=port)]
    (project / "holdfast.toml").write_text(
        f'[session.web]\ncommand = ["cat"]\nafter = "db"\n[session.other]\ncommand = ["cat"]\n'
        f'[session.db]\ncommand = {json.dumps(server)}\nwait = "port={port}"\n'
    )
    answer = up(hold, project, "web", "--json").json
    assert [s["name"] for s in answer["started"]] == ["db", "web"]
    created = {s["name"]: s for s in hold("ls", "--json").json}
    assert [p["port"] for p in created["db"]["ports"]] == [port]
    assert created["db"]["created_at"] < created["web"]["created_at"]


def test_what_does_not_come_up_is_said_and_the_rest_is_not_started(hold: HomeForTests, project: Path) -> None:
    (project / "holdfast.toml").write_text(
        '[session.db]\ncommand = "cat"\nwait = "text=never"\nwait_timeout = "200ms"\n[session.web]\nafter = "db"\n'
    )
    answer = up(hold, project)
    assert answer.code == 124
    assert "hold logs db" in answer.err.splitlines()[-1]
    assert [s["name"] for s in hold("ls", "--json").json] == ["db"]
    (project / "holdfast.toml").write_text(
        '[session.bad]\ncommand = "exit 3"\nwait = "port=1"\n[session.web]\nafter = "bad"\n'
    )
    assert up(hold, project).code == 1


def test_a_mistake_in_the_file_is_one_line_and_starts_nothing(hold: HomeForTests, project: Path) -> None:
    (project / "holdfast.toml").write_text('[session.one]\ncomand = "cat"\n')
    answer = up(hold, project)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "hold: holdfast.toml: session.one.comand is not a known key; did you mean command?\n"
    assert not (hold.path / "host.sock").exists()
    assert up(hold, project, "--web", "8080").code == 2


def test_down_leaves_the_sessions_running_and_waits_until_the_daemon_is_gone(hold: HomeForTests) -> None:
    s = hold.run("cat", name="c")
    pid, daemon = s.status().pid, hold.daemon_pid()
    answer = hold("down", "--json")
    assert (answer.code, answer.json["host"]["pid"], answer.json["ended"]) == (0, daemon, [])
    assert not alive(daemon)
    assert pid is not None
    assert alive(pid)
    again = hold("down")
    assert (again.code, again.out, again.err) == (0, "", "no host is running here\n")
    assert s.status().pid == pid


def test_down_all_needs_a_yes(hold: HomeForTests) -> None:
    s = hold.run("cat", name="c")
    pid = s.status().pid
    assert pid is not None
    refused = hold("down", "--all")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "--yes" in refused.err
    with AttachedTerminal(hold, "down", "--all") as terminal:
        terminal.shows("End 1 session (c) and stop the host? [y/N]")
        terminal.type(b"\r")
        assert terminal.wait() == 1
    assert alive(pid)
    with AttachedTerminal(hold, "down", "--all") as terminal:
        terminal.shows("[y/N]")
        terminal.type(b"y\r")
        assert terminal.wait() == 0
    assert not alive(pid)


def test_down_all_ends_sessions_whose_daemon_died_before(hold: HomeForTests) -> None:
    pid = hold.run("cat", name="c").status().pid
    assert pid is not None
    hold.kill_daemon()
    answer = hold("down", "--all", "--yes", "--json")
    assert (answer.code, answer.json["ended"]) == (0, ["c"])
    assert not alive(pid)
    until(lambda: not (hold.path / "host.sock").exists())
    assert hold("down", "--all", "--yes").code == 0


def test_down_names_the_workers_that_hold_runs_and_stay_gives_them_back(hold: HomeForTests) -> None:
    run = hold.host.work.run(task="t", worker="here", lease=600)
    told = hold("down")
    assert told.code == 0
    assert "here" in told.err
    assert "--stay" in told.err
    assert run.step("goes on", lambda: 1) == 1  # it starts the host again, and its lease outlasts that
    stopped = hold("down", "--stay", "--json").json
    assert stopped["held"] == ["here"]
    refused = hold("ls", "--json")
    assert (refused.code, "hold up" in refused.json["error"]["hint"]) == (1, True)
    assert hold("up").code == 0
    with pytest.raises(Fenced):
        run.step("late", lambda: 2)
    assert hold.host.work.run(task="t", worker="next").epoch == run.epoch + 1
