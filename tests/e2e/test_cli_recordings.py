"""`hold export` and `hold replay`: the output as it came, with its times and sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.client._sync.host import Session
from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, until

pytestmark = pytest.mark.home("file")

SCRIPT = r"stty -echo; echo one; sleep 0.3; printf '\033[31mtwo\033[0m\033[6n'; exit 3"


def recorded(hold: HomeForTests, script: str = SCRIPT) -> Session:
    s = hold.run("sh", "-c", script, name="rec", size=(100, 30))
    assert s.wait(exit=True, timeout=30).event != "timeout"
    until(lambda: s.status().state == "exited")
    return s


def test_an_exported_recording_has_sizes_times_output_and_exit_status(hold: HomeForTests, tmp_path: Path) -> None:
    recorded(hold)
    file = tmp_path / "rec.cast"
    answer = hold("export", "rec", "--cast", str(file))
    assert (answer.code, answer.out) == (0, "")
    header, *events = map(json.loads, file.read_text().splitlines())
    assert header["version"] == 3
    assert (header["term"]["cols"], header["term"]["rows"]) == (100, 30)
    assert (header["title"], header["command"].split()[:2]) == ("rec", ["sh", "-c"])
    marks = [e for e in events if e[1] == "m"]
    assert any("started it" in e[2] for e in marks)
    assert [e[1] for e in events if e not in marks] == ["o", "o", "x"]
    assert [e[2] for e in events if e not in marks] == [
        "one\r\n",
        "\x1b[31mtwo\x1b[0m",
        "3",
    ]  # the question to the terminal is left out
    assert 0.2 < sum(e[0] for e in events) < 60  # intervals
    assert not list(tmp_path.glob("*.tmp"))


def test_version_2_and_stdout(hold: HomeForTests) -> None:
    recorded(hold)
    header, *events = map(json.loads, hold("export", "rec", "--cast", "-", "--v2").out.splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 100, 30)
    assert [e[1] for e in events if e[1] != "m"] == ["o", "o"]


def test_a_resize_is_part_of_the_recording(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo one; read x; echo two", name="rec")
    assert s.wait(input=True, timeout=30).event != "timeout"
    s.resize(120, 40)
    s.send("", enter=True)
    assert s.wait(exit=True, timeout=30).event != "timeout"
    _, *events = map(json.loads, hold("export", "rec", "--cast", "-").out.splitlines())
    assert [0.0, "r", "120x40"] in [[0.0, *e[1:]] for e in events]


def test_a_long_recording_is_whole(hold: HomeForTests) -> None:
    recorded(hold, "seq 1 100000")
    _, *events = map(json.loads, hold("export", "rec", "--cast", "-").out.splitlines())
    assert "".join(e[2] for e in events if e[1] == "o") == "".join(f"{n}\r\n" for n in range(1, 100001))


def test_pipes_get_the_line_ends_of_a_terminal(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo one; echo two", name="rec", pipes=True)
    assert s.wait(exit=True, timeout=30).event != "timeout"
    _, *events = map(json.loads, hold("export", "rec", "--cast", "-").out.splitlines())
    assert "".join(e[2] for e in events if e[1] == "o") == "one\r\ntwo\r\n"


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing(hold: HomeForTests, tmp_path: Path) -> None:
    recorded(hold)
    answer = hold("export", "rec", "--cast", str(tmp_path / "no" / "rec.cast"))
    assert (answer.code, len(answer.err.splitlines())) == (1, 1)
    assert hold("export", "rec", "--cast", "/dev/full").code == 1
    assert hold("export", "rec").code == 2


def test_replay_in_a_pipe_prints_every_byte(hold: HomeForTests) -> None:
    recorded(hold)
    answer = hold("replay", "rec", "--speed", "100")
    assert (answer.code, answer.raw) == (0, b"one\r\n\x1b[31mtwo\x1b[0m\x1b[6n")
    for speed in ("0", "-1", "nan", "inf", "fast"):
        assert hold("replay", "rec", "--speed", speed).code == 2, speed


def test_replay_in_a_terminal_ends_by_itself_and_leaves_it_as_it_was(hold: HomeForTests) -> None:
    recorded(hold, r"printf '\033[?1049h\033[5;5Hpicture'; sleep 0.2")
    with AttachedTerminal(hold, "replay", "rec", "--max-idle", "0.1") as terminal:
        assert terminal.wait() == 0
        assert b"recorded at 100x30, this terminal has 80x24" in terminal.raw
        assert b"picture" in terminal.raw
        assert not terminal.screen.alternate


def test_replay_stops_at_a_key_and_pauses_at_another(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo first; sleep 0.5; echo second; sleep 3; echo third; cat", name="rec")
    assert s.wait(text="third", timeout=30).event != "timeout"
    with AttachedTerminal(hold, "replay", "rec", "--speed", "0.5", "--no-actors") as terminal:
        terminal.shows("first")
        terminal.type(b" ")
        terminal.settle(2.0)  # longer than the pause before the second line
        assert "second" not in terminal.screen.text()
        terminal.type(b" ")
        terminal.shows("second")
        terminal.type(b"q")
        assert terminal.wait() == 0
        assert b"third" not in terminal.raw
    assert s.status().state == "live"


@pytest.mark.home("own")
def test_marks_say_who_acted_and_never_what_was_typed_in_secret(hold: HomeForTests) -> None:
    assert hold("operator", "add", "bot", "--kind", "agent", "--grant", "view,type,exec,request_control").code == 0
    s = hold.run("bash", "--norc", name="rec")
    assert s.wait(input=True, timeout=30).event != "timeout"
    assert hold("exec", "rec", "--why", "to see", "--", "echo", "from-bot", HOLDFAST_OPERATOR="bot").code == 0
    assert hold("send", "rec", "--secret", "--stdin", "--enter", stdin=b": s3cr3t").code == 0
    assert hold("take", "rec").code == 0
    s.stop(0)
    until(lambda: s.status().state == "exited")
    exported = hold("export", "rec", "--cast", "-")
    marks = [e[2] for e in map(json.loads, exported.out.splitlines()[1:]) if e[1] == "m"]
    me = hold.host.call("ping")["operator"]["name"]
    assert any(m.startswith("bot (agent) ran") and "to see" in m for m in marks), marks
    assert any(m.startswith(f"{me} sent a secret") for m in marks), marks
    assert any(m.startswith(f"{me} took the controls") for m in marks), marks
    assert not any("s3cr3t" in m for m in marks)
    times = [e[0] for e in map(json.loads, exported.out.splitlines()[1:])]
    assert all(t >= 0 for t in times)


def test_a_replay_in_a_pipe_tells_its_actors_apart_from_the_output(hold: HomeForTests) -> None:
    recorded(hold)
    answer = hold("replay", "rec", "--speed", "100")
    assert answer.raw == b"one\r\n\x1b[31mtwo\x1b[0m\x1b[6n"
    assert "started it" in answer.err
    assert hold("replay", "rec", "--speed", "100", "--no-actors").err == ""


def test_a_replay_in_a_terminal_shows_its_actors_and_puts_the_picture_back(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", r"printf '\033[5;5Hpicture'; read x; printf '\033[7;7Hsecond'; sleep 0.3", name="rec")
    assert s.wait(text="picture", timeout=30).event != "timeout"
    s.send("", enter=True)
    assert s.wait(exit=True, timeout=30).event != "timeout"
    with AttachedTerminal(hold, "replay", "rec", "--max-idle", "0.1") as terminal:
        terminal.shows("sent “")
        assert terminal.wait() == 0
        lines = terminal.screen.text().splitlines()
        assert lines[4].startswith("    picture")
        assert lines[6].startswith("      second")
        assert "sent “" not in "\n".join(lines[:23])


def test_a_replay_begins_where_it_is_told_to(hold: HomeForTests) -> None:
    # Each line is an event of its own: what is printed within 10 ms is one, so the program pauses for longer.
    s = hold.run(
        "sh", "-c", "stty -echo; echo alpha; read x; sleep 0.05; echo beta; read x; sleep 0.05; echo gamma", name="rec"
    )
    for text in ("alpha", "beta"):
        assert s.wait(text=text, timeout=30).event != "timeout"
        s.send("", enter=True)
    assert s.wait(exit=True, timeout=30).event != "timeout"
    until(lambda: s.status().state == "exited")
    begin = ("replay", "rec", "--speed", "100", "--no-actors")
    assert hold(*begin, "--search", "beta").raw == b"beta\r\ngamma\r\n"
    assert hold(*begin, "--from", "7").raw == b"beta\r\ngamma\r\n"
    assert hold(*begin, "--from", "0").raw == b"alpha\r\nbeta\r\ngamma\r\n"
    assert hold(*begin, "--from", "1h").raw == b"alpha\r\nbeta\r\ngamma\r\n"
    assert hold(*begin, "--from", "8", "--search", "a").raw == b"beta\r\ngamma\r\n"
    for nowhere in (("--search", "omega"), ("--from", "100000"), ("--from", "2090-01-01T00:00:00Z")):
        answer = hold(*begin, *nowhere)
        assert (answer.code, answer.raw, answer.err.count("\n")) == (3, b"", 1)
    assert hold(*begin, "--from", "whenever").code == 2
    assert hold(*begin, "--search", "").code == 2
    assert hold("replay", "rec", "--speed", "100", "--search", "started it").raw == b"alpha\r\nbeta\r\ngamma\r\n"
    assert s.status().state == "exited"
