"""`hold hook claude`: what Claude Code asks for can be answered from anywhere, and nothing that goes wrong is its problem."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import HOLD, HomeForTests, until
from tests.support.operators import enrol

Json = dict[str, Any]
BASH = {"tool_name": "Bash", "tool_input": {"command": "npm publish --otp 123", "description": "Publish it"}}
QUESTIONS = [
    {
        "question": "Which database?",
        "header": "DB",
        "options": [{"label": "SQLite"}, {"label": "PostgreSQL"}],
        "multiSelect": False,
    },
    {
        "question": "Which checks?",
        "header": "CI",
        "options": [{"label": "lint"}, {"label": "test"}],
        "multiSelect": True,
    },
]


def event(name: str, **fields: Any) -> bytes:
    common = {
        "session_id": "0b1c-77",
        "transcript_path": "/nowhere.jsonl",
        "cwd": "/srv/app",
        "permission_mode": "default",
        "hook_event_name": name,
    }
    return json.dumps({**common, **fields}).encode()


class Hook:
    """A hook that runs: Claude Code waits for it."""

    def __init__(self, hold: HomeForTests, data: bytes, *words: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [*HOLD, "hook", "claude", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**hold.env, **env},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.close()

    def end(self) -> tuple[int, Json | None, str]:
        self.process.stdin = None
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, json.loads(out)["hookSpecificOutput"] if out else None, err.decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def hooks(hold: HomeForTests) -> Iterator[Any]:
    started: list[Hook] = []

    def start(data: bytes, *words: str, **env: str) -> Hook:
        started.append(Hook(hold, data, *words, **env))
        return started[-1]

    hold.host.call("ping")
    yield start
    for hook in started:
        hook.kill()


def item(hold: HomeForTests) -> Json:
    """The open item, once there is one."""
    found: Json = until(lambda: hold.host.call("inbox")["items"], 40)[0]
    return found


def test_a_permission_request_is_an_approval_and_a_yes_allows_it(hold: HomeForTests, hooks: Any) -> None:
    enrol(hold, "claude")
    hook = hooks(event("PermissionRequest", **BASH))
    asked = item(hold)
    assert (asked["kind"], asked["asker"]["name"], asked["asker"]["kind"]) == ("approval", "claude", "agent")
    assert "npm publish" in asked["text"]
    assert "/srv/app" in asked["text"]
    assert hold("inbox").out.count("npm publish") == 1
    assert hold("answer", asked["id"], "--approve").code == 0
    code, said, _ = hook.end()
    assert (code, said) == (0, {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}})


def test_a_no_denies_it_and_its_reason_reaches_the_agent(hold: HomeForTests, hooks: Any) -> None:
    hook = hooks(event("PermissionRequest", **BASH))
    assert hold("answer", item(hold)["id"], "--deny", "--why", "not on a Friday").code == 0
    code, said, _ = hook.end()
    assert code == 0
    assert said is not None
    assert said["decision"]["behavior"] == "deny"
    assert "not on a Friday" in said["decision"]["message"]


def test_nobody_answers_and_claude_code_asks_by_itself(hold: HomeForTests, hooks: Any) -> None:
    code, said, _ = hooks(event("PermissionRequest", **BASH), "--wait", "0.2").end()
    assert (code, said) == (0, None)
    assert hold.host.call("inbox")["items"] == [], "nothing stays behind that would be answered for nobody"
    assert hold.host.call("inbox", all=True)["items"][0]["state"] == "gone"


def test_an_agent_cannot_say_yes_to_itself(hold: HomeForTests, hooks: Any) -> None:
    enrol(hold, "claude")
    hooks(event("PermissionRequest", **BASH))
    refused = hold("answer", item(hold)["id"], "--approve", HOLDFAST_OPERATOR="claude")
    assert refused.code == 4
    assert item(hold)["state"] == "open"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_hook_that_claude_code_ends_takes_its_item_along(hold: HomeForTests, hooks: Any, how: signal.Signals) -> None:
    """Somebody answered in the dialog of Claude Code itself."""
    hook = hooks(event("PermissionRequest", **BASH))
    asked = item(hold)
    os.kill(hook.process.pid, how)
    until(lambda: hold.host.call("asked", ask=asked["id"], timeout=0)["state"] == "gone", 40)


def test_the_daemon_dies_while_somebody_thinks_and_the_answer_still_arrives(hold: HomeForTests, hooks: Any) -> None:
    hook = hooks(event("PermissionRequest", **BASH))
    asked = item(hold)
    hold.kill_daemon()
    assert hold("answer", asked["id"], "--approve").code == 0
    code, said, err = hook.end()
    assert (code, said and said["decision"]["behavior"]) == (0, "allow"), err


def test_secrets_of_a_command_are_not_kept_anywhere(hold: HomeForTests, hooks: Any) -> None:
    command = "curl -H 'Authorization: Bearer s3cr3t-abcdef' https://x && PGPASSWORD=hunter22 psql"
    hook = hooks(event("PermissionRequest", tool_name="Bash", tool_input={"command": command}), "--wait", "20")
    asked = item(hold)
    assert "curl" in asked["text"]
    assert "psql" in asked["text"]
    assert hold("answer", asked["id"], "--deny").code == 0
    hook.end()
    hold.host.call("journal_head")
    for path in hold.path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"s3cr3t-abcdef" not in data, path
            assert b"hunter22" not in data, path


@pytest.mark.parametrize(
    ("tool", "given", "shown", "hidden"),
    [
        ("Write", {"file_path": "/srv/app/a.py", "content": "x = 1\n" * 5000}, "/srv/app/a.py", "x = 1"),
        ("Edit", {"file_path": "/a", "old_string": "foo", "new_string": "bar"}, "(3 characters)", "foo"),
        ("mcp__db__query", {"sql": "drop table t", "limit": 3}, "limit: 3", "drop"),
        ("ExitPlanMode", {"plan": "1. move it"}, "1. move it", "\x00"),
        ("Bash", {"command": "echo \x1b[2Khidden\u202e"}, "\u27e8U+001B\u27e9", "\x1b"),
    ],
)
def test_other_tools_are_described_by_what_they_are_about(
    hold: HomeForTests, hooks: Any, tool: str, given: Json, shown: str, hidden: str
) -> None:
    hooks(event("PermissionRequest", tool_name=tool, tool_input=given))
    text = item(hold)["text"]
    assert tool in text
    assert shown in text
    assert hidden not in text


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": "Bash", "tool_input": {"command": "x" * 5000}},
        {"tool_name": "Bash"},
        {"tool_input": {}},
        {"tool_name": 7, "tool_input": {"command": "x"}},
        {"tool_name": "AskUserQuestion", "tool_input": {}},
    ],
)
@pytest.mark.home("file")
def test_what_cannot_be_shown_whole_is_left_to_claude_code(hold: HomeForTests, hooks: Any, fields: Json) -> None:
    code, said, _ = hooks(event("PermissionRequest", **fields), "--wait", "30").end()
    assert (code, said) == (0, None)
    assert hold.host.call("inbox", all=True)["items"] == []


def test_questions_are_asked_one_after_the_other_and_their_answers_are_the_tools(
    hold: HomeForTests, hooks: Any
) -> None:
    given = {"questions": QUESTIONS, "metadata": {"kept": True}}
    hook = hooks(event("PreToolUse", tool_name="AskUserQuestion", tool_input=given, tool_use_id="t"))
    first = item(hold)
    assert (first["kind"], first["options"]) == ("question", ["SQLite", "PostgreSQL"])
    assert hold("answer", first["id"], "2").code == 0
    second = until(lambda: next((i for i in hold.host.call("inbox")["items"] if i["id"] != first["id"]), None), 40)
    assert "lint, test" in second["text"]
    assert hold("answer", second["id"], "lint, test").code == 0
    code, said, _ = hook.end()
    assert code == 0
    assert said is not None
    assert said["permissionDecision"] == "allow"
    answers = {"Which database?": "PostgreSQL", "Which checks?": "lint, test"}
    assert said["updatedInput"] == {**given, "answers": answers}


def test_a_question_that_nobody_wants_to_answer_is_denied_and_a_silent_one_is_not(
    hold: HomeForTests, hooks: Any
) -> None:
    given = {"tool_name": "AskUserQuestion", "tool_input": {"questions": QUESTIONS}}
    hook = hooks(event("PreToolUse", **given))
    assert hold("answer", item(hold)["id"], "--deny", "--why", "decide yourself").code == 0
    _, said, _ = hook.end()
    assert said is not None
    assert (said["permissionDecision"], "decide yourself" in said["permissionDecisionReason"]) == ("deny", True)
    assert hooks(event("PreToolUse", **given), "--wait", "0.2").end()[:2] == (0, None)


@pytest.mark.home("file")
def test_other_tools_before_their_use_are_not_ours(hold: HomeForTests, hooks: Any) -> None:
    assert hooks(event("PreToolUse", **BASH)).end()[:2] == (0, None)
    assert hold.host.call("inbox", all=True)["items"] == []


def test_a_notification_is_an_item_and_its_answer_is_told_with_the_next_prompt(hold: HomeForTests, hooks: Any) -> None:
    told = {"message": "Claude is waiting for your input", "notification_type": "agent_needs_input"}
    assert hooks(event("Notification", **told)).end()[:2] == (0, None)
    asked = item(hold)
    assert "waiting for your input" in asked["text"]
    hooks(event("Notification", **told)).end()
    assert len(hold.host.call("inbox")["items"]) == 1, "the same wait is told once"
    assert hold("answer", asked["id"], "run the tests too").code == 0
    _, said, _ = hooks(event("UserPromptSubmit", prompt="go on")).end()
    assert said is not None
    assert said["hookEventName"] == "UserPromptSubmit"
    assert "run the tests too" in said["additionalContext"]
    assert hooks(event("UserPromptSubmit", prompt="and")).end()[:2] == (0, None), "an answer is told once"


def test_whoever_goes_on_at_the_terminal_is_no_longer_waited_for(hold: HomeForTests, hooks: Any) -> None:
    hooks(event("Notification", message="m", notification_type="agent_needs_input")).end()
    item(hold)
    assert hooks(event("UserPromptSubmit", prompt="go on")).end()[:2] == (0, None)
    assert hold.host.call("inbox")["items"] == []
    assert list((hold.path / "hooks").iterdir()) == []


@pytest.mark.home("file")
def test_news_waits_for_nobody(hold: HomeForTests, hooks: Any) -> None:
    hooks(event("Notification", message="logged in", notification_type="auth_success")).end()
    assert hold.host.call("inbox")["items"] == []


def test_a_run_gets_a_note_when_claude_code_stops_and_a_checkpoint_before_it_compacts(
    hold: HomeForTests, hooks: Any
) -> None:
    run = hold.host.work.call("begin_run", task="port")["run"]
    last = "All done. The token is ghp_abcdefghijklmnopqrstuvwxyz0123."
    hooks(event("Stop", stop_hook_active=False, last_assistant_message=last), HOLDFAST_RUN=run).end()
    hooks(event("PreCompact", trigger="auto", custom_instructions=""), HOLDFAST_RUN=run).end()
    code, _, err = hooks(event("SessionEnd", reason="other"), HOLDFAST_RUN=run).end()
    assert (code, err) == (0, "")
    notes = json.dumps(hold("history", run, "--json").json)
    assert "All done" in notes
    assert "ghp_" not in notes
    assert "ended (other)" in notes
    saved = hold("checkpoint", "ls", run, "--json").json
    assert [c["label"] for c in saved] == ["before Claude Code compacts (auto)"]


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_a_conversation_begins_with_the_brief(hold: HomeForTests, hooks: Any, tmp_path: Path, source: str) -> None:
    assert hooks(event("SessionStart", source=source)).end()[:2] == (0, None), "without work there is nothing to say"
    project = tmp_path / "shop"
    project.mkdir()
    hold.host.work.call("project_init", name="shop", phases=[], root=str(project))
    contract = {"intent": "move the orders to the new table", "constraints": ["never touch production"]}
    hold.host.work.call("task_add", project="shop", title="Migrate", id="1.5", contract=contract)
    run = hold.host.work.call("task_start", task="1.5", project="shop")["run"]
    for env in ({"HOLDFAST_RUN": run}, {"HOLDFAST_TASK": "1.5", "HOLDFAST_PROJECT": "shop"}, {}):
        code, said, err = hooks(event("SessionStart", source=source), **env).end()
        assert (code, err) == (0, "")
        assert said is not None
        assert said["hookEventName"] == "SessionStart"
        assert ("never touch production" if "HOLDFAST_RUN" not in env else run) in said["additionalContext"]
        assert len(said["additionalContext"]) <= 10_000
    hooks(event("PreCompact", trigger="manual"), HOLDFAST_TASK="1.5", HOLDFAST_PROJECT="shop").end()
    assert [c["label"] for c in hold("checkpoint", "ls", run, "--json").json] == [
        "before Claude Code compacts (manual)"
    ]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"hook_event_name": 7}', b"\xff\xfe", b"[" * 100_000])
@pytest.mark.home("file")
def test_nonsense_on_stdin_is_one_line_and_blocks_nothing(hold: HomeForTests, hooks: Any, data: bytes) -> None:
    code, said, err = hooks(data).end()
    assert (code, said, len(err.splitlines())) == (1, None, 1)
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [["--nonsense"], ["--wait", "soon"], ["extra"]])
@pytest.mark.home("file")
def test_no_mistake_on_the_command_line_ends_with_the_status_that_blocks(hold: HomeForTests, words: list[str]) -> None:
    assert hold("hook", "claude", *words, stdin=event("Stop")).code == 1
    assert hold("hook", "gemini", stdin=event("Stop")).code == 1


def test_without_a_host_and_with_a_broken_one_claude_code_goes_on(
    hold: HomeForTests, hooks: Any, tmp_path: Path
) -> None:
    empty = tmp_path / "never-used"
    assert hooks(event("PermissionRequest", **BASH), HOLDFAST_HOME=str(empty)).end()[:2] == (0, None)
    assert not empty.exists(), "a home that nobody uses is not begun by a hook"
    broken = tmp_path / "broken"
    (broken / "host.lock").mkdir(parents=True)
    (broken / "host.db").write_bytes(b"")
    code, said, err = hooks(event("PermissionRequest", **BASH), HOLDFAST_HOME=str(broken)).end()
    assert (code, said, len(err.splitlines())) == (0, None, 1), err


@pytest.mark.home("file")
def test_an_event_it_does_not_know_is_none_of_its_business(hold: HomeForTests, hooks: Any) -> None:
    assert hooks(event("SubagentStop")).end()[:2] == (0, None)
    assert hooks(event("WorktreeRemove", worktree_path="/x")).end()[:2] == (0, None)


def test_inside_a_held_session_the_item_names_it(hold: HomeForTests) -> None:
    """Claude Code itself runs in a session: the item leads there."""
    data = event("PermissionRequest", **BASH).decode()
    program = f"import subprocess, sys; subprocess.run({[*HOLD, 'hook', 'claude']!r}, input={data!r}.encode())"
    session = hold.run(sys.executable, "-c", program, name="agent")
    asked = item(hold)
    assert (asked["kind"], asked["session_name"]) == ("approval", "agent")
    assert hold("answer", asked["id"], "--approve").code == 0
    assert session.wait(text='"behavior": "allow"', timeout=40).event == "text"
