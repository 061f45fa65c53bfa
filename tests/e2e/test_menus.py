"""Menus and agents in a terminal: no typed answer chooses for anybody, one dialog is one item, and idle is no item."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from tests.support.home import HomeForTests, read_all, until

Json = dict[str, Any]
SUPPORT = Path(__file__).parents[1] / "support"
MENU, AGENT = (str(SUPPORT / name) for name in ("menu.py", "agent.py"))


def items(hold: HomeForTests) -> list[Json]:
    found: list[Json] = hold.host.call("inbox")["items"]
    return found


def only(hold: HomeForTests, kind: str) -> Json:
    """The one open item, once there is one: of this kind, and never two."""

    def found() -> Json | None:
        seen = items(hold)
        assert len(seen) <= 1, [(i["kind"], i["text"]) for i in seen]
        return seen[0] if seen and seen[0]["kind"] == kind else None

    one: Json = until(found, 30)
    return one


def activity(session: Session, kind: str) -> Any:
    return until(lambda: (a := session.status().activity).kind == kind and a, 30)


def shows(session: Session, text: str) -> None:
    assert session.wait(text=text, timeout=30).event == "text", read_all(session)


@pytest.mark.parametrize("how", [[], ["--relative"], ["--relative", "--loop"]])
def test_a_no_typed_at_a_menu_does_not_choose_its_yes(hold: HomeForTests, how: list[str]) -> None:
    s = hold.run(sys.executable, MENU, *how, name="m")
    item = only(hold, "menu")
    assert "1. Yes" in item["text"], "it shows the screen"
    assert "2. No" in item["text"]
    before = read_all(s)
    for words in (["no"], ["--approve"], ["--deny"], []):
        refused = hold("answer", item["id"], *words)
        assert refused.code == 2, refused.err
        assert "attach, or send keys" in refused.err
        assert len(refused.err.splitlines()) == 1
    assert hold("answer", item["id"], "--stdin", stdin=b"no\n").code == 2
    assert read_all(s) == before, "nothing reached the program"
    assert only(hold, "menu")["id"] == item["id"], "and it is the same menu"
    s.send(b"\x1b[B")
    until(lambda: "> 2. No" in only(hold, "menu")["text"], 30)
    assert only(hold, "menu")["id"] == item["id"], "moved through with keys, it stays one item"
    s.send(b"\r")
    shows(s, "chose: 2. No")
    until(lambda: not [i for i in items(hold) if i["kind"] == "menu"], 30)


@pytest.mark.parametrize("kill", [True, False])
def test_a_menu_is_a_menu_for_the_next_host_too(hold: HomeForTests, kill: bool) -> None:
    hold.run(sys.executable, MENU, name="m")
    item = only(hold, "menu")
    if kill:
        hold.kill_daemon()
    else:
        pid = os.pidfd_open(hold.daemon_pid())
        assert hold("down").code == 0
        until(lambda: not _alive(pid), 30)
    again = only(hold, "menu")
    assert again["id"] == item["id"]
    assert hold("answer", again["id"], "no").code == 2


def _alive(pidfd: int) -> bool:
    import select

    return not select.select([pidfd], [], [], 0)[0]


def test_exec_comes_back_from_a_menu(hold: HomeForTests) -> None:
    s = hold.run("bash", "--norc", name="sh")
    done = s.exec(f"{sys.executable} {MENU}", timeout=30)
    assert done.state == "menu"
    assert hold("wait", "sh", "--for", "input", "--timeout", "20", "--json").json["detail"]["kind"] == "menu"


def test_the_keeper_answers_a_program_that_asks_whether_it_is_heard_also_without_a_host(
    hold: HomeForTests, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = f"until test -e {go}; do sleep 0.05; done; exec {sys.executable} {MENU} --status"
    s = hold.run("sh", "-c", wait, name="m")
    hold.kill_daemon()
    go.touch()
    folder = hold.path / "sessions" / s.id
    until(lambda: any(b"heard: True" in p.read_bytes() for p in folder.rglob("*") if p.is_file()), 30)
    assert activity(s, "at_prompt").says == "idle", "and what it said meanwhile is known"
    assert b"heard: True" in read_all(s)


def test_an_agent_at_its_own_prompt_is_idle_and_no_item(hold: HomeForTests) -> None:
    s = hold.run(sys.executable, MENU, "--status", "--times", "2", name="agent")
    activity(s, "at_prompt")
    assert hold("ls").out.split("\t")[2] == "idle"
    assert items(hold) == []
    refused = hold("exec", "agent", "--timeout", "2", "--", "echo hello")
    assert refused.code not in (0, 124), "what is no shell is not typed into"
    assert b"echo" not in read_all(s)
    s.send("x")
    first = only(hold, "menu")
    s.send(b"\r")
    activity(s, "at_prompt")
    assert items(hold) == []
    s.send("x")
    assert only(hold, "menu")["id"] != first["id"], "the next dialog is another item"


def test_a_dialog_that_goes_on_drawing_is_an_item_all_the_same(hold: HomeForTests) -> None:
    s = hold.run(sys.executable, MENU, "--status", "--loop", "--ticks", name="agent")
    activity(s, "at_prompt")
    s.send("x")
    item = only(hold, "menu")
    shown = read_all(s)
    until(lambda: read_all(s) != shown, 30)
    assert only(hold, "menu")["id"] == item["id"]


def test_what_an_ended_program_said_is_not_its_shells(hold: HomeForTests) -> None:
    s = hold.run("bash", "--norc", name="sh")
    s.send(f"{sys.executable} {MENU} --status; echo o''ver\r")
    assert activity(s, "at_prompt").says == "idle"
    s.send("x")
    activity(s, "menu")
    s.send(b"\r")
    s.send(b"\r")
    shows(s, "over")
    found = activity(s, "at_prompt")
    assert found.says is None
    assert s.exec("echo $((6*7))", timeout=30).output.strip() == "42"


# -- a dialog that a hook reports


def asked(hold: HomeForTests, folder: Path) -> tuple[Session, Json]:
    """An agent in a session, its dialog open."""
    s = hold.run(sys.executable, AGENT, name="agent", cwd=str(folder))
    activity(s, "at_prompt")
    s.send("x")
    return s, only(hold, "approval")


def test_one_dialog_is_one_item_and_its_answer_goes_through_the_hook(hold: HomeForTests, tmp_path: Path) -> None:
    s, item = asked(hold, tmp_path)
    activity(s, "menu")
    for _ in range(3):  # however often it is looked at
        assert [i["id"] for i in items(hold)] == [item["id"]]
    assert item["session"] == s.id
    assert hold("answer", item["id"], "--deny", "--why", "not now").code == 0
    shows(s, "no by the hook")
    assert items(hold) == [], "nor is the dialog that closes shown as a menu"
    assert not (tmp_path / "ran").exists()


def test_a_menu_that_was_seen_first_is_the_hooks_once_that_reports_it(hold: HomeForTests, tmp_path: Path) -> None:
    """A hook that takes long to start, on a busy machine: here from a second program of the session."""
    ask = f"{sys.executable} {AGENT} --alone </dev/null & exec {sys.executable} {MENU} --status"
    s = hold.run("sh", "-c", f"until test -e go; do sleep 0.05; done; {ask}", name="agent", cwd=str(tmp_path))
    (tmp_path / "go").touch()
    activity(s, "at_prompt")
    only(hold, "approval")
    s.send("x")
    activity(s, "menu")
    assert [i["kind"] for i in items(hold)] == ["approval"]


def test_what_was_allowed_at_the_terminal_is_over_before_its_command_has_ended(
    hold: HomeForTests, tmp_path: Path
) -> None:
    s, item = asked(hold, tmp_path)
    until(lambda: s.status().activity.says == "blocked", 30)
    items(hold)  # it was looked at while it was open
    s.send(b"\r")
    shows(s, "yes at the terminal")
    late = hold("answer", item["id"], "--deny")
    assert late.code == 5
    assert "already decided in the terminal at " in late.err
    assert (tmp_path / "ran").exists()
    assert [i for i in hold.host.call("inbox", all=True)["items"] if i["state"] == "denied"] == []
    (tmp_path / "done").touch()
    activity(s, "at_prompt")
    s.send("x")
    assert only(hold, "approval")["id"] != item["id"], "and the next question of the conversation is asked"


def test_a_no_at_the_terminal_ends_the_item(hold: HomeForTests, tmp_path: Path) -> None:
    s, item = asked(hold, tmp_path)
    s.send(b"\x1b[B")
    s.send(b"\r")
    shows(s, "no at the terminal")
    until(lambda: items(hold) == [], 30)
    late = hold("answer", item["id"], "--approve")
    assert (late.code, "already decided in the terminal" in late.err) == (5, True)
    assert not (tmp_path / "ran").exists()
