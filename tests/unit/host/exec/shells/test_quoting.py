"""Quoted words mean themselves, in every shell we speak."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.host.exec.shells.quoting import quote
from tests.support.ptyshell import PtyShell

Start = Callable[..., PtyShell]
WORDS = [
    b"plain",
    b"",
    b" ",
    b"two words",
    b"it's",
    b'"double"',
    b"back\\slash",
    b"\\\\",
    b"\\'",
    b"'",
    b"$HOME",
    b"`id`",
    b"$(id)",
    b"*",
    b"?",
    b"[a]",
    b"{a,b}",
    b"~",
    b"~root",
    b"=ls",
    b"a=b",
    b"!",
    b"!!",
    b"#",
    b"-n",
    b"--",
    b"a;b",
    b"a|b",
    b"a&b",
    b"<in",
    b">out",
    b"(sub)",
    b"new\nline",
    b"tab\tbed",
    b"\xff\xfe",
    "größe 😀".encode(),
    b"^x",
    b"%1",
    b"a\rb",
    b"\x01\x7f",
]


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh", "fish"])
def test_words_reach_the_program_unchanged(start: Start, shell: str) -> None:
    session = start(shell)
    result = session.exec(quote([b"printf", b"%s\\0", *WORDS]) + b" >words")
    assert result.code == 0
    assert (session.folder / "words").read_bytes().split(b"\0")[:-1] == WORDS


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh", "fish"])
@pytest.mark.parametrize("name", ["if", "time", "do", "a=b", "begin", "not", "~", "#", "!", "{", "[["])
def test_a_first_word_is_the_name_of_a_program_and_never_syntax(start: Start, shell: str, name: str) -> None:
    session = start(shell)
    program = session.folder / name
    program.write_text('#!/bin/sh\necho "ran $1"\n')
    program.chmod(0o755)
    result = session.exec(quote([name, "arg"]), env={b"PATH": bytes(session.folder) + b":/usr/bin:/bin"})
    assert result.text == b"ran arg\n"


def test_one_argument_is_source_already() -> None:
    assert quote(["echo $x; ls"]) == b"echo $x; ls"
    assert quote([b"\xff"]) == b"\xff"


def test_safe_words_stay_readable() -> None:
    assert quote(["git", "log", "-n", "3", "a b"]) == b"git log -n 3 'a b'"


def test_text_that_came_from_undecodable_bytes_becomes_those_bytes_again() -> None:
    assert quote(["cat", b"\xff".decode("utf-8", "surrogateescape")]) == b"cat '\xff'"


def test_nothing_to_run_and_nul_are_refused() -> None:
    with pytest.raises(ValueError, match="no command"):
        quote([])
    for words in (["a\0"], ["a", "b\0c"], ["a\0", "b"]):
        with pytest.raises(ValueError, match="NUL"):
            quote(words)
