"""The real Claude Code in a session, with a scripted model on loopback: its dialogs, its hooks, its idle prompt.

Run where it is installed: HOLDFAST_TEST_CLAUDE names the program, else `claude` on PATH. Seen with 2.1.326 from npm
(@anthropic-ai/claude-code). It has a home of its own and a network namespace with nothing but loopback.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.agents.connecting.agent_programs import claude_hooks
from holdfast.client._sync.host import Session
from tests.support.home import HOLD, HomeForTests, read_all, until

Json = dict[str, Any]
CLAUDE = os.environ.get("HOLDFAST_TEST_CLAUDE") or shutil.which("claude")
UNSHARE = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
KEY = "sk-ant-api03-loopback-0123456789abcdefghij"
MODEL = Path(__file__).parents[1] / "support" / "model.py"
_SECONDS = 60  # it starts in 2 s on a quiet machine


def _missing() -> str | None:
    if CLAUDE is None:
        return "needs Claude Code: HOLDFAST_TEST_CLAUDE, or claude on PATH"
    try:
        alone = subprocess.run([*UNSHARE, "sh", "-c", "ip link set lo up"], capture_output=True, check=False)
    except OSError:
        return "needs unshare and ip, for a network of its own"
    return None if alone.returncode == 0 else "needs the right to make a network namespace, and ip"


@pytest.fixture
def held(hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if (missing := _missing()) is not None:
        pytest.skip(missing)
    project, person = tmp_path / "project", tmp_path / "person"
    (person / ".claude").mkdir(parents=True)
    project.mkdir()
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "numStartups": 5,
        "projects": {str(project): trusted},
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    (person / ".claude.json").write_text(json.dumps(state))
    hooks: Json = {}
    for name, group in claude_hooks(HOLD, {"HOLDFAST_HOME": str(hold.path)}):
        hooks.setdefault(name, []).append(group)

    def start(*commands: str, connected: bool, full_screen: bool) -> Session:
        (person / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks} if connected else {}))
        port = tmp_path / "port"
        env = {
            "HOME": str(person),
            "TERM": "xterm-256color",
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDECODE": "",
            "PYTHONPATH": os.pathsep.join(sys.path),
            **({} if full_screen else {"CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1"}),
        }
        script = (
            f"ip link set lo up; {shlex.join([sys.executable, str(MODEL), str(port), *commands])} & "
            f"until test -e {port}; do sleep 0.05; done; unset CLAUDECODE CLAUDE_CODE_ENTRYPOINT; "
            f"ANTHROPIC_BASE_URL=http://127.0.0.1:$(cat {port}) {shlex.quote(str(CLAUDE))} --permission-mode default"
        )
        hold.host.call("ping")
        s = hold.run(*UNSHARE, "sh", "-c", script, name="claude", cwd=str(project), env=env, size=(100, 40))
        says(s, "idle")
        return s

    return start


def says(session: Session, *states: str) -> None:
    def found() -> bool:
        return session.status().activity.says in states

    until(found, _SECONDS)


def ask(session: Session) -> None:
    """A prompt, and Return once it is in the input field: what comes in one piece is a paste."""
    session.send("GO on")
    until(lambda: "GO on" in session.screen().text, _SECONDS)
    session.send(b"\r")
    says(session, "blocked")


def only(hold: HomeForTests, kind: str) -> Json:
    def found() -> Json | None:
        items = hold.host.call("inbox")["items"]
        assert len(items) <= 1, [(i["kind"], i["text"]) for i in items]
        return items[0] if items and items[0]["kind"] == kind else None

    item: Json = until(found, _SECONDS)
    return item


@pytest.mark.timeout(300)
@pytest.mark.parametrize("full_screen", [True, False])
def test_without_hooks_a_dialog_is_a_menu_and_a_no_runs_nothing(
    hold: HomeForTests, held: Any, tmp_path: Path, full_screen: bool
) -> None:
    ran = tmp_path / "ran"
    s = held(f"touch {ran}", connected=False, full_screen=full_screen)
    assert hold.host.call("inbox")["items"] == [], "idle at its own prompt it is no item"
    assert hold("ls").out.split("\t")[2] == "idle"
    ask(s)
    item = only(hold, "menu")
    assert "1. Yes" in item["text"], item["text"]
    refused = hold("answer", item["id"], "no")
    assert (refused.code, "attach, or send keys" in refused.err) == (2, True)
    assert only(hold, "menu")["id"] == item["id"]
    assert not ran.exists()
    s.send(b"\x1b")
    says(s, "idle", "done")
    assert hold.host.call("inbox")["items"] == []
    assert not ran.exists()


@pytest.mark.timeout(300)
def test_with_hooks_a_dialog_is_one_approval_decided_here_or_there(
    hold: HomeForTests, held: Any, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / f"ran{n}" for n in (1, 2, 3))
    go = tmp_path / "go"
    long = f"touch {first}; until test -e {go}; do sleep 0.05; done"
    s = held(long, f"touch {second}", f"touch {third}", connected=True, full_screen=False)
    ask(s)
    at_terminal = only(hold, "approval")
    assert at_terminal["session"] == s.id
    s.send(b"\r")
    until(first.exists, _SECONDS)
    until(lambda: hold.host.call("inbox")["items"] == [], _SECONDS)
    late = hold("answer", at_terminal["id"], "--deny")
    assert (late.code, "already decided in the terminal" in late.err) == (5, True), "its command still runs"
    go.touch()
    here = only(hold, "approval")
    assert str(second) in here["text"]
    assert hold("answer", here["id"], "--approve").code == 0
    until(second.exists, _SECONDS)
    last = only(hold, "approval")
    assert hold("answer", last["id"], "--deny").code == 0
    says(s, "idle", "done")
    assert not third.exists(), read_all(s)
    assert hold.host.call("inbox")["items"] == []


@pytest.mark.timeout(300)
def test_a_killed_claude_takes_its_approval_along(hold: HomeForTests, held: Any, tmp_path: Path) -> None:
    s = held(f"touch {tmp_path / 'ran'}", connected=True, full_screen=True)
    ask(s)
    item = only(hold, "approval")
    program = next(p for p in s.status().processes if "--permission-mode" in p.command and p.name != "sh")
    os.kill(program.pid, 9)
    until(lambda: hold.host.call("inbox")["items"] == [], _SECONDS)
    late = hold("answer", item["id"], "--approve")
    assert (late.code, "the agent has ended" in late.err) == (5, True), late.err
