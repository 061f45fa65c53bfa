"""The host as a systemd service: the unit's text, and a real manager that restarts it under living sessions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.admin import systemd_unit
from holdfast.client.admin.doctor.systemd import judge_logout, judge_unit, kill_user_processes
from tests.support.home import HOLD, HomeForTests, until
from tests.support.usermanager import UserManager

SRC = str(Path(__file__).parents[2] / "src")
ODD = '/tmp/a b/%n $HOME "quoted" \\back/é'


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[UserManager]:
    one = UserManager(tmp_path / "manager")
    yield one
    one.close()


def test_the_unit_leaves_keepers_alone_and_brings_the_daemon_back() -> None:
    lines = systemd_unit.text(systemd_unit.USER, "/usr/bin/python3", "/p/host/__main__.py", "/h", None).splitlines()
    assert 'ExecStart="/usr/bin/python3" -I "/p/host/__main__.py" "/h"' in lines
    for line in ("KillMode=process", "Restart=on-failure", "Delegate=yes", "WantedBy=default.target"):
        assert line in lines
    assert not any(line.startswith("Environment=") for line in lines)


def test_a_home_from_the_environment_goes_into_the_unit() -> None:
    text = systemd_unit.text(systemd_unit.SYSTEM, "/usr/bin/python3", "/p/host/__main__.py", "/my home", "/my home")
    assert 'Environment="HOLDFAST_HOME=/my home"' in text
    assert "WantedBy=multi-user.target" in text


@pytest.mark.parametrize("home", ["/h", ODD, "/$$x", "/a%%b", '/"', "/\\"])
def test_an_installed_unit_tells_which_home_it_serves(home: str) -> None:
    text = systemd_unit.text(systemd_unit.USER, "/usr/bin/python 3", "/p", home, home)
    assert systemd_unit.home_in(text) == home
    assert systemd_unit.is_ours(text)


def test_a_user_gets_a_user_unit_and_root_a_system_unit_where_systemd_runs_the_machine() -> None:
    assert systemd_unit.choose(1000, user_manager=False, system_manager=True) == systemd_unit.USER
    assert systemd_unit.choose(0, user_manager=True, system_manager=True) == systemd_unit.SYSTEM
    assert systemd_unit.choose(0, user_manager=True, system_manager=False) == systemd_unit.USER
    assert systemd_unit.choose(0, user_manager=False, system_manager=False) == systemd_unit.SYSTEM
    assert systemd_unit.path_of(systemd_unit.USER, {}, "/home/u") == "/home/u/.config/systemd/user/holdfast.service"
    assert (
        systemd_unit.path_of(systemd_unit.USER, {"XDG_CONFIG_HOME": "/c"}, "/home/u")
        == "/c/systemd/user/holdfast.service"
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("scope", [systemd_unit.USER, systemd_unit.SYSTEM])
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path, scope: str) -> None:
    path = tmp_path / systemd_unit.NAME
    path.write_text(systemd_unit.text(scope, sys.executable, f"{SRC}/holdfast/host/__main__.py", ODD, ODD))
    manner = "--user" if scope == systemd_unit.USER else "--system"
    done = subprocess.run(
        ["systemd-analyze", manner, "--man=no", "verify", str(path)],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert systemd_unit.NAME not in done.stderr.decode()
    assert done.returncode == 0, done.stderr


def test_print_shows_the_unit_and_writes_nothing(hold: HomeForTests, tmp_path: Path) -> None:
    shown = hold("service", "install", "--user", "--print", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert shown.code == 0
    assert systemd_unit.home_in(shown.out) == str(hold.path)
    assert not (tmp_path / "config").exists()


def test_without_a_manager_install_writes_the_unit_and_says_what_to_run(hold: HomeForTests, tmp_path: Path) -> None:
    where: Any = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_RUNTIME_DIR": str(tmp_path)}
    path = tmp_path / "config" / "systemd" / "user" / systemd_unit.NAME
    assert hold("service", "status", "--user", **where).code == 3
    done = hold("service", "install", "--user", **where)
    assert done.code == 1
    assert "the host was not started" in done.err
    assert "systemctl --user enable --now holdfast.service" in done.out
    assert "enable-linger" in done.err
    assert path.read_text() == hold("service", "install", "--user", "--print", **where).out
    facts = hold("service", "status", "--user", "--json", **where)
    assert (facts.code, facts.json["installed"], facts.json["home"]) == (1, True, str(hold.path))
    assert facts.json["reachable"] is False
    assert hold("service", "uninstall", "--user", **where).code == 0
    assert not path.exists()
    assert hold("service", "uninstall", "--user", **where).code == 3


def test_the_unit_of_another_home_and_a_strangers_unit_are_left_alone(hold: HomeForTests, tmp_path: Path) -> None:
    where: Any = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_RUNTIME_DIR": str(tmp_path)}
    path = tmp_path / "config" / "systemd" / "user" / systemd_unit.NAME
    assert hold("service", "install", "--user", "--json", **where).code == 1
    other = hold("service", "install", "--user", **{**where, "HOLDFAST_HOME": str(tmp_path / "other")})
    assert other.code == 5
    assert str(hold.path) in other.err
    path.write_text("[Service]\nExecStart=/bin/true\n")
    for action in ("install", "uninstall"):
        assert hold("service", action, "--user", **where).code == 5
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_sessions_live_on_when_systemd_restarts_and_stops_the_host(manager: UserManager, tmp_path: Path) -> None:
    home = tmp_path / 'home %n $X "q"'
    env = {"HOLDFAST_HOME": str(home), "PYTHONPATH": SRC, "SHELL": "/bin/bash"}

    def hold(*words: str, code: int | None = 0) -> str:
        return manager.run(*HOLD, *words, code=code, env=env)

    def status() -> dict[str, object]:
        return dict(json.loads(hold("status", "kept", "--json")))

    hold("run", "-d", "-n", "kept", "--", "sh", "-c", "while :; do echo tick; sleep 0.2; done")
    before = status()["pid"]
    assert "the host runs as holdfast.service" in hold("service", "install")
    facts = json.loads(hold("service", "status", "--json"))
    assert (facts["scope"], facts["enabled"], facts["active"]) == ("user", True, True)
    assert facts["pid"] == facts["daemon_pid"]
    assert status()["pid"] == before, "a host that a command had started made way, and its session went on"

    hold("run", "-d", "-n", "inside", "--", "sh", "-c", "sleep 1000 & wait")
    inside = json.loads(hold("status", "inside", "--json"))
    assert f"/{systemd_unit.NAME}\n" in manager.run("cat", f"/proc/{inside['keeper_pid']}/cgroup"), (
        "nothing would be proven"
    )

    for verb in ("restart", "stop"):
        daemon = json.loads(hold("service", "status", "--json"))["pid"]
        end = status()["output"]["end"]  # type: ignore[index]
        manager.run("systemctl", "--user", verb, systemd_unit.NAME)
        serving = json.loads(hold("status", "--json"))["host"]["pid"]
        assert serving != daemon
        assert json.loads(hold("service", "status", "--json"))["pid"] == serving, "a client started it through its unit"
        after = json.loads(hold("status", "inside", "--json"))
        assert (after["state"], after["pid"], after["keeper_pid"]) == ("live", inside["pid"], inside["keeper_pid"])
        assert [p["pid"] for p in after["processes"]] == [p["pid"] for p in inside["processes"]]
        assert status()["pid"] == before
        hold("wait", "kept", "--for", "text=tick", "--from", str(end), "--timeout", "20")
    assert "left-over process" in manager.log(), "systemd saw the keepers, and let them be"

    hold("service", "install")
    daemon = json.loads(hold("service", "status", "--json"))["pid"]
    manager.run("kill", "-9", str(daemon))
    until(lambda: json.loads(hold("service", "status", "--json", code=None))["pid"] not in (None, daemon))
    assert json.loads(hold("status", "inside", "--json"))["pid"] == inside["pid"]

    hold("service", "uninstall")
    assert not (manager.config / "systemd" / "user" / systemd_unit.NAME).exists()
    assert json.loads(hold("status", "inside", "--json"))["pid"] == inside["pid"]
    hold("stop", "kept", "inside", "-t", "1")


def test_doctor_says_when_a_logout_would_end_the_sessions() -> None:
    assert judge_logout(lingers=True, installed=True, kills=True)["status"] == "ok"
    assert judge_logout(lingers=False, installed=True, kills=False)["status"] == "warn"
    assert judge_logout(lingers=False, installed=False, kills=True)["status"] == "warn"
    assert judge_logout(lingers=False, installed=False, kills=False)["status"] == "ok"
    assert kill_user_processes("[Login]\n#KillUserProcesses=yes\nKillUserProcesses=no\n KillUserProcesses = Yes\n")
    assert not kill_user_processes("[Login]\n#KillUserProcesses=yes\n")


def test_doctor_says_when_the_units_daemon_is_not_the_one_that_runs() -> None:
    assert judge_unit("user", "/h", "/h", running=True, served=False)["status"] == "warn"
    assert judge_unit("user", "/h", "/h", running=True, served=True)["status"] == "ok"
    assert judge_unit("user", "/other", "/h", running=True, served=False)["status"] == "ok"
    assert judge_unit("user", None, "/h", running=True, served=False)["status"] == "ok"
