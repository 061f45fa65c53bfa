"""Sources that break what types, quotes or parses them: each runs as if a person had typed it into a fresh line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.ptyshell import PtyShell

Start = Callable[..., PtyShell]
EVERY = ["bash", "zsh", "sh", "fish"]
POSIX = ["bash", "zsh", "sh"]


@pytest.mark.parametrize("shell", POSIX)
@pytest.mark.parametrize(
    ("source", "output"),
    [
        (b"for i in 1 2 3\ndo\n  echo $i\ndone\necho end", b"1\n2\n3\nend\n"),
        (b"cat <<EOF\na $((1+1)) 'b' \"c\"\nEOF\necho after", b"a 2 'b' \"c\"\nafter\n"),
        (b"cat <<'EOF'\n$x `y` \\z\nEOF", b"$x `y` \\z\n"),
        (b"cat <<-EOF\n\ttabs go\n\tEOF\n", b"tabs go\n"),
        (b"printf '%s|' 'it'\\''s' \"a\\\"b\" 'back\\slash' 'a\\\\b'", b"it's|a\"b|back\\slash|a\\\\b|"),
        (b"printf %s 'bang! !! !$ !x'; printf %s \"wow!\"", b"bang! !! !$ !xwow!"),
        (b"printf %s 'a\tb\t\tc'", b"a\tb\t\tc"),
        (b"printf %s 'cr\rin the middle'", b"cr\rin the middle"),
        ("printf %s 'ünïcödé 😀 \u202e'".encode(), "ünïcödé 😀 \u202e".encode()),
        (
            b"printf %s 'a\x01\x02\x04\x08\x15\x16\x1a\x1c\x7fb' | od -An -tx1",
            b" 61 01 02 04 08 15 16 1a 1c 7f 62\n",
        ),
        (b"printf %s '\xff\xfe\x80\xc3' | od -An -tx1", b" ff fe 80 c3\n"),
        (b"\n\n  echo led by empty lines\n\n", b"led by empty lines\n"),
        (b"echo a; # a comment at the end", b"a\n"),
        (b"{ echo group; }; (echo sub)", b"group\nsub\n"),
        (b"case x in x) echo case;; esac", b"case\n"),
        (b"echo a &\nwait", None),
    ],
)
def test_a_source_means_what_it_says(start: Start, shell: str, source: bytes, output: bytes | None) -> None:
    result = start(shell).exec(source)
    assert result.code == 0
    assert output is None or result.text == output


@pytest.mark.parametrize("shell", EVERY)
def test_a_source_may_hold_every_byte_but_nul(start: Start, shell: str) -> None:
    inside = bytes(byte for byte in range(1, 256) if byte not in b"'\\")
    result = start(shell).exec(b"printf %s '" + inside + b"' | od -An -v -tx1")
    assert bytes.fromhex(result.text.decode()) == inside


def test_fish_runs_several_lines_and_odd_characters(start: Start) -> None:
    session = start("fish")
    assert session.exec(b"for i in 1 2\n  echo $i\nend\necho end").text == b"1\n2\nend\n"
    assert session.exec(b"printf '%s|' 'it\\'s' 'a\\\\b' 'a\tb' '!!' 'c\rd'").text == b"it's|a\\b|a\tb|!!|c\rd|"


@pytest.mark.parametrize("shell", EVERY)
@pytest.mark.parametrize("source", [b"", b" ", b"\n", b"# only a comment", b"\n # indented\n"])
def test_a_source_that_does_nothing_succeeds(start: Start, shell: str, source: bytes) -> None:
    result = start(shell).exec(source)
    assert (result.output, result.code) == (b"", 0)


@pytest.mark.parametrize(
    ("shell", "code", "message"),
    [
        ("bash", 2, b"bash: syntax error near unexpected token `)'\n"),
        ("zsh", 1, b"zsh: parse error near `)'\n"),
        ("sh", 2, b'Syntax error: ")" unexpected\n'),
        ("fish", 123, b"fish: Unexpected ')' for unopened parenthesis\n"),
    ],
)
def test_a_syntax_error_is_reported_with_its_message(start: Start, shell: str, code: int, message: bytes) -> None:
    session = start(shell)
    result = session.exec(b"echo )")
    assert message in result.text
    assert result.code == code
    assert session.exec(b"echo goes on").text == b"goes on\n"


@pytest.mark.parametrize(
    ("shell", "unfinished"),
    [
        *(
            (shell, source)
            for shell in POSIX
            for source in (b"if true; then", b"echo 'open", b'echo "open', b"while true; do", b"echo $(", b"f() {")
        ),
        ("fish", b"if true"),
        ("fish", b"echo 'open"),
        ("fish", b"echo ("),
    ],
)
def test_an_unfinished_source_is_an_error_and_does_not_wait_for_more(
    start: Start, shell: str, unfinished: bytes
) -> None:
    session = start(shell)
    assert session.exec(unfinished).code != 0
    assert session.exec(b"echo goes on").text == b"goes on\n"


@pytest.mark.parametrize("shell", POSIX)
def test_an_unfinished_heredoc_ends_with_the_source(start: Start, shell: str) -> None:
    session = start(shell)
    result = session.exec(b"cat <<EOF\nline one\nline two\n")
    assert result.text.endswith(b"line one\nline two\n")
    assert b"__hf" not in result.text
    assert result.code == 0


@pytest.mark.parametrize("shell", POSIX)
def test_a_source_that_ends_in_a_backslash_ends_there(start: Start, shell: str) -> None:
    session = start(shell)
    result = session.exec(b"echo word \\")
    assert result.text.startswith(b"word")
    assert b"__hf" not in result.text
    assert result.code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_errors_read_as_if_the_command_had_been_typed(start: Start, shell: str) -> None:
    session = start(shell)
    typed = session.command(b"no-such-thing").replace(b"\r\n", b"\n")
    result = session.exec(b"no-such-thing")
    assert result.text in typed
    assert result.text.startswith(shell.encode() + b": ")


@pytest.mark.parametrize("shell", EVERY)
def test_a_source_may_start_like_an_option(start: Start, shell: str) -> None:
    assert start(shell).exec(b"-n not a command").code == 127


@pytest.mark.parametrize("shell", EVERY)
def test_a_source_of_two_megabytes_runs(start: Start, shell: str) -> None:
    lines = 2 * 1024 * 1024 // 64
    comment = b"# it's 'quoted' and \\backslashed\\ %s\n" % (b"." * 27)
    result = start(shell).exec(b"echo first\n" + comment * lines + b"echo last\n")
    assert (result.text, result.code) == (b"first\nlast\n", 0)


@pytest.mark.parametrize("shell", EVERY)
def test_one_word_may_be_longer_than_a_program_takes(start: Start, shell: str) -> None:
    result = start(shell).exec(b"printf %s '" + b"x" * 300_000 + b"'")
    assert result.output == b"x" * 300_000
