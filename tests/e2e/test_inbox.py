"""The inbox: what waits for a person, and answers that land where they were meant to, once."""

from __future__ import annotations

import base64
import http.server
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from holdfast.model.errors import HoldfastError
from holdfast.model.home import Home
from tests.support.attached import AttachedTerminal
from tests.support.home import HOLD, HomeForTests, read_all, until
from tests.support.keeperline import KeeperLine
from tests.support.serving import serving

ASK_NAME = "import sys\nx = input('name? ')\nprint('hello', x)\nsys.stdin.read()"
TWO_PROMPTS = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: 1 / 0)
try:
    input("keep? ")
except ZeroDivisionError:
    pass
print("\\ngot [" + input("\\ndelete everything? ") + "]")
"""
ASK_SECRET = "import getpass, sys\nx = getpass.getpass('key: ')\nprint('got', len(x))\nsys.stdin.read()"


def item_of(hold: HomeForTests, session: Session, kind: str) -> dict[str, Any]:
    """The open item of a session, once there is one."""

    def found() -> dict[str, Any] | None:
        items = [i for i in hold.host.call("inbox")["items"] if i["session"] == session.id and i["kind"] == kind]
        return items[0] if items else None

    item: dict[str, Any] = until(found, 30)
    return item


def shows(session: Session, text: str) -> None:
    assert session.wait(text=text, timeout=30).event == "text", read_all(session)


# -- prompts


def test_a_prompt_is_an_item_and_its_answer_reaches_the_program(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    assert (item["text"], item["state"], item["session_name"]) == ("name?", "open", "ask")
    answered = hold("answer", item["id"], "ada", "--json")
    assert (answered.code, answered.json["state"], answered.json["answer"]) == (0, "answered", None)
    shows(s, "hello ada")
    assert hold.host.call("asked", ask=item["id"], timeout=0)["answered_by"]["kind"] == "human"


def test_a_second_answer_is_a_conflict_that_names_the_first(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    assert hold("answer", item["id"], "ada").code == 0
    again = hold("answer", item["id"], "bob")
    assert (again.code, again.out) == (5, "")
    assert hold.host.call("ping")["operator"]["name"] in again.err
    shows(s, "hello ada")
    assert b"bob" not in read_all(s)


def test_of_two_answers_at_the_same_moment_one_lands(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", "while True: print('[' + input('next? ') + ']')", name="ask")
    item = item_of(hold, s, "input")
    tries = [
        subprocess.Popen(
            [*HOLD, "answer", item["id"], f"answer{n}"],
            env=hold.env,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        for n in range(4)
    ]
    codes = sorted(t.wait(60) for t in tries)
    assert codes == [0, 5, 5, 5]
    shows(s, r"\[answer\d\]")
    assert s.wait(input=True, timeout=30).event != "timeout"
    assert read_all(s).count(b"[answer") == 1


def test_an_answer_never_lands_in_another_prompt(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", TWO_PROMPTS, name="two")
    first = item_of(hold, s, "input")
    assert first["text"] == "keep?"
    s.kill("USR1", to="main")  # it leaves the first prompt by itself
    shows(s, "delete everything")
    late = hold("answer", first["id"], "yes")
    assert (late.code, late.out) == (5, "")
    second = item_of(hold, s, "input")
    assert second["id"] != first["id"]
    assert hold.host.call("asked", ask=first["id"], timeout=0)["state"] == "gone"
    assert b"yes" not in read_all(s)
    assert hold("answer", second["id"], "no").code == 0
    shows(s, r"got \[no\]")


def test_a_prompt_that_somebody_typed_into_is_another_prompt(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    s.send("x")
    late = hold("answer", item["id"], "yz")
    assert late.code == 5
    s.send("", enter=True)
    shows(s, "hello x\r")


@pytest.mark.parametrize("answer", [b"one\ntwo", b"one\rtwo", b"\x03", b"\x1b[A", b"x" * 5000])
@pytest.mark.home("file")
def test_an_answer_is_one_line_of_text(hold: HomeForTests, answer: bytes) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    with pytest.raises(HoldfastError) as e:
        hold.host.answer(item["id"], answer)
    assert e.value.code == "invalid"
    assert hold.host.call("asked", ask=item["id"], timeout=0)["state"] == "open"


def test_an_item_and_its_id_survive_the_daemon(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    hold.kill_daemon()
    assert hold("answer", item["id"], "ada").code == 0
    shows(s, "hello ada")
    hold.kill_daemon()
    assert hold("answer", item["id"], "bob").code == 5


def test_an_answer_that_was_typed_by_a_host_that_died_is_an_answer(hold: HomeForTests) -> None:
    """As if it had died between the keeper's yes and its own record."""
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    me = hold.host.call("ping")["operator"]
    status = s.status()
    hold.kill_daemon()
    with KeeperLine(Home(str(hold.path)), s.id, role="host") as line:
        facts: Any = line.act("status")["ok"]
        expect = {"input_at": facts["input_at"], "end": status.output.end, "echo": True}
        data = base64.b64encode(b"ada\r").decode()
        typed = line.act("answer", data=data, expect=expect, exec_id=item["id"], **{"as": me})
        assert "ok" in typed
    shows(s, "hello ada")
    found = hold.host.asked(item["id"])
    assert (found.state, (found.answered_by or {})["operator"]) == ("answered", me["operator"])
    again = hold("answer", item["id"], "bob")
    assert (again.code, me["name"] in again.err) == (5, True)


def test_a_session_that_ends_takes_its_item_along(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    s.stop(0)
    gone = until(lambda: (i := hold.host.asked(item["id"])).state != "open" and i, 30)
    assert gone.state == "gone"
    assert hold("inbox", "--json").json == []
    assert hold("answer", item["id"], "x").code == 5


def test_a_shell_at_its_prompt_waits_for_nobody(hold: HomeForTests) -> None:
    s = hold.run("bash", "--norc", name="sh")
    assert s.wait(input=True, timeout=30).event != "timeout"
    assert hold("inbox", "--json").json == []


# -- the controls


def test_a_human_answers_what_an_agent_left_waiting_and_the_controls_are_free_after_it(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    agent: dict[str, Any] = {"operator": "op_agent", "kind": "agent", "name": "bot"}
    with KeeperLine(Home(str(hold.path)), s.id, **agent, attach=True) as line:
        line.act("take")
        assert until(lambda: s.status().controls.holder) == "op_agent"
        assert hold("answer", item["id"], "ada").code == 0
        shows(s, "hello ada")
        until(lambda: s.status().controls.holder is None)


def test_what_another_human_holds_is_not_typed_into(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    human: dict[str, Any] = {"operator": "op_other", "kind": "human", "name": "eve"}
    with KeeperLine(Home(str(hold.path)), s.id, **human, attach=True) as line:
        line.act("take")
        assert until(lambda: s.status().controls.holder) == "op_other"
        refused = hold("answer", item["id"], "ada")
        assert (refused.code, "eve" in refused.err) == (5, True)
        assert s.status().controls.holder == "op_other"
    assert b"ada" not in read_all(s)
    assert hold.host.asked(item["id"]).state == "open"


# -- secrets


def test_a_secret_comes_from_stdin_and_never_from_the_command_line(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_SECRET, name="key")
    item = item_of(hold, s, "secret")
    refused = hold("answer", item["id"], "hunter2")
    assert (refused.code, "hunter2" in refused.err) == (2, False)
    assert hold("answer", item["id"], "--stdin", stdin=b"hunter2\n").code == 0
    shows(s, "got 7")


def test_a_secret_is_asked_for_without_echo_at_a_terminal(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASK_SECRET, name="key")
    item = item_of(hold, s, "secret")
    with AttachedTerminal(hold, "answer", item["id"]) as terminal:
        terminal.shows("secret for key:")
        terminal.type(b"hunter22\r")
        assert terminal.wait() == 0
        assert b"hunter22" not in terminal.raw
    shows(s, "got 8")


def test_a_question_is_shown_and_answered_at_a_terminal(hold: HomeForTests) -> None:
    asked = hold.host.ask("Which branch?", options=["main", "develop"])
    with AttachedTerminal(hold, "answer", asked.id) as terminal:
        terminal.shows("2. develop")
        terminal.shows("answer:")
        terminal.type(b"2\r")
        assert terminal.wait() == 0
    assert hold.host.asked(asked.id).answer == "develop"


# -- questions


def test_a_question_waits_for_its_answer_also_across_a_new_daemon(hold: HomeForTests) -> None:
    hold.daemon_pid()
    words = [*HOLD, "ask", "Which branch?", "--option", "main", "--option", "develop", "--wait", "60"]
    with subprocess.Popen(words, env=hold.env, stdout=subprocess.PIPE, text=True) as asking:
        (item,) = until(lambda: hold("inbox", "--json").json, 30)
        assert (item["kind"], item["text"], item["options"]) == ("question", "Which branch?", ["main", "develop"])
        hold.kill_daemon()
        assert hold("answer", item["id"], "neither").code == 2
        assert hold("answer", item["id"], "develop").code == 0
        out, _ = asking.communicate(timeout=60)
    assert (asking.returncode, out) == (0, "develop\n")


def test_no_answer_in_time_is_124_and_the_item_stays(hold: HomeForTests) -> None:
    asked = hold("ask", "Anybody?", "--wait", "0.2")
    assert (asked.code, asked.out) == (124, "")
    (item,) = hold("inbox", "--json").json
    assert (item["state"], item["id"] in asked.err) == ("open", True)


def test_a_no_is_an_answer_too(hold: HomeForTests) -> None:
    item = hold("ask", "May I?", "--json").json
    assert hold("answer", item["id"], "--deny", "--why", "not today").code == 0
    assert hold.host.asked(item["id"]).state == "denied"
    assert hold("inbox", "--json").json == []
    assert [i["state"] for i in hold("inbox", "-a", "--json").json] == ["denied"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["answer", "ask_nosuch", "x"], 3),
        (["answer", "", "x"], 3),
        (["ask", ""], 2),
        (["ask", "x", "--option", ""], 2),
        (["ask", "x" * 5000], 2),
        (["ask", "x", "--session", "nosuch"], 3),
        (["ask", "x", "--wait", "soon"], 2),
        (["answer", "a", "b", "--approve"], 2),
        (["inbox", "extra"], 2),
    ],
)
def test_a_mistake_is_one_line_and_its_code(shared: HomeForTests, words: list[str], code: int) -> None:
    done = shared(*words)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done.err


# -- who is woken


def switches(pid: int) -> int:
    """How often the daemon's threads went to sleep of their own will: each time somebody had woken them."""
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            words = (task / "status").read_text().split("voluntary_ctxt_switches:")
        except (FileNotFoundError, ProcessLookupError):
            continue  # a notification was on its way, on a thread of its own, and has arrived
        count += int(words[1].split()[0])
    return count


def rests(pid: int, seconds: float) -> bool:
    """Whether nobody wakes it for so long; said as soon as somebody does."""
    before, end = switches(pid), time.monotonic() + seconds
    while time.monotonic() < end:
        if switches(pid) != before:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.serial
def test_nobody_asking_and_nothing_configured_the_host_is_not_woken(hold: HomeForTests) -> None:
    """Serial: it counts wake-ups. A window of five seconds without one cannot be, where something samples every two."""
    hold.run("python3", "-c", ASK_NAME, name="ask")
    hold.run("sleep", "1000", name="sleeps")
    assert until(lambda: hold("inbox", "--json").json, 30)  # looked at once, on the spot
    hold.host.close()
    pid = int(json.loads((hold.path / "running.json").read_text())["pid"])
    until(lambda: rests(pid, 5.0), 60)


@pytest.mark.serial
def test_a_configured_host_looks_at_what_runs_and_leaves_alone_what_is_blocked(hold: HomeForTests) -> None:
    """Serial: it counts wake-ups."""
    (hold.path / "config.toml").write_text('[notify]\ncommand = "true"\n')
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item_of(hold, s, "input")
    pid = hold.daemon_pid()
    hold.host.close()
    until(lambda: rests(pid, 5.0), 60)
    sleeper = hold.run("sleep", "1000", name="sleeps")
    hold.host.close()
    assert not any(rests(pid, 5.0) for _ in range(3))
    sleeper.stop(0)
    hold.host.close()
    until(lambda: rests(pid, 5.0), 60)


# -- following and notifications


def test_whoever_follows_hears_of_prompts_and_of_their_answers(hold: HomeForTests) -> None:
    hold.daemon_pid()
    with subprocess.Popen(
        [*HOLD, "inbox", "-f", "--json"], env=hold.env, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        try:
            s = hold.run("python3", "-c", ASK_NAME, name="ask")
            new = json.loads(following.stdout.readline())
            assert (new["kind"], new["state"], new["session"]) == ("input", "open", s.id)
            assert hold("answer", new["id"], "ada").code == 0
            over = json.loads(following.stdout.readline())
            assert (over["id"], over["state"]) == (new["id"], "answered")
            hold.kill_daemon()
            asked = hold.host.ask("Still there?")
            # The program reads on, so its next prompt is told as well, before or after.
            assert asked.id in (json.loads(following.stdout.readline())["id"] for _ in range(2))
        finally:
            following.kill()


class Hook(http.server.ThreadingHTTPServer):
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[dict[str, str]] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.server.posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving(Hook()) as server:
        yield server


def test_a_webhook_hears_of_a_prompt_that_nobody_watches(hold: HomeForTests, hook: Hook) -> None:
    s = hold.run("sh", "-c", 'read a; python3 -c "$0"', ASK_SECRET, name="key")
    (hold.path / "config.toml").write_text(f'[notify]\nwebhook = "http://127.0.0.1:{hook.server_address[1]}/"\n')
    first = until(lambda: hook.posts and hook.posts[0], 60)
    assert (first["kind"], first["session"], set(first)) == ("input", "key", {"kind", "session", "ask"})
    s.send("", enter=True)
    second = until(lambda: len(hook.posts) > 1 and hook.posts[-1], 60)
    assert (second["kind"], second["session"]) == ("secret", "key")
    assert hold("answer", second["ask"], "--stdin", stdin=b"12345").code == 0
    shows(s, "got 5")
    asked = hold.host.ask("And now?")
    until(lambda: {"kind": "question", "session": "", "ask": asked.id} in hook.posts, 60)


def test_a_broken_configuration_is_logged_and_stops_nothing(hold: HomeForTests) -> None:
    (hold.path / "config.toml").write_text("[notify\n")
    s = hold.run("python3", "-c", ASK_NAME, name="ask")
    item = item_of(hold, s, "input")
    assert hold("answer", item["id"], "ada").code == 0
    shows(s, "hello ada")
    assert "config.toml is not TOML" in (hold.path / "host.log").read_text()


@pytest.mark.parametrize(
    ("op", "request_"),
    [
        ("answer", {"data": "***"}),
        ("answer", {}),
        ("answer", {"data": "eA==", "approve": True}),
        ("asked", {"timeout": "soon"}),
        ("asked", {"timeout": -1}),
        ("inbox", {"follow": True, "after": "x"}),
        ("inbox", {"follow": True, "after": True}),
        ("ask", {"text": None}),
        ("ask", {"text": "x", "ask": "ask_short"}),
        ("ask", {"text": "x", "options": {"a": 1}}),
    ],
)
@pytest.mark.home("file")
def test_a_malformed_request_is_an_answer_not_an_accident(
    hold: HomeForTests, op: str, request_: dict[str, Any]
) -> None:
    item = hold.host.ask("Which?")
    with pytest.raises(HoldfastError) as e:
        hold.host.call(op, **{**({} if op == "ask" else {"ask": item.id}), **request_})
    assert e.value.code == "invalid"
