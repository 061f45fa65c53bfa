"""`hold logs`: every way to say which part, in every form, live and after the end."""

from __future__ import annotations

import base64
import json
import signal
import subprocess

import pytest

from holdfast.client._sync.host import Session
from tests.support.attached import AttachedTerminal
from tests.support.child import running
from tests.support.home import HOLD, HomeForTests, until

pytestmark = pytest.mark.home("file")


def ended(hold: HomeForTests, script: str, **options: object) -> Session:
    s = hold.run("sh", "-c", script, **{"name": "s", **options})
    assert s.wait(exit=True, timeout=30).event != "timeout"
    until(lambda: s.status().state == "exited")
    return s


def test_a_pipe_gets_plain_text_and_raw_gets_every_byte(hold: HomeForTests) -> None:
    ended(hold, r"printf '\033[31mred\033[0m\n10%%\r100%%\nend'")
    assert hold("logs", "s").out == "red\n100%\nend"
    assert hold("logs", "s", "--raw").raw == b"\x1b[31mred\x1b[0m\r\n10%\r100%\r\nend"


def test_records_put_together_are_the_output(hold: HomeForTests) -> None:
    ended(hold, r"printf 'a\377b\n'; sleep 0.05; printf 'c'")
    records = [json.loads(line) for line in hold("logs", "s", "--json").out.splitlines()]
    assert [r["gap"] for r in records] == [None] * len(records)
    at = 0
    for record in records:
        assert record["offset"] == at
        at += len(base64.b64decode(record["bytes_base64"]))
    assert b"".join(base64.b64decode(r["bytes_base64"]) for r in records) == b"a\xffb\r\nc"


def test_the_part_asked_for_is_the_part_printed(hold: HomeForTests) -> None:
    ended(hold, "for i in 1 2 3 4 5; do echo line $i; done")
    assert hold("logs", "s", "--tail", "2").out == "line 4\nline 5\n"
    assert hold("logs", "s", "--tail", "0").out == ""
    assert hold("logs", "s", "--tail", "99").out.count("\n") == 5
    assert hold("logs", "s", "--from", "8").out == "line 2\nline 3\nline 4\nline 5\n"
    assert hold("logs", "s", "--from", "8", "--tail", "1").out == "line 5\n"
    assert hold("logs", "s", "--grep", "line [24]").out == "line 2\nline 4\n"
    assert hold("logs", "s", "--grep", "line", "--tail", "1").out == "line 5\n"


def test_a_tail_longer_than_a_reading_step_is_complete(hold: HomeForTests) -> None:
    ended(hold, "seq 1 40000")
    lines = hold("logs", "s", "--tail", "30000").out.split()
    assert (lines[0], lines[-1], len(lines)) == ("10001", "40000", 30000)


def test_since_is_a_moment_or_so_long_ago(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo early; read x; echo late; cat", name="s")
    assert s.wait(input=True, timeout=30).event != "timeout"
    between = until(lambda: hold.host.call("status", session=s.id)["observed_at"])
    s.send("", enter=True)
    assert s.wait(text="late", timeout=30).event != "timeout"
    assert "late" in hold("logs", "s", "--since", between).out
    assert "early" not in hold("logs", "s", "--since", between).out
    assert "early" in hold("logs", "s", "--since", "1h").out
    assert hold("logs", "s", "--since", "2100-01-01T00:00:00Z").out == ""


def test_past_the_end_is_nothing_with_a_note_and_below_zero_is_a_mistake(hold: HomeForTests) -> None:
    ended(hold, "echo x")
    past = hold("logs", "s", "--from", "1000")
    assert (past.code, past.out) == (0, "")
    assert "past the end" in past.err
    for words in ("--from -1", "--tail -1", "--since soon", "--grep (", "--from 1 --since 1m"):
        answer = hold("logs", "s", *words.split())
        assert (answer.code, answer.out, len(answer.err.splitlines())) == (2, "", 1), words


def test_a_session_without_output_prints_nothing_at_once(hold: HomeForTests) -> None:
    hold.run("cat", name="s")
    for words in ((), ("--raw",), ("--json",), ("--tail", "5"), ("--grep", "x")):
        assert (hold("logs", "s", *words).code, hold("logs", "s", *words).out) == (0, "")


def test_following_ends_with_the_session_and_misses_nothing(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo first; read x; echo second; printf last", name="s")
    assert s.wait(input=True, timeout=30).event != "timeout"
    with running([*HOLD, "logs", "-f", "s"], env=hold.env, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"first\n"
        s.send("", enter=True)
        assert follower.stdout.read() == b"\nsecond\nlast"
        assert follower.wait(30) == 0


@pytest.mark.home("own")
def test_following_survives_a_rename_and_the_death_of_the_daemon(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "while read x; do echo got $x; done", name="s")
    with running([*HOLD, "logs", "-f", "s", "--grep", "got"], env=hold.env, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        s.send("1", enter=True)
        assert follower.stdout.readline() == b"got 1\n"
        s.rename("other")
        hold.kill_daemon()
        s.send("2", enter=True)
        assert follower.stdout.readline() == b"got 2\n"
        s.stop(0)
        assert follower.wait(30) == 0


def test_an_interrupted_follower_is_exit_130_and_the_session_goes_on(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo here; cat", name="s")
    with running([*HOLD, "logs", "-f", "s"], env=hold.env, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"here\n"
        follower.send_signal(signal.SIGINT)
        assert follower.wait(30) == 130
    assert s.status().state == "live"


def test_following_from_past_the_end_waits_for_that_offset(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty -echo; echo 123456; read x; echo abcdef", name="s")
    assert s.wait(input=True, timeout=30).event != "timeout"
    end = s.status().output.end
    argv = [*HOLD, "logs", "-f", "s", "--raw", "--from", str(end + 3)]
    with running(argv, env=hold.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert b"past the end" in follower.stderr.readline()
        s.send("", enter=True)
        assert follower.stdout.read() == b"def\r\n"


def test_following_in_json_is_a_record_a_line(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo one; read x", name="s")
    with running([*HOLD, "logs", "-f", "s", "--json"], env=hold.env, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert base64.b64decode(json.loads(follower.stdout.readline())["bytes_base64"]) == b"one\r\n"
        s.stop(0)
        for line in follower.stdout:
            json.loads(line)
        assert follower.wait(30) == 0


def test_streams_of_pipes_come_out_apart(hold: HomeForTests) -> None:
    ended(hold, r"printf 'out\033[1m\n'; sleep 0.1; printf 'err\377' >&2; sleep 0.1; printf more", pipes=True)
    answer = subprocess.run([*HOLD, "logs", "s"], env=hold.env, capture_output=True, check=True)
    assert (answer.stdout, answer.stderr) == (b"out\x1b[1m\nmore", b"err\xff")
    records = [json.loads(line) for line in hold("logs", "s", "--json").out.splitlines()]
    assert [r["stream"] for r in records] == ["stdout", "stderr", "stdout"]


def test_a_gap_is_told_and_the_rest_is_served(hold: HomeForTests) -> None:
    s = ended(hold, "echo before; sleep 0.1; echo between; sleep 0.1; echo after")
    (path,) = (hold.path / "sessions" / s.id / "out").glob("*.out")
    data = path.read_bytes()
    at = data.index(b"between")
    path.write_bytes(data[:at] + b"X" + data[at + 1 :])  # a flipped byte: its record no longer matches
    answer = hold("logs", "s")
    assert answer.out == "before\nafter\n"
    assert answer.err == f"hold: output {at} to {at + 9} is gone\n"
    gaps = [r["gap"] for r in map(json.loads, hold("logs", "s", "--json").out.splitlines()) if r["gap"]]
    assert gaps == [{"from": at, "to": at + 9}]


def test_a_terminal_gets_colours_and_no_questions(hold: HomeForTests) -> None:
    ended(hold, r"stty -echo; printf '\033[31mred\033[0m\033[6n\033[c\033[?1049h\n'")
    with AttachedTerminal(hold, "logs", "s") as terminal:
        assert terminal.wait() == 0
        assert b"\x1b[31mred\x1b[0m" in terminal.raw
        assert b"\x1b[6n" not in terminal.raw
        assert b"\x1b[c" not in terminal.raw
        assert not terminal.screen.alternate  # what the program had turned on is turned off again


def test_a_reader_that_leaves_early_is_no_error(hold: HomeForTests) -> None:
    ended(hold, "seq 1 100000")
    with running([*HOLD, "logs", "s"], env=hold.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as printing:
        assert printing.stdout is not None
        assert printing.stderr is not None
        assert printing.stdout.readline() == b"1\n"
        printing.stdout.close()
        assert (printing.wait(30), printing.stderr.read()) == (0, b"")


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"^(\w+\s?)*$"])
def test_no_pattern_runs_for_ever(hold: HomeForTests, pattern: str) -> None:
    ended(hold, "head -c 200 /dev/zero | tr '\\0' a; echo !")
    assert hold("logs", "s", "--grep", pattern, timeout=60).out == ""
