"""Completion scripts are made from the parsers: nothing is missing, and the shells accept them."""

from __future__ import annotations

import subprocess

import pytest

from holdfast.cli.admin.completion_scripts import describe, script
from holdfast.cli.main import COMMANDS, parser_for
from tests.support.needs import program

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_every_option_is_in_the_script(shell: str) -> None:
    text = script(shell)
    for name in COMMANDS:
        assert name in text
        for action in parser_for(name)._actions:
            for option in action.option_strings:
                hidden = action.help == "==SUPPRESS=="
                word = option if shell != "fish" else ("-l " + option[2:] if option[1] == "-" else "-s " + option[1:])
                assert hidden or word in text, f"{name} {option}"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_its_script(shell: str) -> None:
    source = script(shell).encode()
    checked = subprocess.run([program(shell), "-n", "/dev/stdin"], input=source, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_sessions_files_words_and_commands_are_told_apart() -> None:
    assert [p.kind for p in describe("rename").positionals] == ["session", "any"]
    assert [p.kind for p in describe("exec").positionals] == ["session", "command"]
    kinds = {o.names[-1]: o.kind for o in describe("run").options}
    assert (kinds["--cwd"], kinds["--restart"], kinds["--detach"]) == ("folder", "words", "none")


def test_only_live_sessions_are_offered_where_an_ended_one_makes_no_sense() -> None:
    assert {describe(name).sessions for name in ("attach", "send", "exec", "kill", "stop")} == {"live"}
    assert {describe(name).sessions for name in ("logs", "rm", "restart", "status")} == {"all"}
