"""What is piped into a session and refused, discarded or left is told in one line; nothing looks delivered that was not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.client._sync.host import Session
from holdfast.model.errors import HoldfastError
from holdfast.model.home import Home
from tests.support.attached import AttachedTerminal
from tests.support.home import HOLD, HomeForTests, read_all, until
from tests.support.keeperline import KeeperLine

pytestmark = pytest.mark.home("file")


class Piped:
    """A `hold` command with something writing into its stdin."""

    def __init__(self, hold: HomeForTests, *words: str) -> None:
        self.command = subprocess.Popen(
            [*HOLD, *words],
            env=hold.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )

    def write(self, data: bytes) -> None:
        assert self.command.stdin is not None
        self.command.stdin.write(data)

    def end(self) -> tuple[int, str, list[str]]:
        """Its exit code, its output and the lines it said on stderr, once it has ended by itself."""
        out, err = self.command.communicate(timeout=60)
        return self.command.returncode, out.decode(), err.decode().splitlines()


@contextmanager
def piped(hold: HomeForTests, *words: str) -> Iterator[Piped]:
    it = Piped(hold, *words)
    try:
        yield it
    finally:
        if it.command.poll() is None:
            it.command.kill()
            it.command.communicate(timeout=60)


def started(hold: HomeForTests, name: str) -> Session:
    def there() -> Session | None:
        try:
            return hold.host.session(name)
        except HoldfastError:
            return None

    return until(there)  # type: ignore[no-any-return]


@contextmanager
def sink(hold: HomeForTests) -> Iterator[tuple[Piped, Session]]:
    """A program that takes its input, and has taken a line of it."""
    with piped(hold, "run", "-n", "sink", "--pipes", "--", "cat") as it:
        s = started(hold, "sink")
        it.write(b"one\n")
        until(lambda: read_all(s) == b"one\n")
        yield it, s


def eve(hold: HomeForTests, s: Session) -> KeeperLine:
    return KeeperLine(Home(str(hold.path)), s.id, name="eve", operator="op_eve")


# -- hold run ----------------------------------------------------------------------------------------------------------


def test_input_that_somebody_elses_controls_refuse_ends_the_pipe_with_one_line_and_exit_5(hold: HomeForTests) -> None:
    with sink(hold) as (it, s):
        with eve(hold, s) as other:
            assert "ok" in other.act("take", force=True, insist=True)
            it.write(b"two\n")
            code, out, said = it.end()
        assert (code, out, len(said)) == (5, "one\n", 1)
        assert said[0].startswith("hold: sink got only 4 bytes of input: eve (human) holds the controls since")
        assert "hold take sink" in said[0]
        assert "it keeps running without the rest, and its input stays open" in said[0]
        assert s.status().state == "live"  # the program was not told that its input is complete: it is not
        assert read_all(s) == b"one\n"


def test_input_that_a_takeover_discards_unread_is_told(hold: HomeForTests) -> None:
    with piped(hold, "run", "-n", "deaf", "--pipes", "--", "sleep", "1000") as it:
        s = started(hold, "deaf")
        it.write(b"lost\n")
        until(lambda: s.status().controls.holder is not None)
        with eve(hold, s) as other:
            assert other.act("take", force=True, insist=True)["ok"]["flushed"] == 5
            code, _, said = it.end()
        assert (code, len(said)) == (5, 1)
        assert "eve took the controls, and 5 unread bytes were discarded" in said[0]


def test_piping_goes_on_after_somebody_had_the_controls_and_nothing_was_lost(hold: HomeForTests) -> None:
    with sink(hold) as (it, s):
        with eve(hold, s) as other:
            assert "ok" in other.act("take", force=True, insist=True)
            assert "ok" in other.act("release")
        it.write(b"two\n")
        assert it.end() == (0, "one\ntwo\n", [])


def test_a_program_that_ends_before_it_took_its_input_passes_its_code_and_that_is_told(
    hold: HomeForTests, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"while ! [ -e {go} ]; do echo tick; sleep 0.05; done; exit 3"
    with piped(hold, "run", "-n", "busy", "--pipes", "--", "sh", "-c", script) as it:
        s = started(hold, "busy")
        for _ in range(3):  # more than a pipe holds
            it.write(b"x" * 50_000)
        with eve(hold, s) as other:
            until(lambda: other.act("status")["ok"]["queued_input"] > 0)
        go.touch()
        code, _, said = it.end()
        assert (code, len(said)) == (3, 1)
        assert said[0].startswith("hold: busy did not take the last ")


def test_output_goes_on_while_the_program_does_not_read(hold: HomeForTests, tmp_path: Path) -> None:
    source = tmp_path / "much"
    source.write_bytes(b"x" * 4_000_000)
    script = "while :; do echo tick; sleep 0.05; done"
    with (
        source.open("rb") as much,
        subprocess.Popen(
            [*HOLD, "run", "-n", "busy", "--pipes", "--", "sh", "-c", script],
            env=hold.env,
            stdin=much,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        ) as command,
    ):
        try:
            s = started(hold, "busy")
            with eve(hold, s) as other:
                until(lambda: other.act("status")["ok"]["queued_input"] >= 256 << 10)
            assert command.stdout is not None
            end = s.status().output.end
            seen = 0
            while seen < end + 100:  # all that came before, and what came after
                data = command.stdout.read(4096)
                assert data
                seen += len(data)
        finally:
            command.kill()


def test_a_program_that_closed_its_input_is_left_in_peace_and_that_is_told_once(hold: HomeForTests) -> None:
    with piped(hold, "run", "-n", "shut", "--pipes", "--", "sh", "-c", "exec <&-; echo shut; sleep 1000") as it:
        s = started(hold, "shut")
        until(lambda: read_all(s) == b"shut\n")
        until(lambda: _written_until_refused(it))
        s.stop(0)
        code, out, said = it.end()
        assert (code, out, len(said)) == (143, "shut\n", 1)
        assert said[0] == "hold: shut closed its input without reading all of it"


def _written_until_refused(it: Piped) -> bool:
    """Whoever writes into the pipe hears of it as from any program that closes its input."""
    try:
        it.write(b"more\n")
    except BrokenPipeError:
        return True
    return False


def test_an_end_of_input_that_is_refused_is_told_and_output_goes_on(hold: HomeForTests) -> None:
    with piped(hold, "run", "-n", "sink", "--pipes", "--", "cat") as it:
        s = started(hold, "sink")
        with eve(hold, s) as other:
            assert "ok" in other.act("take", force=True, insist=True)
            assert it.command.stdin is not None
            it.command.stdin.close()
            it.command.stdin = None
            assert it.command.stderr is not None
            said = it.command.stderr.readline().decode()
            assert said.startswith("hold: cannot close the input of sink: eve (human) holds the controls")
            assert other.type(b"hers\n") == {}
            assert "ok" in other.act("end_input")
        assert it.end() == (0, "hers\n", [])


def test_a_line_that_no_terminal_takes_is_refused_as_invalid(hold: HomeForTests) -> None:
    done = hold("run", "-n", "line", "--", "cat", stdin=b"y" * 5000)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "line got only 0 bytes of input: a line of more than 4095 bytes" in done.err


def test_a_foreground_run_needs_no_stdin_at_all(hold: HomeForTests) -> None:
    script = 'exec "$@" <&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *HOLD, "run", "--", "echo", "hi"],
        env=hold.env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"hi"], b"")


# -- hold send and attach ----------------------------------------------------------------------------------------------


def test_send_says_how_much_was_sent_before_it_was_refused(hold: HomeForTests) -> None:
    s = hold.run("cat", name="sink", pipes=True)
    with piped(hold, "send", "sink", "--stdin") as it, eve(hold, s) as other:
        it.write(b"one\n")
        until(lambda: read_all(s) == b"one\n")
        assert "ok" in other.act("take", force=True, insist=True)
        it.write(b"two\n")
        code, out, said = it.end()
    assert (code, out, len(said)) == (5, "", 1)
    assert said[0].startswith("hold: sent 4 bytes, then failed: eve (human) holds the controls")
    assert read_all(s) == b"one\n"


def test_a_long_text_of_the_sdk_says_how_much_of_it_was_sent(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty -icanon -echo; echo ready; sleep 1000", name="deaf")
    assert s.wait(text="ready", timeout=60).event == "text"
    with pytest.raises(HoldfastError) as refused:  # a program that reads nothing: its queue is full in the end
        s.send(b"x" * 1_000_000)
    assert refused.value.code == "busy"
    assert " bytes were sent, then: the program has not taken " in refused.value.message


def test_an_attached_terminal_says_when_what_was_typed_ahead_is_discarded(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty -icanon -echo; echo ready; sleep 1000", name="deaf")
    assert s.wait(text="ready", timeout=60).event == "text"
    with AttachedTerminal(hold, "attach", "deaf") as terminal, eve(hold, s) as other:
        terminal.type(b"ahead")
        terminal.until(lambda: s.status().controls.holder is not None)
        terminal.until(lambda: other.act("status")["ok"]["typed"] == 1)
        assert other.act("take", force=True, insist=True)["ok"]["flushed"] == 5
        terminal.until(lambda: b"eve took the controls; 5 typed bytes were discarded" in terminal.raw)
