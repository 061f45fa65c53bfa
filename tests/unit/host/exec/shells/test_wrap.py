"""What can be wrapped, what is refused, and that the typed line stays short whatever is run."""

from __future__ import annotations

import pytest

from holdfast.host.exec.shell_record import Record, parse_record
from holdfast.host.exec.shells.dialect import Wrapped
from holdfast.host.exec.shells.wrap import SHELLS, probe, wrap

TOKEN = "0123456789abcdef" * 2
HEAD, END = b"holdfast-exec 1 " + TOKEN.encode(), b"\nend " + TOKEN.encode() + b"\n"


def wrapped(shell: str, source: bytes, env: dict[bytes, bytes] | None = None) -> Wrapped:
    return wrap(shell, token=TOKEN, source=source, script="/run/exec", record="/run/record", env=env or {})


def probed(shell: str) -> Wrapped:
    return probe(shell, token=TOKEN, script="/run/exec", record="/run/record")


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_a_nul_byte_is_refused_anywhere(shell: str) -> None:
    with pytest.raises(ValueError, match="NUL"):
        wrapped(shell, b"echo \0")
    with pytest.raises(ValueError, match="NUL"):
        wrapped(shell, b"", {b"A": b"x\0"})
    with pytest.raises(ValueError, match="path"):
        wrap(shell, source=b"", token=TOKEN, script="/a\0b", record="/r")


@pytest.mark.parametrize("name", [b"", b"1A", b"A-B", b"A B", b"A=B", "Ä".encode(), b"A\n"])
def test_a_name_that_is_no_variables_name_is_refused(name: bytes) -> None:
    with pytest.raises(ValueError, match="name"):
        wrapped("bash", b"", {name: b"x"})


@pytest.mark.parametrize("token", ["", "x" * 32, TOKEN.upper(), TOKEN + "0", TOKEN[:-1] + "\n"])
def test_a_token_that_is_not_128_bits_of_hex_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        wrap("bash", source=b"", token=token, script="/s", record="/r")


def test_a_shell_we_do_not_speak_is_refused() -> None:
    with pytest.raises(ValueError, match="tcsh"):
        wrapped("tcsh", b"")
    with pytest.raises(ValueError, match="tcsh"):
        probed("tcsh")


@pytest.mark.parametrize("paths", [("relative", "/r"), ("/s", "relative"), ("", "/r")])
def test_a_path_that_is_not_absolute_is_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="absolute"):
        wrap("bash", source=b"", token=TOKEN, script=paths[0], record=paths[1])


@pytest.mark.parametrize("path", ["/tab\there", "/nl\n", "/" + "x" * 4090])
def test_a_path_that_a_canonical_line_cannot_carry_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="typed"):
        wrap("sh", source=b"", token=TOKEN, script=path, record="/r")


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_the_typed_line_does_not_depend_on_the_source(shell: str) -> None:
    short, long = wrapped(shell, b":"), wrapped(shell, b"echo 'x'\n" * 100_000, {b"DISPLAY": b":0"})
    assert short.typed == long.typed == probed(shell).typed
    assert len(short.typed) < 80


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_a_source_that_looks_like_a_place_to_fill_in_stays_what_it_is(shell: str) -> None:
    assert b"@token@ @record@ @nothing@" in wrapped(shell, b"echo @token@ @record@ @nothing@").script


def test_a_record_is_nothing_until_its_last_byte() -> None:
    whole = HEAD + b" 130 4242\n/some\nwhere/\xff" + END
    assert parse_record(whole) == Record(TOKEN, 130, 4242, b"/some\nwhere/\xff")
    for size in range(len(whole)):
        assert parse_record(whole[:size]) is None


def test_a_record_may_follow_other_lines_and_one_that_was_cut_short() -> None:
    before = b"  12  echo typed\n" + HEAD + b" 0 42\n/wh"
    assert parse_record(before + HEAD + b" 130 42\n/where" + END) == Record(TOKEN, 130, 42, b"/where")


@pytest.mark.parametrize(
    "name", [b"end " + b"0" * 32, b"holdfast-exec 1 " + b"0" * 32 + b" 7 7\n/", b"x\nend \n", b"\n", b""]
)
def test_a_directory_that_imitates_a_record_is_a_directory(name: bytes) -> None:
    cwd = b"/a\n" + name + b"\nb"
    assert parse_record(HEAD + b" 3 42\n" + cwd + END) == Record(TOKEN, 3, 42, cwd)


def test_a_record_without_a_directory_says_so() -> None:
    assert parse_record(HEAD + b" 0 7\n" + END) == Record(TOKEN, 0, 7, None)
    assert parse_record(HEAD + b" 0 7" + END) == Record(TOKEN, 0, 7, None)  # where `pwd` printed nothing at all


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"  12  echo typed\n", b"holdfast-exec 2 " + b"0" * 32 + b" 0 7\n/\nend " + b"0" * 32 + b"\n", END],
)
def test_what_is_not_a_record_is_none(data: bytes) -> None:
    assert parse_record(data) is None
