"""Commands that act: send, wait, exec-result, kill, stop, restart, rm, rename, take, release, prune."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast.client._sync.host import Session
from tests.support.attached import AttachedTerminal
from tests.support.child import running
from tests.support.home import HOLD, HomeForTests, read_all, until

pytestmark = pytest.mark.home("file")


def echoing(hold: HomeForTests, name: str = "c") -> Session:
    """A session that prints what it reads, once."""
    s = hold.run("sh", "-c", "stty -echo; echo ready; exec cat", name=name)
    assert s.wait(input=True, timeout=30).event != "timeout"
    return s


def after(s: Session) -> bytes:
    return read_all(s).partition(b"ready\r\n")[2]


# -- send ------------------------------------------------------------------------------------------------------------


def test_send_types_text_keys_and_return_in_that_order(hold: HomeForTests) -> None:
    s = echoing(hold)
    answer = hold("send", "c", "--json", "one", "--key", "Tab", "--enter")
    assert answer.json["sent"] == 5
    assert s.wait(text="one\t\r\n", timeout=30).event != "timeout"
    assert hold("wait", "c", "--for", "text=one", "--from", str(answer.json["offset"]), "--timeout", "30").code == 0
    quiet = hold("send", "c", "two", "--enter")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_send_takes_text_that_looks_like_an_option_after_two_dashes(hold: HomeForTests) -> None:
    s = echoing(hold)
    assert hold("send", "c", "--enter", "--", "--help").code == 0
    assert s.wait(text="--help", timeout=30).event != "timeout"


def test_send_passes_stdin_byte_for_byte(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty raw -echo; echo ready; head -c 300 | od -An -v -tu1", name="c")
    assert s.wait(text="ready", timeout=30).event != "timeout"
    data = bytes(range(256)) + b"x" * 44
    assert hold("send", "c", "--stdin", stdin=data).code == 0
    assert s.wait(exit=True, timeout=30).event != "timeout"
    printed = read_all(s).partition(b"ready")[2].split()
    assert bytes(int(n) for n in printed) == data


def test_send_streams_more_than_one_frame_of_stdin(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "wc -c", name="c", pipes=True)
    assert hold("send", "c", "--stdin", "--eof", stdin=b"z" * 300_000).code == 0
    assert s.wait(exit=True, timeout=30).event != "timeout"
    assert read_all(s).strip() == b"300000"


def test_return_on_pipes_is_a_newline_and_in_a_terminal_what_the_key_sends(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "read a; read b; read c; echo $a$b$c | od -c", name="c", pipes=True)
    assert hold("send", "c", "x", "--enter", "--json").json["sent"] == 2
    assert hold("send", "c", "--key", "y", "--key", "Enter").code == 0
    s.send("z", enter=True)  # as MCP and HTTP do
    assert s.wait(exit=True, timeout=30).event != "timeout"
    assert read_all(s).split()[1:5] == [b"x", b"y", b"z", rb"\n"]
    raw = hold.run("sh", "-c", "stty raw -echo; echo ready; head -c 2 | od -An -c", name="t")
    assert raw.wait(text="ready", timeout=30).event != "timeout"
    raw.send(enter=True, keys=["Return"])
    assert raw.wait(exit=True, timeout=30).event != "timeout"
    assert read_all(raw).split()[1:] == [rb"\r", rb"\r"]


def test_the_end_of_input_reaches_the_program(hold: HomeForTests) -> None:
    s = echoing(hold)
    assert hold("send", "c", "--eof").code == 0
    assert s.wait(exit=True, timeout=30).detail["exit"]["code"] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    "words",
    [(), ("",), ("a", "b"), ("pw", "--secret"), ("--key", "NoSuchKey"), ("--secret",), ("--stdin",)],
)
def test_what_cannot_be_sent_is_a_usage_error_and_types_nothing(hold: HomeForTests, words: tuple[str, ...]) -> None:
    s = echoing(hold)
    # In its own session the command has no terminal to ask at.
    done = subprocess.run(
        [*HOLD, "send", "c", *words], env=hold.env, input=b"", capture_output=True, start_new_session=True, check=False
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, b"", 1)
    assert after(s) == b""


@pytest.mark.home("own")
def test_a_secret_is_asked_for_without_echo_and_sent_with_its_return(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty -echo; printf 'Password: '; read p; echo; echo len ${#p}", name="c")
    assert s.wait(input=True, timeout=30).event != "timeout"
    with AttachedTerminal(hold, "send", "c", "--secret") as terminal:
        terminal.shows("secret for c:")
        terminal.type(b"hunter2\r")
        assert terminal.wait() == 0
        assert b"hunter2" not in terminal.raw
    assert s.wait(text="len 7", timeout=30).event != "timeout"
    until(lambda: s.status().state == "exited")  # nothing is written or removed in its folder any more
    assert b"hunter2" not in read_all(s)
    stored = b"".join(p.read_bytes() for p in hold.path.rglob("*") if p.is_file())
    assert b"hunter2" not in stored


def test_a_secret_from_stdin_needs_no_terminal_and_one_return_is_enough(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty -echo; read a; echo one ${#a}; read b; echo two ${#b}", name="c")
    assert s.wait(input=True, timeout=30).event != "timeout"
    assert hold("send", "c", "--secret", "--stdin", stdin=b"hunter2\n").code == 0
    assert s.wait(text="one 7", timeout=30).event != "timeout"
    assert hold("send", "c", "--secret", "--stdin", "--enter", stdin=b"hunter\n").code == 0
    assert s.wait(text="two 6", timeout=30).event != "timeout"


# -- wait ------------------------------------------------------------------------------------------------------------


def test_wait_tells_what_came_true(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "printf 'hello world\\nname? '; read x; exit 3", name="w")
    text = hold("wait", "w", "--for", "text=wor.d", "--json", "--timeout", "30")
    found = text.json
    assert (text.code, found["event"], found["detail"]["match"], found["offset"]) == (0, "text", "world", 11)
    waiting = hold("wait", "w", "--for", "input", "--timeout", "30", "--json").json
    assert (waiting["event"], waiting["detail"]["kind"], waiting["detail"]["prompt"]) == (
        "input",
        "waiting_for_input",
        "name?",
    )
    assert hold("wait", "w", "--for", "quiet=0.1", "--timeout", "30").out == "w: no output for 0.1 s\n"
    s.send("", enter=True)
    ended = hold("wait", "w", "--for", "exit", "--timeout", "30")
    assert (ended.code, ended.out) == (0, "w: exit code 3\n")


def test_wait_is_124_when_the_time_is_up_and_tells_where_to_go_on(hold: HomeForTests) -> None:
    assert hold.run("sh", "-c", "printf abc; cat", name="w").wait(input=True, timeout=30).event != "timeout"
    answer = hold("wait", "w", "--for", "text=never", "--timeout", "0.2", "--json")
    assert (answer.code, answer.json["event"], answer.json["offset"]) == (124, "timeout", 3)
    human = hold("wait", "w", "--for", "exit", "--timeout", "0")
    assert (human.code, human.out) == (124, "")
    assert "--from 3" in human.err


def test_wait_is_1_when_the_session_ends_first(hold: HomeForTests) -> None:
    hold.run("sh", "-c", "exit 4", name="w")
    answer = hold("wait", "w", "--for", "port=65000", "--timeout", "30", "--json")
    assert (answer.code, answer.json["event"], answer.json["detail"]["exit"]["code"]) == (1, "exit", 4)
    human = hold("wait", "w", "--for", "text=x", "--timeout", "30")
    assert (human.code, human.out) == (1, "")
    assert "ended before" in human.err


def test_what_cannot_be_waited_for_is_a_usage_error(hold: HomeForTests) -> None:
    hold.run("cat", name="w")
    for words in (
        (),
        ("--for", "rain"),
        ("--for", "port=x"),
        ("--for", "text=("),
        ("--for", "done="),
        ("--for", "text=x", "--from", "-1"),
        ("--for", "exit", "--timeout", "nan"),
        ("--for", "exit", "--timeout", "-1"),
    ):
        assert hold("wait", "w", *words).code == 2, words
    assert hold("wait", "w", "--for", "done=exe_nope").code == 3


# -- exec-result -----------------------------------------------------------------------------------------------------


def test_a_command_that_goes_on_can_be_fetched_later(hold: HomeForTests) -> None:
    hold.run(name="sh")
    source = "echo begun; read x; echo got $x; (exit 4)"
    exec_id = hold("exec", "sh", "--timeout", "0.5", "--json", "--", source).json["exec_id"]
    hold("wait", "sh", "--for", "input", "--timeout", "30")
    hold("send", "sh", "yes", "--enter")
    assert hold("wait", "sh", "--for", f"done={exec_id}", "--timeout", "30").code == 0
    answer = hold("exec-result", "sh", exec_id, "--json")
    assert answer.code == 0
    assert answer.json.keys() >= {
        "exec_id",
        "state",
        "exit_code",
        "output",
        "start",
        "end",
        "omitted_bytes",
        "duration_ms",
        "cwd",
        "prompt",
    }
    assert (answer.json["state"], answer.json["exit_code"]) == ("exited", 4)
    assert answer.json["output"].startswith("begun\n")
    human = hold("exec-result", "sh", exec_id)
    assert human.out == answer.json["output"]
    assert "code 4" in human.err
    assert hold("exec-result", "sh", exec_id, "--max-output", "6", "--json").json["omitted_bytes"] > 0
    assert hold("exec-result", "sh", "exe_nope").code == 3


# -- signals and ends ------------------------------------------------------------------------------------------------


def test_kill_sends_the_signal_to_whom_it_is_for(hold: HomeForTests) -> None:
    script = "trap 'echo main got USR1' USR1; echo ready; while :; do sleep 0.05; done"
    s = hold.run("sh", "-c", script, name="k")
    assert s.wait(text="ready", timeout=30).event != "timeout"
    answer = hold("kill", "k", "-s", "usr1", "--json").json
    assert (answer["signal"], answer["target"]) == ("SIGUSR1", "main")
    assert s.wait(text="main got USR1", timeout=30).event != "timeout"
    assert hold("kill", "k", "-s", "9").code == 0
    assert s.wait(exit=True, timeout=30).detail["exit"]["signal"] == "SIGKILL"  # type: ignore[index]
    assert hold("kill", "k").code == 5  # it is not running any more
    assert hold("kill", "k", "-s", "NOSUCH").code in (2, 5)
    assert hold("kill", "k", "--to", "nobody").code == 2


def test_stop_ends_several_at_once_and_reports_each_that_failed(hold: HomeForTests) -> None:
    for name in ("a", "b"):
        hold.run("cat", name=name)
    answer = hold("stop", "a", "nope", "b", "-t", "5")
    assert answer.code == 3
    assert sorted(line.split("\t")[0] for line in answer.out.splitlines()) == ["a", "b"]
    assert "nope" in answer.err
    assert {s["state"] for s in hold("ls", "-a", "--json").json} == {"exited"}
    documents = hold("stop", "a", "nope", "--json").json
    assert (documents[0]["name"], documents[1]["error"]["code"]) == ("a", "not_found")


def test_stop_kills_what_ignores_the_request_after_the_grace_time(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "trap '' TERM HUP; echo ready; while :; do sleep 0.1; done", name="s")
    assert s.wait(text="ready", timeout=30).event != "timeout"
    answer = hold("stop", "s", "-t", "0.2", "--json").json
    assert (answer["state"], answer["exit"]["signal"]) == ("exited", "SIGKILL")
    assert hold("stop", "s").code == 0  # it is stopped: nothing to do is no failure
    assert hold("stop", "s", "-t", "soon").code == 2


def test_restart_is_the_next_generation_under_the_same_id(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo here; cat", name="r")
    assert s.wait(input=True, timeout=30).event != "timeout"
    answer = hold("restart", "r", "--json").json
    assert (answer["id"], answer["generation"], answer["state"]) == (s.id, 2, "live")
    assert s.wait(text=r"(?s)here.*here", timeout=30).event != "timeout"


def test_rm_forgets_ended_sessions_and_refuses_live_ones_unless_forced(hold: HomeForTests) -> None:
    s = hold.run("cat", name="live")
    refused = hold("rm", "live")
    assert refused.code != 0
    assert len(refused.err.splitlines()) == 1
    assert "hold stop live" in refused.err
    assert s.status().state == "live"
    assert hold("rm", "-f", "live").code == 0
    assert hold("ls", "-a", "--json").json == []
    assert not (hold.path / "sessions" / s.id).exists()


def test_rename_keeps_the_id_and_checks_the_name(hold: HomeForTests) -> None:
    s = hold.run("cat", name="old")
    hold.run("cat", name="taken")
    assert hold("rename", "old", "new", "--json").json == {"id": s.id, "name": "new"}
    assert hold("rename", "new", "taken").code == 5
    for bad in ("", "a b", "ses_x", "-x", "x" * 100):
        assert hold("rename", "--", "new", bad).code == 2, bad


def test_prune_takes_only_ended_sessions_that_are_old_enough(hold: HomeForTests) -> None:
    hold.run("cat", name="live")
    assert hold.run("true", name="ended").wait(exit=True, timeout=30).event != "timeout"
    until(lambda: hold("status", "ended", "--json").json["state"] == "exited")
    assert hold("prune", "--older-than", "1h", "--json").json == {"removed": []}
    assert [r["name"] for r in hold("prune", "--json").json["removed"]] == ["ended"]
    assert [s["name"] for s in hold("ls", "-a", "--json").json] == ["live"]
    assert hold("prune", "--older-than", "soon").code == 2


def test_take_and_release_move_the_controls_and_raise_the_epoch(hold: HomeForTests) -> None:
    hold.run("cat", name="c")
    first = hold("take", "c", "--json").json["controls"]
    assert first["kind"] == "human"
    assert hold("release", "c", "--json").json["controls"]["holder"] is None
    assert hold("take", "c", "--json").json["controls"]["epoch"] > first["epoch"]
    assert hold("release", "c").code == 0
    assert hold("release", "c").code == 5  # nothing is held


@pytest.mark.home("own")
def test_every_acting_command_takes_a_reason(hold: HomeForTests) -> None:
    hold.run("cat", name="c")
    for words in (
        ("send", "c", "x"),
        ("take", "c"),
        ("release", "c"),
        ("kill", "c", "-s", "CONT"),
        ("rename", "c", "d"),
        ("restart", "d", "-t", "1"),
        ("stop", "d"),
        ("rm", "d"),
        ("prune",),
        ("down",),
    ):
        answer = hold(*words, "--why", "the test wants it")
        assert answer.code == 0, (words, answer.err)


def test_stdin_is_typed_while_it_is_still_coming(hold: HomeForTests) -> None:
    s = echoing(hold)
    with running([*HOLD, "send", "c", "--stdin"], env=hold.env, stdin=subprocess.PIPE) as sender:
        assert sender.stdin is not None
        sender.stdin.write(b"first\n")
        sender.stdin.flush()
        assert s.wait(text="first\r\n", timeout=30).event != "timeout"
        sender.stdin.write(b"second\n")
        sender.stdin.close()
        assert sender.wait(30) == 0
    assert s.wait(text="second\r\n", timeout=30).event != "timeout"


def test_json_errors_are_documents_on_stdout(hold: HomeForTests) -> None:
    for words in (("send", "nope", "x"), ("wait", "nope"), ("kill",), ("rename", "x")):
        answer = hold(*words, "--json")
        error = json.loads(answer.out)["error"]
        assert error.keys() == {"code", "message", "hint"}
        assert answer.err == ""
        assert answer.code in (2, 3)


@pytest.mark.home("own")
def test_a_missing_daemon_is_started_by_any_command(hold: HomeForTests) -> None:
    s = hold.run(sys.executable, "-c", "input()", name="c")
    assert s.wait(input=True, timeout=30).event != "timeout"
    hold.kill_daemon()
    assert hold("send", "c", "--enter").code == 0
    assert hold("wait", "c", "--for", "exit", "--timeout", "30").out == "c: exit code 0\n"
