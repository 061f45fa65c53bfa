"""Backends as command lines: placeholders, programs that are missing, and the file on standard input."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.worker.runner import backends

VALUES = {
    "contract": "/h/c.json",
    "brief": "/h/b.md",
    "task": "demo/1; rm -rf ~",
    "run": "run_1",
    "attempt": "2",
    "root": "/r",
    "project": "demo",
}


def test_the_builtin_ones_are_known_and_ones_own_take_their_place() -> None:
    assert backends.find("claude", [], {}).argv[:2] == ("claude", "-p")
    assert backends.find("codex", [], {}).argv[:2] == ("codex", "exec")
    shell = backends.find("shell", [], {"SHELL": "/bin/zsh"})
    assert (shell.argv, shell.terminal) == (("/bin/zsh",), True)
    own = backends.find(
        "claude", [{"name": "claude", "template": ["my-claude", "{brief}"], "env": {"A": "b"}, "timeout_s": 3}], {}
    )
    assert (own.argv, own.env, own.timeout_s) == (("my-claude", "{brief}"), {"A": "b"}, 3)


def test_a_backend_nobody_described_is_one_clear_line() -> None:
    with pytest.raises(HoldfastError, match="no such backend: 'gpt'"):
        backends.find("gpt", [], {})


def test_placeholders_are_filled_within_their_word_once_and_other_braces_stay() -> None:
    filled = backends.fill(["x", "--t={task}", "{brief}{contract}", "{other}", "${HOME}", "{{task}}"], VALUES)
    assert filled == ["x", "--t=demo/1; rm -rf ~", "/h/b.md/h/c.json", "{other}", "${HOME}", "{demo/1; rm -rf ~}"]
    assert backends.fill(["{task}"], {**VALUES, "task": "{brief}"}) == ["{brief}"]


def test_a_missing_program_or_folder_is_named(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    path = {"PATH": str(tmp_path)}
    assert backends.missing(["tool"], path, str(tmp_path)) == "tool"  # not executable yet
    tool.chmod(0o755)
    assert backends.missing(["tool"], path, str(tmp_path)) is None
    assert backends.missing(["./tool"], {}, str(tmp_path)) is None
    assert backends.missing(["./gone"], {}, str(tmp_path)) == "./gone"
    assert backends.missing(["tool"], path, str(tmp_path / "gone")) == str(tmp_path / "gone")


def test_the_program_finds_the_brief_on_stdin_and_its_words_as_they_are(tmp_path: Path) -> None:
    brief = tmp_path / "a 'b' $c.md"
    brief.write_text("the brief\n")
    words = ["printf", "%s|", "$HOME", "a b", "*", "", "`id`"]
    done = subprocess.run(
        backends.command(["sh", "-c", 'cat; exec "$@"', "sh", *words], str(brief), False),
        capture_output=True,
        check=True,
        timeout=60,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.stdout.decode() == "the brief\n" + "|".join(words[2:]) + "|"
    assert backends.command(words, str(brief), True) == words
