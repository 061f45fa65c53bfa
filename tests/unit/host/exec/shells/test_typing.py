"""The typed line meets a line editor in any mode, with or without text that somebody left there."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from holdfast.host.exec.shells.wrap import abandon
from tests.support.ptyshell import PtyShell

Start = Callable[..., PtyShell]

LEFT, ESC, HOME = b"\x1b[D", b"\x1b", b"\x01"
VI = {"bash": "set -o vi", "zsh": "bindkey -v", "fish": "set -g fish_key_bindings fish_vi_key_bindings"}


def runs_alone(session: PtyShell, before: bytes = b"") -> bool:
    """The next command runs, and what stood in the line did not. `before` is sent in one write with the line."""
    result = session.start(b"echo mine", before=before).finish()
    return result.text == b"mine\n" and result.code == 0 and not os.path.exists(session.folder / "ran")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
@pytest.mark.parametrize(
    "text", [b"touch ran", b"touch ran;", b"echo 'open; touch ran;", b"touch ran \\", b"# ", b"touch ran #"]
)
def test_half_typed_text_is_cleared_and_does_not_run(start: Start, shell: str, text: bytes) -> None:
    session = start(shell)
    session.type(text)
    session.until_output(text[:5], 0)
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("move", [LEFT * 4, HOME, HOME + b"\x06" * 3])
def test_half_typed_text_is_cleared_wherever_the_cursor_is(start: Start, shell: str, move: bytes) -> None:
    session = start(shell)
    session.type(b"touch ran; true" + move)
    session.until_output(b"true", 0)
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    "keys", [b"", b"touch ran", b"touch ran" + ESC, b"touch ran" + ESC + b"0", b"touch ran;" + ESC + b"bb", ESC]
)
def test_a_line_editor_in_vi_mode_takes_the_line(start: Start, shell: str, keys: bytes) -> None:
    session = start(shell, rc=VI[shell])
    since = len(session.output)
    session.type(keys)
    if keys.startswith(b"touch"):
        session.until_output(b"ran", since)
    assert runs_alone(session)
    assert runs_alone(session)


def test_a_fish_in_vi_mode_takes_the_line(start: Start) -> None:
    session = start("fish", rc=VI["fish"])
    assert runs_alone(session)
    session.type(b"touch ran")
    session.until_output(b"ran", 0)
    assert runs_alone(session)


def test_text_that_a_zsh_command_left_in_the_line_is_cleared(start: Start) -> None:
    session = start("zsh")
    session.exec(b"print -z 'touch ran'")
    assert runs_alone(session)


@pytest.mark.parametrize(
    ("shell", "opened", "second_prompt"),
    [
        ("bash", b'echo "open', b"> "),
        ("bash", b"if true; then", b"> "),
        ("bash", b"cat <<EOF", b"> "),
        ("zsh", b'echo "open', b"dquote> "),
        ("zsh", b"if true; then", b"then> "),
        ("sh", b"echo 'open", b"> "),
        ("sh", b"if true; then", b"> "),
    ],
)
def test_a_continuation_line_is_abandoned_first(start: Start, shell: str, opened: bytes, second_prompt: bytes) -> None:
    session = start(shell)
    since = len(session.output)
    session.type(opened + b"\r")
    session.until(lambda: session.output[since:].rpartition(b"\n")[2].find(second_prompt) >= 0, "PS2")
    assert runs_alone(session, abandon(shell))
    assert runs_alone(session)


@pytest.mark.parametrize(
    ("shell", "keys"),
    [
        ("bash", b"\x12tou"),
        ("zsh", b"\x12tou"),
        ("fish", b"\x12tou"),
        ("fish", b"touch ran; if true\r"),
        ("zsh", b"touch ran\x1b\rtrue"),
    ],
)
def test_searches_and_longer_edits_are_abandoned_first(start: Start, shell: str, keys: bytes) -> None:
    session = start(shell)
    session.command(b": touch ran")
    since = len(session.output)
    session.type(keys)
    session.until(lambda: len(session.output) > since + len(keys), "the keys are shown")
    assert runs_alone(session, abandon(shell))
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_vi_line_with_the_cursor_in_the_middle_is_abandoned_first(start: Start, shell: str) -> None:
    session = start(shell, rc=VI[shell])
    session.type(b"touch ran; true" + LEFT * 6)
    session.until_output(b"true", 0)
    assert runs_alone(session, abandon(shell))
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh", "fish"])
def test_abandoning_an_empty_line_does_no_harm(start: Start, shell: str) -> None:
    session = start(shell)
    assert runs_alone(session, abandon(shell))
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "sp ace",
        "quo'te",
        'dou"ble',
        "bang!x",
        "dol$lar",
        "tab\there",
        "új",
        "back\\slash",
        "semi;colon",
        "nl\nx",
    ],
)
def test_any_path_can_be_typed(start: Start, shell: str, name: str) -> None:
    session = start(shell)
    session.folder = session.folder / name
    session.folder.mkdir()
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["sh", "fish"])
@pytest.mark.parametrize(
    "name", ["plain", "sp ace", "quo'te", 'dou"ble', "bang!x", "dol$lar", "új", "back\\slash", "semi;colon"]
)
def test_any_plain_path_can_be_typed(start: Start, shell: str, name: str) -> None:
    session = start(shell)
    session.folder = session.folder / name
    session.folder.mkdir()
    assert runs_alone(session)


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh"])
def test_a_long_path_on_a_narrow_terminal_can_be_typed(start: Start, shell: str) -> None:
    session = start(shell)
    session.folder = session.folder / ("x" * 200) / ("y" * 200)
    session.folder.mkdir(parents=True)
    session.exec(b"stty cols 12")
    assert runs_alone(session)


def test_a_bash_without_a_line_editor_takes_the_line(start: Start) -> None:
    session = start("bash", argv=["--noediting"])
    session.type(b"touch ran")
    session.until_output(b"ran", 0)
    assert runs_alone(session)
