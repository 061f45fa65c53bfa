"""The console's API over a real port: log in, look, act, and both sockets."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.console.http import openapi
from holdfast.console.live import messages_out
from holdfast.model.errors import HoldfastError
from holdfast.model.limits import VIEW_UNACKED_BYTES
from tests.support.console import Browser
from tests.support.home import HOLD, HomeForTests, alive, read_all, until, until_async
from tests.support.operators import acting_as, enrol
from tests.support.web import serve, web_pid

pytestmark = pytest.mark.home("file")


@pytest.fixture
def browser(hold: HomeForTests) -> Iterator[Browser]:
    made = Browser(hold, serve(hold))
    yield made
    made.close()


def test_a_browser_logs_in_and_sees_who_it_is(hold: HomeForTests, browser: Browser) -> None:
    me = browser.get("/api/me")
    assert me["operator"]["kind"] == "human"
    assert me["host"]["id"] == hold.host.call("ping")["host"]["id"]
    assert me["grants"]


def test_a_session_is_started_typed_into_stopped_and_removed(hold: HomeForTests, browser: Browser) -> None:
    made = browser.post("/api/sessions", status=201, command=["cat"], name="kitten", why="a test")
    assert made["name"] == "kitten"
    assert alive(made["pid"])
    assert [s["name"] for s in browser.get("/api/sessions")] == ["kitten"]
    browser.post("/api/sessions/kitten/send", text="meow", enter=True)
    assert hold.host.session("kitten").wait(text="meow\r?\nmeow", start=0, timeout=60).event == "text"
    assert browser.get("/api/sessions")[0]["last_line"] == "meow"
    assert "meow" in browser.get("/api/sessions/kitten/screen")["text"]
    assert browser.get(f"/api/sessions/{made['id']}")["processes"]
    assert browser.post("/api/sessions/kitten/rename", name="cat")["name"] == "cat"
    assert browser.post("/api/sessions/cat/stop", grace_s=5)["state"] == "exited"
    assert browser.get("/api/sessions") == []
    assert [s["name"] for s in browser.get("/api/sessions", all="true")] == ["cat"]
    kinds = [e["kind"] for e in browser.get("/api/sessions/cat/timeline")["entries"]]
    assert {"start", "send", "stop", "ended"} <= set(kinds)
    browser.delete("/api/sessions/cat")
    assert browser.get("/api/sessions", all=1) == []


async def test_a_terminal_is_restored_and_goes_on_live(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "--norc", name="shell")
    session.send("echo before-$((40+2))\r")
    assert session.wait(text="before-42", start=0, timeout=60).event != "timeout"
    async with browser.socket("/api/sessions/shell/attach?client=one") as socket:
        about = await socket.text("attached")
        assert about["session"] == session.id
        await socket.sees(b"before-42")
        assert socket.restored is not None
        await socket.type(b"echo after-$((1+1))\r")
        await socket.sees(b"after-2")
        assert (await socket.text("controls", mine=True))["holder"] == browser.get("/api/me")["operator"]["id"]
        assert (await socket.text("typed"))["seq"] == 1
        await socket.type(b"exit 7\r")
        assert (await socket.text("exit"))["exit"]["code"] == 7
        assert await socket.closed() == 1000


async def test_a_view_goes_on_at_its_byte_after_any_drop(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "--norc", name="shell")
    path = "/api/sessions/shell/attach?client=tab"
    async with browser.socket(path) as socket:
        await socket.type(b"for i in {1..1000}; do echo line-$i; done\r", seq=1)
        await socket.until(lambda: b"line-700" in socket.output)
        at, before = socket.offset, socket.output
        start = at - len(before)
    async with browser.socket(f"{path}&from={at}") as socket:
        await socket.type(
            b"for i in {1001..2000}; do echo line-$i; done\r", seq=2
        )  # the first view may have had all before
        await socket.until(lambda: b"line-2000\r\n" in socket.output)
        assert socket.restored is None, "it went on, nothing was drawn anew"
        seen = before + socket.output
        assert seen == read_all(session)[start : start + len(seen)], "no byte lost, none twice"


async def test_input_that_is_sent_again_is_typed_once(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("cat", name="kitten")
    path = "/api/sessions/kitten/attach?client=tab"
    async with browser.socket(path) as socket:
        await socket.type(b"once\r", seq=1)
        await socket.text("typed", seq=1)
    async with browser.socket(path) as socket:
        await socket.type(b"once\r", seq=1)
        await socket.text("typed", seq=1)
        await socket.type(b"end\r", seq=2)
        await socket.sees(b"end\r\nend\r\n")
    async with browser.socket("/api/sessions/kitten/attach?client=other") as socket:
        await socket.type(b"again\r", seq=1)
        await socket.sees(b"again\r\nagain\r\n")
    assert read_all(session) == b"once\r\nonce\r\nend\r\nend\r\nagain\r\nagain\r\n"


@pytest.mark.home("own")
async def test_a_view_goes_on_while_the_host_is_dead(hold: HomeForTests, browser: Browser) -> None:
    hold.run("cat", name="kitten")
    async with browser.socket("/api/sessions/kitten/attach?client=tab") as socket:
        await socket.text("controls")
        web = web_pid(hold)
        hold.kill_daemon()
        await socket.type(b"nobody home\r")
        await socket.sees(b"nobody home\r\nnobody home\r\n")
    assert web is not None
    assert alive(web)
    assert [s["name"] for s in browser.get("/api/sessions")] == ["kitten"], "and what comes next brings it back"


@pytest.mark.home("own")
async def test_a_view_goes_on_after_the_web_process_died(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("cat", name="kitten")
    path = "/api/sessions/kitten/attach?client=tab"
    async with browser.socket(path) as socket:
        await socket.type(b"before\r", seq=1)
        await socket.sees(b"before\r\nbefore\r\n")
        at = socket.offset
        web = web_pid(hold)
        assert web is not None
        os.kill(web, signal.SIGKILL)
        await socket.closed()
    session.send("meanwhile\r")
    await until_async(lambda: web_pid(hold) not in (None, web), 60)
    async with browser.socket(f"{path}&from={at}") as socket:
        await socket.type(b"before\r", seq=1)
        await socket.type(b"after\r", seq=2)
        await socket.sees(b"after\r\nafter\r\n")
        assert socket.output == b"meanwhile\r\nmeanwhile\r\nafter\r\nafter\r\n"


async def test_a_browser_that_shows_nothing_slows_nobody_and_is_skipped_ahead(
    hold: HomeForTests, browser: Browser
) -> None:
    session = hold.run("bash", "--norc", name="flood")
    async with browser.socket("/api/sessions/flood/attach?client=slow") as slow:
        await slow.text("controls")
        slow.acks = False
        await slow.type(b"yes 'a line of the flood' | head -c 20000000; echo the-$((40+2))-end\r")
        assert session.wait(text="the-42-end", start=0, timeout=90).event != "timeout"
        got = 0

        def enough() -> bool:
            nonlocal got
            got = max(got, len(slow.output))
            return got >= VIEW_UNACKED_BYTES

        await slow.until(enough)
        assert got < 3 * VIEW_UNACKED_BYTES, "what is on its way is bounded"
        slow.acks = True
        await slow.say("ack", offset=slow.offset)
        await slow.until(lambda: slow.restored is not None and b"the-42-end" in slow.restored + slow.output)
        await slow.type(b"echo and-$((1+1))-on\r")
        await slow.sees(b"and-2-on")
    text = str(hold.host.session("flood").screen().text)
    assert "and-2-on" in text


@pytest.mark.home("own")
async def test_the_controls_move_between_people_and_agents_and_everybody_is_told(
    hold: HomeForTests, browser: Browser
) -> None:
    hold.run("cat", name="kitten")
    enrol(hold, "claude", verbs=["view", "type", "request_control"], sessions=["*"])
    agent = acting_as(hold, "claude")
    agent.call("take", session="kitten")
    async with browser.socket("/api/sessions/kitten/attach?client=tab&cols=100&rows=30") as socket:
        held = await socket.text("controls")
        assert (held["name"], held["holder_kind"], held["mine"]) == ("claude", "agent", False)
        await socket.type(b"not mine\r")
        assert (await socket.text("refused", seq=1))["error"]["code"] == "conflict"
        await socket.say("resize", cols=50, rows=20)
        await socket.say("take", why="my turn")
        assert (await socket.text("controls", mine=True))["epoch"] > held["epoch"]
        assert await socket.text("size") == {"kind": "size", "cols": 50, "rows": 20}
        await socket.type(b"mine\r", seq=2)
        await socket.sees(b"mine\r\nmine\r\n")
        assert b"not mine" not in socket.output
        browser.post("/api/sessions/kitten/hand", to="claude", note="your turn")
        assert (await socket.text("controls", mine=False))["name"] == "claude"
        agent.call("hand", session="kitten", to=browser.get("/api/me")["operator"]["id"], note="done")
        handed = await socket.text("handed")
        assert (handed["by"]["name"], handed["note"]) == ("claude", "done")
        await socket.say("release")
        assert (await socket.text("controls", holder=None))["mine"] is False
    agent.close()


@pytest.mark.home("own")
async def test_a_takeover_stays_when_the_page_is_gone_and_is_there_when_it_comes_back(
    hold: HomeForTests, browser: Browser
) -> None:
    session = hold.run("cat", name="kitten")
    enrol(hold, "claude", verbs=["view", "type", "request_control"], sessions=["*"])
    path = "/api/sessions/kitten/attach?client=phone"
    with acting_as(hold, "claude") as agent:
        agent.call("take", session="kitten")
        async with browser.socket(path) as socket:
            await socket.text("controls")
            await socket.say("take")
            held = await socket.text("controls", mine=True)
            assert held["from"]["name"] == "claude"
        await until_async(lambda: not session.status().attached)
        with pytest.raises(HoldfastError, match="holds the controls since"):
            agent.session("kitten").send("rm -rf build", enter=True)
        async with browser.socket(path) as socket:
            assert (await socket.text("controls", mine=True))["epoch"] == held["epoch"]
        browser.post("/api/sessions/kitten/hand", note="done")
        assert session.status().controls.name == "claude"


@pytest.mark.home("own")
async def test_the_page_takes_from_another_person_only_after_asking_or_by_force(
    hold: HomeForTests, browser: Browser
) -> None:
    hold.run("cat", name="kitten")
    enrol(hold, "grace", "human", verbs=["view", "type", "request_control"], sessions=["*"])
    with acting_as(hold, "grace") as grace:
        for force in (False, True):
            grace.call("take", session="kitten", force=True)
            async with browser.socket("/api/sessions/kitten/attach?client=tab") as socket:
                await socket.text("controls", mine=False)
                await socket.say("take", force=force)
                if not force:
                    (item,) = await until_async(
                        lambda: [i for i in grace.call("inbox")["items"] if i["kind"] == "control_request"]
                    )
                    grace.answer(item["id"], approve=False)
                    assert "said no" in (await socket.text("refused"))["error"]["message"]
                else:
                    await socket.text("controls", mine=True)


async def test_only_who_acts_from_a_window_sizes_the_terminal(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("cat", name="kitten", size=(80, 24))
    path = "/api/sessions/kitten/attach"
    async with browser.socket(f"{path}?client=a&cols=120&rows=40") as acts, browser.socket(f"{path}?client=b") as looks:
        await acts.text("controls")
        await looks.text("controls")
        await looks.say("resize", cols=30, rows=10)
        await acts.type(b"hello\r")
        await acts.text("size", cols=120, rows=40)
        await looks.text("size", cols=120, rows=40)
        await looks.say("resize", cols=31, rows=11)
        await acts.say("resize", cols=90, rows=25)
        await looks.text("size", cols=90, rows=25)
    pty = session.status().pty
    assert pty is not None
    assert (pty.cols, pty.rows) == (90, 25)


async def test_what_a_program_asks_of_its_terminal_is_not_asked_of_the_browser(
    hold: HomeForTests, browser: Browser
) -> None:
    questions = r"\033[c\033[6n\033]52;c;aGVsbG8=\007\033]10;?\007\033[>q\005"
    session = hold.run(
        "bash", "--norc", "-c", f"read -r x; printf 'a{questions}b\\033[31mred\\n'; exec cat", name="asks"
    )
    async with browser.socket("/api/sessions/asks/attach?client=tab") as socket:
        await socket.type(b"go\r")
        await socket.sees(b"red")
        assert b"ab\x1b[31mred" in socket.output
        await socket.until(lambda: socket.offset == session.status().output.end)


async def test_an_unfinished_escape_sequence_is_neither_shown_twice_nor_lost(
    hold: HomeForTests, browser: Browser
) -> None:
    session = hold.run(
        "bash", "--norc", "-c", r"printf 'one\033[3'; read -r x; printf '1mtwo\n'; exec cat", name="half"
    )
    assert session.wait(text="one", start=0, timeout=60).event != "timeout"
    path = "/api/sessions/half/attach?client=tab"
    async with browser.socket(path + "&from=0") as socket:
        await socket.until(lambda: socket.output == b"one")
        at = socket.offset
    async with browser.socket(f"{path}&from={at}") as socket:
        await socket.type(b"go\r")
        await socket.sees(b"two")
        assert socket.output.startswith(b"\x1b[3")
        assert b"1mtwo" in socket.output


async def test_an_ended_session_shows_its_last_screen(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "-c", "echo the last words; exit 3", name="over")
    assert session.wait(exit=True, timeout=60).event != "timeout"
    until(lambda: session.status().state == "exited", 60)
    async with browser.socket("/api/sessions/over/attach") as socket:
        await socket.sees(b"the last words")
        assert (await socket.text("exit"))["exit"]["code"] == 3
        assert await socket.closed() == 1000


async def test_a_program_on_pipes_shows_the_end_of_what_it_said(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "-c", "echo out; echo err >&2; exec cat", name="piped", pipes=True)
    assert session.wait(text="err", start=0, timeout=60).event != "timeout"
    async with browser.socket("/api/sessions/piped/attach?client=tab") as socket:
        assert (await socket.text("attached"))["session_kind"] == "pipes"
        await socket.sees(b"err\n")
        assert b"out\n" in socket.output
        await socket.type(b"typed\n")
        await socket.sees(b"typed\n")


@pytest.mark.home("own")
async def test_everything_that_goes_on_is_told_live(hold: HomeForTests, browser: Browser) -> None:
    async with browser.socket("/api/live") as live:
        assert (await live.text("sessions"))["sessions"] == []
        session = hold.run("bash", "--norc", "-c", "read -p 'Name? ' n; echo hello $n; exec cat", name="asks")
        told = await live.text("sessions")
        assert [s["name"] for s in told["sessions"]] == ["asks"]

        def asking() -> bool:
            return any(i["session"] == session.id for t in live.texts if t["kind"] == "inbox" for i in t["items"])

        await live.until(asking)
        item = next(i for t in live.texts if t["kind"] == "inbox" for i in t["items"] if i["session"] == session.id)
        assert item["text"].startswith("Name?")
        browser.post(f"/api/inbox/{item['id']}/answer", text="you")
        assert session.wait(text="hello you", start=0, timeout=60).event != "timeout"

        def said() -> bool:
            return any(
                s["last_line"] == "hello you" for t in live.texts if t["kind"] == "sessions" for s in t["sessions"]
            )

        await live.until(said)
        hold.kill_daemon()
        session.stop(0)
        assert (await live.text("gone"))["id"] == session.id, "also past a daemon that died"
        await live.text("ping")


# -- looking back, and work


@pytest.mark.home("own")
def test_a_recording_has_all_bytes_with_times_and_marks_for_who_did_what(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "--norc", name="shell")
    assert session.exec("echo good").exit_code == 0
    assert session.exec("false").exit_code == 1
    run = hold.host.work.run(task="by-hand")
    run.exec("step", session, "echo from-a-step")
    run.checkpoint(goal="a mark")
    run.finish()
    page = browser.get("/api/sessions/shell/recording")
    said = [e for e in page["events"] if e["kind"] == "output"]
    data = b"".join(base64.b64decode(e["data"]) for e in said)
    assert data == read_all(session)[: len(data)]
    assert b"good" in data
    assert [e["offset"] for e in said] == [
        sum(len(base64.b64decode(x["data"])) for x in said[:n]) for n in range(len(said))
    ]
    assert page["events"][0]["kind"] == "size"
    marks = browser.get("/api/sessions/shell/marks")
    commands = {m["text"].partition("“")[2].partition("”")[0]: m["exit_code"] for m in marks if m["kind"] == "command"}
    assert (commands["echo good"], commands["false"]) == (0, 1)
    kept = [m for m in marks if m["kind"] == "checkpoint"]
    assert kept
    assert kept[-1]["run"] == run.id
    assert all(0 <= m["offset"] <= page["end"] for m in marks if m["offset"] is not None)


@pytest.mark.home("own")
def test_three_lines_tell_what_happened_meanwhile(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "--norc", name="shell")
    session.exec("echo meanwhile")
    hold.host.work.tasks.init("demo", ["plan"], root=str(hold.path))
    hold.host.work.tasks.add("Think", id="1", project="demo")
    found = browser.get("/api/away", since="1h")["items"]
    shell = next(i for i in found if i["id"] == session.id)
    assert len(shell["lines"]) == 3
    assert "ran 1 command" in shell["lines"][0]
    assert "prompt" in shell["lines"][1]
    assert shell["lines"][2].startswith("printed ")
    assert shell["offset"] == 0
    assert next(i for i in found if i["kind"] == "task")["name"] == "Think"
    assert browser.get("/api/away", since="2999-01-01T00:00:00Z")["items"] == []


def _works(hold: HomeForTests) -> dict[str, str]:
    """A project with something of everything; what to put into the paths."""
    work = hold.host.work
    work.tasks.init("demo", ["plan", "build"], root=str(hold.path))
    work.tasks.add("Write", id="1", project="demo", contract={"goal": "a file", "verification": ["true"]})
    work.tasks.add("Ship", id="2", project="demo", after=["1"])
    work.tasks.start("demo/1")
    run = work.run(task="demo/1")
    run.note("because", kind="decision")
    run.checkpoint(goal="a", current_step=1)
    run.checkpoint(goal="b", current_step=2)
    run.put("notes/out.txt", b"kept")
    run._call("step_begin", key="mail/1", effect="unsafe", args=[], action="send")
    run.close()
    work.run(task="demo/1").close()  # whoever takes over finds the step begun, and nobody knows how it ended
    work.tasks.start("demo/1", take=True)
    return {"project": "demo", "task": "1", "run": run.id, "session": "shell", "name": "notes/out.txt", "seq": "1"}


@pytest.mark.home("own")
def test_every_answer_is_what_the_document_says(hold: HomeForTests, browser: Browser) -> None:
    hold.run("bash", "--norc", name="shell").exec("echo hi")
    words = _works(hold)
    hold.host.ask("Which one?", options=["a", "b"])
    queries: dict[str, dict[str, Any]] = {
        "/api/tasks": {"project": "demo"},
        "/api/away": {"since": "1h"},
        "/api/resume": {"task": "demo/1"},
        "/api/runs/{run}/checkpoints/diff": {"a": 1, "b": 2},
    }
    for route in openapi.TABLE:
        if route.method != "GET":
            continue
        path = re.sub(r"\{(\w+):?\w*\}", lambda m: words[m[1]], route.path)
        done = browser.http.get(path, params=queries.get(route.path))
        assert done.status_code == 200, (path, done.text)
        if route.answer is bytes:
            assert done.content == b"kept"
        else:
            msgspec.json.decode(done.content, type=route.answer)


@pytest.mark.home("own")
def test_a_task_is_worked_on_from_the_page(hold: HomeForTests, browser: Browser) -> None:
    words = _works(hold)
    shown = browser.get("/api/tasks/demo/1")
    assert shown["status"] == "active"
    assert [d["key"] for d in shown["in_doubt"]] == ["mail/1"]
    assert browser.get(f"/api/runs/{words['run']}")["steps"]["in_doubt"] == 1
    done = browser.post(f"/api/runs/{words['run']}/steps/mail/1/settle", outcome="not_done", evidence="no mail came")
    assert done["key"] == "mail/1"
    assert (
        browser.post("/api/tasks/demo/1/block", question="which server?", why="unclear")["question"] == "which server?"
    )
    assert browser.post("/api/tasks/demo/1/unblock", why="the small one")["status"] != "blocked"
    browser.post("/api/tasks/demo/1/start")
    assert browser.post("/api/tasks/demo/1/done")["status"] == "done"
    assert browser.get("/api/projects/demo")["counts"]["done"] == 1
    assert browser.post("/api/tasks/demo/2/cancel")["status"] == "cancelled"
    assert browser.post("/api/tasks/demo/2/explode", status=404)["error"]["code"] == "not_found"


@pytest.mark.home("own")
def test_operators_are_enrolled_and_revoked_from_the_page(hold: HomeForTests, browser: Browser) -> None:
    made = browser.post(
        "/api/operators", status=201, name="helper", kind="agent", verbs=["view"], sessions=["web-*"], ttl="8h"
    )
    assert made["grants"][0]["verbs"] == ["view"]
    assert "helper" in [o["name"] for o in browser.get("/api/operators")]
    assert browser.post(f"/api/operators/{made['id']}/revoke", why="done")["name"] == "helper"
    assert "helper" not in [o["name"] for o in browser.get("/api/operators")]
    assert browser.get("/api/journal/verify")["ok"] is True
    assert {"enrol", "revoke", "login"} <= {e["kind"] for e in browser.get("/api/timeline")["entries"]}


def test_the_document_beside_the_page_is_the_one_that_is_served(hold: HomeForTests, browser: Browser) -> None:
    kept = json.loads(Path("web/openapi.json").read_text())
    assert kept == openapi.document(), "run scripts/openapi"
    assert browser.get("/api/openapi.json") == kept
    printed = hold("web", "openapi")
    assert json.loads(printed.out) == kept


@pytest.mark.home("own")
async def test_the_sockets_say_what_the_document_says(hold: HomeForTests, browser: Browser) -> None:
    hold.run("bash", "--norc", name="shell")
    hold.host.ask("Which one?")
    async with browser.socket("/api/sessions/shell/attach?client=a&cols=90&rows=20") as socket:
        await socket.type(b"true\r")
        await socket.until(lambda: any(t["kind"] == "size" for t in socket.texts))  # a shell that is gone has none
        await socket.type(b"exit\r")
        assert await socket.closed() == 1000
    async with browser.socket("/api/live?all=1") as live:
        await live.until(lambda: {"sessions", "inbox"} <= {t["kind"] for t in live.texts})
    kinds = set()
    for text in (*socket.texts, *live.texts):
        msgspec.convert(text, messages_out.Said)
        kinds.add(text["kind"])
    assert {"attached", "restore", "controls", "typed", "size", "exit", "sessions", "inbox"} <= kinds


@pytest.mark.home("own")
def test_the_examples_of_the_api_run(hold: HomeForTests, tmp_path: Path) -> None:
    url = serve(hold)
    blocks = re.findall(r"^```sh\n(.*?)^```", Path("docs/api.md").read_text(), re.S | re.M)
    assert len(blocks) >= 5
    script = f'set -euo pipefail\nhold() {{ {shlex.join(HOLD)} "$@"; }}\n' + "\n".join(blocks)
    env = {**hold.env, "URL": url, "PYTHONPATH": str(Path("src").resolve())}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"name":"demo"' in done.stdout.replace(" ", "")
    assert (tmp_path / "report.html").read_text().startswith("<!")


@pytest.mark.home("own")
def test_hold_web_link_says_when_nothing_is_served(hold: HomeForTests) -> None:
    done = hold("web", "link")
    assert done.code == 3
    assert "hold up --web" in done.err
