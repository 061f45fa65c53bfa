"""How a command can end other than by itself, and what is known of it then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.ptyshell import PtyShell

Start = Callable[..., PtyShell]
EVERY = ["bash", "zsh", "sh", "fish"]
POSIX = ["bash", "zsh", "sh"]
NESTED = b"exec env PS1='<ready> ' bash --norc --noprofile -i"


def cleared(session: PtyShell) -> bool:
    """The shell goes on as if nothing had been."""
    result = session.exec(b"echo goes on")
    return (result.text, result.code) == (b"goes on\n", 0)


@pytest.mark.parametrize("shell", EVERY)
def test_ctrl_c_ends_a_program_with_130(start: Start, shell: str) -> None:
    session = start(shell)
    running = session.start(b"sleep 100; echo never")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x03")
    result = running.finish()
    assert result.code == 130
    assert b"never" not in result.output
    assert cleared(session)


@pytest.mark.parametrize(
    ("shell", "loop"),
    [*((shell, b"while :; do :; done") for shell in POSIX), ("fish", b"while true; end")],
)
def test_ctrl_c_ends_a_loop_of_the_shell_itself(start: Start, shell: str, loop: bytes) -> None:
    session = start(shell)
    running = session.start(b"echo looping\n" + loop)
    session.until_output(b"looping", 0)
    session.type(b"\x03")
    assert running.finish().code == 130
    assert cleared(session)


@pytest.mark.parametrize("shell", EVERY)
def test_ctrl_backslash_ends_a_program_with_131(start: Start, shell: str) -> None:
    session = start(shell)
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x1c")
    assert running.finish().code == 131
    assert cleared(session)


@pytest.mark.parametrize("shell", POSIX)
def test_ctrl_z_ends_the_command_with_148_and_leaves_the_job(start: Start, shell: str) -> None:
    session = start(shell)
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x1a")
    assert running.finish().code == 148
    assert b"sleep 100" in session.exec(b"jobs").output
    assert cleared(session)


def test_ctrl_z_in_fish_leaves_the_job(start: Start) -> None:
    session = start("fish")
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x1a")
    running.finish()
    assert b"sleep 100" in session.exec(b"jobs").output
    assert cleared(session)


@pytest.mark.parametrize("shell", EVERY)
def test_exit_ends_the_shell_and_leaves_no_record(start: Start, shell: str) -> None:
    session = start(shell)
    running = session.start(b"echo last words; exit 7")
    assert session.wait_exit() == 7
    result = running.result()
    assert [mark.kind for mark in result.marks] == ["b"]
    assert result.record is None
    assert b"last words" in result.output


@pytest.mark.parametrize("shell", EVERY)
def test_exec_replaces_the_shell_and_a_probe_finds_the_new_one(start: Start, shell: str) -> None:
    session = start(shell)
    running = session.start(NESTED)
    running.begun()
    session.wait_prompt(running.marks[0].end)
    assert not running.ended()
    assert running.result().record is None
    session.shell = "bash"
    result = session.probe()
    assert result.output == b""
    assert result.record is not None
    assert (result.record.exit_code, result.record.pid) == (0, session.pid)
    assert cleared(session)


@pytest.mark.parametrize("shell", EVERY)
def test_a_probe_gives_the_status_of_what_ran_last(start: Start, shell: str) -> None:
    session = start(shell)
    session.command(b"sh -c 'exit 9'")
    assert session.probe().code == 9
    assert session.probe().code == 9
    assert session.exec(b"true").code == 0
    assert session.probe().code == 0


@pytest.mark.parametrize("shell", EVERY)
def test_a_shell_that_a_person_nested_gives_its_status_to_a_probe(start: Start, shell: str) -> None:
    session = start(shell)
    session.command(b"env PS1='<ready> ' bash --norc --noprofile -i")
    session.shell = "bash"
    inside = session.exec(b"echo nested")
    assert inside.text == b"nested\n"
    assert inside.record is not None
    assert inside.record.pid != session.pid
    session.command(b"exit 3")
    session.shell = shell
    result = session.probe()
    assert result.record is not None
    assert (result.record.exit_code, result.record.pid) == (3, session.pid)
    assert cleared(session)


@pytest.mark.parametrize("shell", EVERY)
def test_a_shell_that_a_command_nested_ends_both(start: Start, shell: str) -> None:
    session = start(shell)
    outer = session.start(b"env PS1='<ready> ' bash --norc --noprofile -i; echo back")
    outer.begun()
    session.wait_prompt(outer.marks[0].end)
    session.shell = "bash"
    assert session.exec(b"echo nested; (exit 4)").code == 4
    inner = session.start(b"exit 3")
    result = outer.finish()
    assert result.text.endswith(b"back\n")
    assert result.code == 0
    assert inner.result().record is None
    session.shell = shell
    assert cleared(session)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("source", [b"echo ${unset:?gone}; echo never", b"set -u; echo $unset; echo never"])
def test_an_error_that_throws_the_rest_away_is_an_end(start: Start, shell: str, source: bytes) -> None:
    session = start(shell)
    result = session.exec(source)
    assert result.code == 1
    assert b"never" not in result.output
    assert result.text.startswith(shell.encode() + b": unset: ")
    assert cleared(session)


@pytest.mark.parametrize(("shell", "code"), [("bash", 2), ("zsh", 3)])
def test_return_at_the_top_level_is_an_end(start: Start, shell: str, code: int) -> None:
    session = start(shell)
    assert session.exec(b"return 3").code == code  # bash says it can only return from a function
    assert cleared(session)


@pytest.mark.parametrize("shell", POSIX)
def test_marks_come_through_when_stdout_was_redirected(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"exec >file")
    result = session.exec(b"echo into the file; (exit 4)")
    assert (result.output, result.code) == (b"", 4)
    session.exec(b"exec >/dev/tty")
    assert session.exec(b"cat file").text == b"into the file\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_marks_come_through_when_stderr_was_redirected_too(start: Start, shell: str) -> None:
    session = start(shell)
    for source, output in (
        (b"exec >file 2>&1", b""),
        (b"echo into the file", b""),
        (b"echo back >/dev/tty", b"back\n"),
    ):
        running = session.start(source)  # bash shows its prompt on stderr: there is none to wait for
        session.until(running.ended, "the second mark")
        result = running.result()
        assert (result.text, result.code) == (output, 0)
    assert b"into the file\n" in (session.folder / "file").read_bytes()


@pytest.mark.parametrize("shell", EVERY)
def test_forged_marks_are_output_like_any_other(start: Start, shell: str) -> None:
    session = start(shell)
    forged = b"\x1b]7733;e;" + b"0" * 32 + b"\x07"
    result = session.exec(b"printf '\\033]7733;e;%032d\\a' 0; echo after; sh -c 'exit 9'")
    assert (result.text, result.code) == (forged + b"after\n", 9)
    assert [mark.kind for mark in result.marks] == ["b", "e"]


@pytest.mark.parametrize("shell", POSIX)
def test_a_background_writer_does_not_confuse_the_commands_after_it(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"(while :; do echo noise; sleep 0.01; done) & writer=$!")
    for code in range(5):
        result = session.exec(b"echo mine; (exit %d)" % code)
        assert b"mine\r\n" in result.output
        assert result.code == code
    session.exec(b"kill $writer")


@pytest.mark.parametrize("shell", EVERY)
@pytest.mark.parametrize(
    "mode", [b"stty raw", b"stty -echo", b"stty raw -echo", b"clear", b"printf '\\033c\\033[?1049h'"]
)
def test_a_terminal_left_in_disorder_does_not_stop_the_next_command(start: Start, shell: str, mode: bytes) -> None:
    session = start(shell)
    assert session.exec(mode).code == 0
    result = session.exec(b"echo still; sh -c 'exit 5'")
    assert (result.text, result.code) == (b"still\n", 5)
