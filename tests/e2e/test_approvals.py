"""Approvals: what an agent is about to run waits for a human, shown as it will run, and nothing goes around that."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host, Session
from holdfast.model.errors import HoldfastError
from tests.support.attached import AttachedTerminal
from tests.support.home import HOLD, HomeForTests, read_all, until

RULE = '[[approve]]\npattern = "danger"\ntimeout = "120s"\n'
VERBS = "view,start,request_control,type,signal,resize,exec,stop"


class Bot:
    """An agent with its own key: its command line runs in the background, because it may have to wait."""

    def __init__(self, hold: HomeForTests) -> None:
        assert hold("operator", "add", "bot", "--kind", "agent", "--grant", VERBS).code == 0
        self.hold, self.running = hold, list[subprocess.Popen[str]]()
        self.host = Host(str(hold.path), operator="bot")

    def __call__(self, *words: str, stdin: bytes = b"") -> Any:
        return self.hold(*words, stdin=stdin, HOLDFAST_OPERATOR="bot")

    def begin(self, *words: str) -> subprocess.Popen[str]:
        env = {**self.hold.env, "HOLDFAST_OPERATOR": "bot"}
        started = subprocess.Popen(
            [*HOLD, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(started)
        return started

    def close(self) -> None:
        self.host.close()
        for one in self.running:
            one.kill()
            one.communicate()


@pytest.fixture
def bot(hold: HomeForTests) -> Iterator[Bot]:
    made = Bot(hold)
    yield made
    made.close()


@pytest.fixture
def shell(hold: HomeForTests, bot: Bot) -> Session:
    s = hold.run("bash", "--norc", name="sh")
    assert s.wait(input=True, timeout=30).event != "timeout"
    return s


def rule(hold: HomeForTests, text: str = RULE) -> None:
    (hold.path / "config.toml").write_text(text)


def approval(hold: HomeForTests, kind: str = "approval") -> dict[str, Any]:
    def found() -> Any:
        return [i for i in hold.host.call("inbox")["items"] if i["kind"] == kind]

    (item,) = until(found, 30)
    return dict(item)


def kinds(hold: HomeForTests) -> list[str]:
    return [e["kind"] for e in hold("timeline", "-n", "0", "--json").json]


# -- exec


def test_a_command_waits_for_a_human_and_runs_after_the_yes(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    assert bot("exec", "sh", "--", "echo harmless").out == "harmless\n"
    asked = bot.begin("exec", "sh", "--why", "to ship it", "--", "echo danger-$((6*7))")
    item = approval(hold)
    assert (item["text"], item["asker"]["name"], item["session_name"]) == ("echo danger-$((6*7))", "bot", "sh")
    assert (item["detail"]["verb"], item["detail"]["why"]) == ("exec", "to ship it")
    assert b"danger" not in read_all(shell)
    assert hold("answer", item["id"], "--approve").code == 0
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, out) == (0, "danger-42\n"), err
    assert [k for k in kinds(hold) if k in ("ask", "approve")] == ["ask", "approve"]


def test_a_no_and_no_answer_in_time_are_exit_4_and_nothing_runs(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    asked = bot.begin("exec", "sh", "--", "echo danger")
    item = approval(hold)
    assert hold("answer", item["id"], "--deny", "--why", "not today").code == 0
    _, err = asked.communicate(timeout=60)
    assert (asked.returncode, "said no" in err, err.count("\n")) == (4, True, 1)
    rule(hold, RULE.replace("120s", "0.2s"))
    late = bot("exec", "sh", "--", "echo danger")
    assert (late.code, "in time" in late.err) == (4, True)
    assert b"danger" not in read_all(shell)
    assert [k for k in kinds(hold) if k in ("deny", "approve")] == ["deny", "deny"]


def test_control_characters_cannot_hide_what_will_run(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    bot.begin("exec", "sh", "--", "echo danger\r\x1b[2Kecho nice \u202e\nrm x")
    item = approval(hold)
    assert item["text"] == "echo danger⟨U+000D⟩⟨U+001B⟩[2Kecho nice ⟨U+202E⟩⏎\nrm x"
    with AttachedTerminal(hold, "answer", item["id"]) as terminal:
        terminal.shows("approve? [y/N]")
        assert "echo danger⟨U+000D⟩⟨U+001B⟩[2Kecho nice" in terminal.screen.text()
        terminal.type(b"n\r")
        assert terminal.wait() == 0
    assert hold.host.asked(item["id"]).state == "denied"


def test_no_agent_approves_anything(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    bot.begin("exec", "sh", "--", "echo danger")
    item = approval(hold)
    assert bot("answer", item["id"], "--approve").code == 4
    assert hold("operator", "add", "other", "--kind", "agent", "--grant", VERBS).code == 0
    assert hold("answer", item["id"], "--approve", HOLDFAST_OPERATOR="other").code == 3  # it does not see it
    assert hold.host.asked(item["id"]).state == "open"
    assert b"danger" not in read_all(shell)


def test_an_agent_in_a_humans_shell_is_still_an_agent(
    hold: HomeForTests, bot: Bot, shell: Session, tmp_path: Path
) -> None:
    """It types into a person's shell, which then calls as that person: rules and answers see through that."""
    other = hold.run("bash", "--norc", name="other")
    assert other.wait(input=True, timeout=30).event != "timeout"
    script = tmp_path / "script"
    script.write_text(f"exec {shlex.join(HOLD)} exec other -- echo danger > {tmp_path}/out 2>&1\n")
    rule(hold)
    assert bot("exec", "sh", "--", f"sh {script} &").code == 0
    item = approval(hold)
    assert (item["asker"]["name"], item["session_name"]) == ("bot", "other")
    answering = tmp_path / "answering"
    answering.write_text(f"{shlex.join(HOLD)} answer {item['id']} --approve; echo $? > {tmp_path}/code\n")
    assert bot("exec", "sh", "--", f"sh {answering}").code == 0
    assert (tmp_path / "code").read_text() == "3\n"  # it is not shown to one who may be the asker
    assert hold("answer", item["id"], "--deny").code == 0
    assert b"danger" not in read_all(other)


def test_an_asker_that_leaves_takes_its_approval_along(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    asked = bot.begin("exec", "sh", "--", "echo danger")
    item = approval(hold)
    asked.kill()
    until(lambda: hold.host.asked(item["id"]).state == "gone", 30)
    assert hold("answer", item["id"], "--approve").code == 5


def test_an_approval_and_its_asker_survive_the_daemon(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    asked = bot.begin("exec", "sh", "--", "echo danger-$((6*7))")
    item = approval(hold)
    hold.kill_daemon()
    again = approval(hold)
    assert again["id"] == item["id"]
    assert hold("answer", item["id"], "--approve").code == 0
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, out) == (0, "danger-42\n"), err


# -- run and send


def test_starting_something_shows_command_folder_environment_and_who_it_acts_as(hold: HomeForTests, bot: Bot) -> None:
    rule(hold)
    asked = bot.begin(
        "run",
        "-d",
        "-n",
        "new",
        "--cwd",
        "/",
        "-e",
        "LD_PRELOAD=x.so",
        "-e",
        "API_KEY=hunter2",
        "--",
        "sh",
        "-c",
        "echo danger; cat",
    )
    item = approval(hold)
    assert item["text"] == "sh -c 'echo danger; cat'"
    detail = item["detail"]
    assert (detail["verb"], detail["cwd"], detail["acts_as"], detail["name"]) == ("run", "/", "bot", "new")
    assert detail["env"]["LD_PRELOAD"] == "x.so"
    assert detail["env"]["API_KEY"] == "(hidden, 7 characters)"
    assert hold("ls", "--json").json == []
    assert hold("answer", item["id"], "--approve").code == 0
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, "new" in out) == (0, True), err
    assert [s["name"] for s in hold("ls", "--json").json] == ["new"]


def test_text_is_sent_after_the_yes_and_pieces_of_lines_are_asked_about_too(
    hold: HomeForTests, bot: Bot, shell: Session
) -> None:
    rule(hold)
    assert bot("send", "sh", "echo nice", "--enter").code == 0
    assert shell.wait(text=r"[\r\n]nice\r", timeout=60).event == "text"
    asked = bot.begin("send", "sh", "echo dan")
    item = approval(hold)
    assert (item["text"], item["detail"]["verb"]) == ("echo dan", "send")
    assert hold("answer", item["id"], "--approve").code == 0
    assert asked.wait(60) == 0
    asked = bot.begin("send", "sh", "--key", "Up")
    item = approval(hold)
    assert item["text"].startswith("⟨U+001B⟩")
    assert hold("answer", item["id"], "--deny").code == 0
    assert asked.wait(60) == 4
    assert bot("send", "sh", "--secret", "--stdin", stdin=b"echo danger\r").code == 4  # nobody can look at a secret


# -- around it


def test_a_channel_to_type_through_is_refused_and_watching_is_not(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    theirs = bot.host.session("sh")
    with pytest.raises(HoldfastError) as e:
        theirs.open()
    assert e.value.exit_status == 4
    theirs.open(read_only=True).close()
    with pytest.raises(HoldfastError):
        bot.host.call_fd("attach", session="sh")
    rule(hold, '[[approve]]\nsession = "sh"\n')
    with pytest.raises(HoldfastError):
        theirs.rename("elsewhere")
    mine = shell.open()
    mine.send(b"echo me\r")
    mine.close()
    assert shell.wait(text=r"[\r\n]me\r", timeout=60).event == "text"


def test_a_rule_closes_the_channels_that_were_open_before_it(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    theirs = bot.host.session("sh").open()
    theirs.send(b"echo one\r")
    assert shell.wait(text=r"[\r\n]one\r", timeout=60).event == "text"
    rule(hold)

    def closed() -> bool:
        try:
            theirs.send(b"\r")
        except (HoldfastError, OSError):
            return True
        return False

    until(closed, 30)
    theirs.close()
    with pytest.raises(HoldfastError) as e:
        bot.host.session("sh").open()
    assert e.value.exit_status == 4


def test_a_broken_file_stops_agents_and_nobody_else(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold, "[[approve]]\npatern = 1\n")
    refused = bot("exec", "sh", "--", "echo hello")
    assert (refused.code, "config.toml" in refused.err) == (4, True)
    assert hold("exec", "sh", "--", "echo hello").out == "hello\n"
    rule(hold, "")
    assert bot("exec", "sh", "--", "echo hello").out == "hello\n"


# -- prompts, questions and controls of agents


def test_an_agent_asks_and_gets_its_answer_and_sees_nobody_elses(hold: HomeForTests, bot: Bot) -> None:
    mine = hold.host.ask("For people only?")
    asked = bot.begin("ask", "Which branch?", "--option", "main", "--wait", "120")
    item = until(lambda: [i for i in hold.host.call("inbox")["items"] if i["asker"]["name"] == "bot"], 30)[0]
    assert [i["id"] for i in bot("inbox", "--json").json] == [item["id"]]
    assert bot("answer", mine.id, "x").code == 3
    assert bot("answer", item["id"], "main").code == 4  # not by itself
    assert hold("answer", item["id"], "main").code == 0
    out, _ = asked.communicate(timeout=60)
    assert (asked.returncode, out) == (0, "main\n")


def test_an_agent_answers_a_prompt_where_it_may_type(hold: HomeForTests, bot: Bot) -> None:
    s = hold.run("python3", "-c", "print('hello', input('name? ')); input()", name="ask")
    item = approval(hold, "input")
    answered = bot("answer", item["id"], "bot")
    assert answered.code == 0, answered.err
    assert s.wait(text="hello bot", timeout=30).event != "timeout"
    assert hold("operator", "add", "viewer", "--kind", "agent", "--grant", "view").code == 0
    item = approval(hold, "input")
    assert hold("answer", item["id"], "x", HOLDFAST_OPERATOR="viewer").code == 4
    assert hold("operator", "add", "blind", "--kind", "agent", "--grant", "view", "--session", "nothing*").code == 0
    assert hold("answer", item["id"], "x", HOLDFAST_OPERATOR="blind").code == 3


def test_asking_for_what_a_human_holds_is_an_item_and_the_yes_hands_over(
    hold: HomeForTests, bot: Bot, shell: Session
) -> None:
    assert hold("take", "sh").code == 0
    refused = bot("take", "sh", "--why", "the build waits")
    assert refused.code == 5
    item = approval(hold, "control_request")
    assert item["id"] in refused.err
    assert (item["text"], item["asker"]["name"]) == ("the build waits", "bot")
    assert bot("take", "sh").code == 5
    assert approval(hold, "control_request")["id"] == item["id"]  # asking again is asking once
    assert shell.status().controls.kind == "human"
    assert hold("answer", item["id"], "--approve", "--why", "go on").code == 0
    controls = shell.status().controls
    assert (controls.kind, controls.name) == ("agent", "bot")
    hands = [e for e in hold("timeline", "sh", "--json").json if e["kind"] == "hand"]
    assert [h["to"]["name"] for h in hands] == ["bot"]


def test_a_no_leaves_the_controls_and_a_release_ends_the_request(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    assert hold("take", "sh").code == 0
    assert bot("take", "sh").code == 5
    item = approval(hold, "control_request")
    assert hold("answer", item["id"], "--deny").code == 0
    assert shell.status().controls.kind == "human"
    assert bot("take", "sh").code == 5
    second = approval(hold, "control_request")
    assert second["id"] != item["id"]
    assert hold("release", "sh").code == 0
    until(lambda: hold.host.asked(second["id"]).state == "gone", 30)
    assert bot("take", "sh").code == 0


def test_who_answered_is_in_the_journal(hold: HomeForTests, bot: Bot, shell: Session) -> None:
    rule(hold)
    bot.begin("exec", "sh", "--", "echo danger")
    item = approval(hold)
    assert hold("answer", item["id"], "--deny", "--why", "not today").code == 0
    entries = [e for e in json.loads(hold("timeline", "--json").out) if e.get("ask") == item["id"]]
    assert [(e["kind"], e["operator_kind"]) for e in entries] == [("ask", "agent"), ("deny", "human")]
    assert entries[1]["why"] == "not today"


def test_one_yes_is_for_one_run_however_often_the_request_is_sent(
    hold: HomeForTests, bot: Bot, shell: Session, tmp_path: Path
) -> None:
    rule(hold)
    seen = tmp_path / "seen"
    wanted = {
        "command": ["sh", "-c", f"echo danger >> {seen}"],
        "cwd": str(tmp_path),
        "env": hold.env,
        "name": "job",
        "request": "req_once",
        "size": [80, 24],
    }
    asked: dict[str, dict[str, Any]] = {
        "exec": {"session": "sh", "words": [f"echo danger >> {seen}"], "exec_id": "exe_once"},
        "run": wanted,
    }
    for count, (op, request) in enumerate(asked.items(), 1):
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(bot.host.call, op, **request)
            hold.host.answer(approval(hold)["id"], approve=True)
            running.result(60)
        wanted_lines = "danger\n" * count
        until(lambda: seen.exists() and seen.read_text() == wanted_lines, 30)  # noqa: B023  (asked at once)
    job = hold.host.session("job")
    assert job.wait(exit=True, timeout=60).event != "timeout"
    until(lambda: job.status().state == "exited", 30)
    bot.host.call("run", **wanted)  # it is there: nothing is started
    job.remove()
    for op, request in asked.items():
        with pytest.raises(HoldfastError) as e:
            bot.host.call(op, **request)
        assert e.value.code == "conflict", op
    assert seen.read_text() == "danger\n" * 2


def test_a_restart_needs_the_same_yes_as_a_start(hold: HomeForTests, bot: Bot) -> None:
    """The session is a person's, and ended before the rule was written."""
    assert hold.run("sh", "-c", "echo danger", name="job").wait(exit=True, timeout=60).event != "timeout"
    until(lambda: hold.host.session("job").status().state == "exited", 30)
    rule(hold)
    again = bot.begin("restart", "job")
    item = approval(hold)
    assert "echo danger" in item["text"]
    hold.host.answer(item["id"], approve=False)
    assert again.wait(60) == 4
    assert hold.host.session("job").status().generation == 1
