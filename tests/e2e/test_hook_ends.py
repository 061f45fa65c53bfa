"""What `hold hook claude` asks ends with its asker, and with what the conversation does next; late answers are refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import HOLD, HomeForTests, until
from tests.support.hook_events import CONVERSATION, event

Json = dict[str, Any]
AGENT = str(Path(__file__).parents[1] / "support" / "agent.py")
pytestmark = pytest.mark.home("own")


@pytest.fixture
def asking(hold: HomeForTests) -> Iterator[Callable[..., Json]]:
    """Start a hook that asks, behind a shell as Claude Code starts it; the item it makes."""
    started: list[subprocess.Popen[bytes]] = []
    hold.host.call("ping")

    def ask(*words: str, **fields: Any) -> Json:
        before = {i["id"] for i in hold.host.call("inbox")["items"]}
        process = subprocess.Popen(
            list(words) or [*HOLD, "hook", "claude"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=hold.env
        )
        started.append(process)
        assert process.stdin is not None
        if not words:
            process.stdin.write(event("PermissionRequest", **fields))
        process.stdin.close()
        new: Json = until(
            lambda: next((i for i in hold.host.call("inbox")["items"] if i["id"] not in before), None), 40
        )
        return {**new, "pid": process.pid}

    yield ask
    for process in started:
        process.kill()
        process.wait()


def told(hold: HomeForTests, name: str, **fields: Any) -> None:
    done = hold("hook", "claude", stdin=event(name, **fields))
    assert (done.code, done.err) == (0, "")


def state(hold: HomeForTests, item: Json) -> str:
    return str(hold.host.call("asked", ask=item["id"], timeout=0)["state"])


def late(hold: HomeForTests, item: Json) -> str:
    """What an answer is told that comes too late."""
    refused = hold("answer", item["id"], "--deny")
    assert refused.code == 5, refused.err
    assert state(hold, item) == "gone", "no denial is recorded"
    return refused.err


@pytest.mark.parametrize("name", ["PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_what_the_conversation_does_next_ends_what_it_asked(hold: HomeForTests, asking: Any, name: str) -> None:
    item = asking()
    told(hold, name)
    assert state(hold, item) == "gone"
    assert re.search(r"already decided in the terminal at \d\d:\d\d", late(hold, item))
    assert hold.host.call("asked", ask=item["id"], timeout=0)["reason"] == "decided"
    again = asking()
    assert again["id"] != item["id"], "other questions of that conversation are asked"


def test_another_call_ends_what_was_asked_before_it_began(hold: HomeForTests, asking: Any) -> None:
    other = {"tool_name": "Read", "tool_input": {"file_path": "/a"}}
    item = asking()
    told(hold, "PostToolUse", **other, duration_ms=3_600_000)
    assert state(hold, item) == "open", "it began before the question: both were under way"
    told(hold, "PostToolUse", **other, duration_ms=0)
    assert state(hold, item) == "gone"


def test_of_two_open_dialogs_the_one_of_the_call_ends(hold: HomeForTests, asking: Any) -> None:
    first = asking()
    second = asking(tool_input={"command": "touch other"})
    told(hold, "PostToolUse")
    assert (state(hold, first), state(hold, second)) == ("gone", "open")


def test_others_are_left_alone(hold: HomeForTests, asking: Any) -> None:
    mine, subagents, others = asking(), asking(agent_id="ac69eb77"), asking(session_id="another")
    told(hold, "Stop")
    assert [state(hold, i) for i in (mine, subagents, others)] == ["gone", "open", "open"]
    told(hold, "PostToolUse", agent_id="ac69eb77")
    assert [state(hold, i) for i in (subagents, others)] == ["gone", "open"]
    told(hold, "UserPromptSubmit", session_id="another")
    assert state(hold, others) == "gone"


def test_nobody_ends_what_another_operator_asked(hold: HomeForTests, asking: Any) -> None:
    from tests.support.operators import enrol

    item = asking()
    enrol(hold, "claude")
    ended = hold.host.call("decided", conversation=f"Claude Code {CONVERSATION}")
    assert ended["ended"] == [item["id"]], "the asker may"
    second = asking()  # by the agent, which is enrolled now
    assert second["asker"]["name"] == "claude"
    assert hold.host.call("decided", conversation=f"Claude Code {CONVERSATION}")["ended"] == []
    assert state(hold, second) == "open"


def test_an_agent_that_is_killed_takes_its_items_along(hold: HomeForTests, asking: Any) -> None:
    item = asking(sys.executable, AGENT, "--alone")
    os.kill(item["pid"], signal.SIGKILL)  # the shell and the hook live on
    until(lambda: state(hold, item) == "gone", 30)
    assert "the agent has ended" in late(hold, item)
    assert hold.host.call("asked", ask=item["id"], timeout=0)["reason"] == "asker_ended"


def test_an_agent_that_is_killed_while_no_host_runs_is_gone_for_the_next(hold: HomeForTests, asking: Any) -> None:
    item = asking(sys.executable, AGENT, "--alone")
    children = Path(f"/proc/{item['pid']}/task/{item['pid']}/children").read_text().split()
    hold.kill_daemon()
    os.kill(item["pid"], signal.SIGKILL)
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    until(lambda: state(hold, item) == "gone", 30)
    assert "the agent has ended" in late(hold, item)


def test_a_hook_that_its_agent_ends_was_decided_there(hold: HomeForTests, asking: Any) -> None:
    item = asking()
    os.kill(item["pid"], signal.SIGTERM)  # as Claude Code does after a no at its terminal
    until(lambda: state(hold, item) == "gone", 30)
    assert "already decided in the terminal" in late(hold, item)


def test_an_answer_in_time_is_still_one(hold: HomeForTests, asking: Any) -> None:
    item = asking()
    assert hold("answer", item["id"], "--approve").code == 0
    told(hold, "PostToolUse")
    assert state(hold, item) == "answered"


def test_a_host_that_is_down_is_not_started_to_be_told(hold: HomeForTests) -> None:
    hold.host.call("ping")
    pid = os.pidfd_open(hold.daemon_pid())
    assert hold("down").code == 0
    hold.host.close()
    until(lambda: not _alive(pid), 30)
    for name in ("PostToolUse", "Stop"):
        told(hold, name)
    assert "not running" in (said := hold("doctor").out) or "none runs" in said


def _alive(pidfd: int) -> bool:
    import select

    return not select.select([pidfd], [], [], 0)[0]


@pytest.mark.parametrize("kind", ["idle_prompt", "auth_success"])
def test_an_idle_agent_is_no_item(hold: HomeForTests, kind: str) -> None:
    hold.host.call("ping")
    told(hold, "Notification", notification_type=kind)
    assert hold.host.call("inbox")["items"] == []


def test_a_dialog_in_a_session_is_told_by_the_session(hold: HomeForTests) -> None:
    hold.host.call("ping")
    done = hold("hook", "claude", stdin=event("Notification"), HOLDFAST_SESSION="ses_0000000000000000")
    assert done.code == 0
    assert hold.host.call("inbox")["items"] == [], "its menu is the item"
    told(hold, "Notification")
    assert [i["kind"] for i in hold.host.call("inbox")["items"]] == ["question"], "elsewhere nothing else tells of it"
    told(hold, "PostToolUse", duration_ms=0)
    assert hold.host.call("inbox")["items"] == []
