"""Options and settings that change how a shell works: neither do they break us, nor do we show in what they print."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.ptyshell import PtyShell

Start = Callable[..., PtyShell]
POSIX = ["bash", "zsh", "sh"]

COMMON = [b"set -u", b"set -f", b"set -C", b"set -a", b"IFS=", b"IFS=/et", b"readonly IFS", b"CDPATH=/"]
BASH = [
    b"set -b",
    b"set -o posix",
    b"set -o vi",
    b"set -o physical",
    b"set -o functrace",
    b"set -o errtrace",
    b"set -o keyword",
    b"shopt -s nocasematch",
    b"shopt -s extglob",
    b"shopt -s failglob",
    b"shopt -s nullglob",
    b"shopt -u expand_aliases",
    b"shopt -s localvar_inherit",
    b"shopt -s xpg_echo",
    b"set +o history",
    b"set +o emacs",
    b"shopt -s lastpipe",
    b"set +m",
    b"LC_ALL=C",
    b"shopt -s compat44",
]
ZSH = [
    b"setopt ksharrays",
    b"setopt shwordsplit",
    b"setopt noclobber",
    b"setopt globsubst",
    b"setopt nomultios",
    b"setopt rcquotes",
    b"setopt cshjunkiequotes",
    b"setopt warncreateglobal",
    b"setopt extendedglob",
    b"setopt noglob",
    b"setopt ignorebraces",
    b"setopt posixbuiltins",
    b"setopt nobanghist",
    b"setopt interactivecomments",
    b"bindkey -v",
    b"setopt localoptions",
    b"setopt typesetsilent",
    b"setopt noevallineno",
    b"setopt nullglob",
    b"setopt autocd",
    b"emulate sh",
    b"emulate ksh",
    b"setopt histignorespace",
    b"setopt nopromptsp",
    b"unsetopt monitor",
    b"setopt errreturn",
    b"setopt noaliases",
    b"setopt posixidentifiers",
    b"unsetopt promptcr",
    b"setopt nounset",
]
CASES = [
    *((shell, setting) for shell in POSIX for setting in COMMON),
    *(("bash", setting) for setting in BASH),
    *(("zsh", setting) for setting in ZSH),
]


@pytest.mark.parametrize(("shell", "setting"), CASES)
def test_a_setting_changes_neither_output_nor_code_nor_ctrl_c(start: Start, shell: str, setting: bytes) -> None:
    session = start(shell)
    assert session.exec(setting).code == 0
    result = session.exec(b"printf '%s\\n' out; (exit 3)")
    assert (result.text, result.code) == (b"out\n", 3)
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x03")
    assert running.finish().code == 130
    assert session.exec(b"env | grep -a __hf").text == b""
    result = session.exec(b"printf '%s\\n' again; (exit 4)")
    assert (result.text, result.code) == (b"again\n", 4)


@pytest.mark.parametrize("shell", POSIX)
def test_errexit_ends_the_shell_at_the_first_failure(start: Start, shell: str) -> None:
    session = start(shell)
    assert session.exec(b"set -e").code == 0
    assert session.exec(b"true; if false; then :; fi; false || echo fine").text == b"fine\n"
    running = session.start(b"echo before; false; echo never")
    assert session.wait_exit() == 1
    result = running.result()
    assert result.record is None
    assert b"before" in result.output
    assert b"never" not in result.output


@pytest.mark.parametrize(
    "source", [b"false && true", b"! true", b"[[ a == b ]] && echo x", b"if (exit 5); then :; fi; ! :"]
)
def test_errexit_in_bash_forgives_what_it_forgives_at_the_prompt(start: Start, source: bytes) -> None:
    session = start("bash")
    assert session.exec(b"set -e; " + source).code == 1
    assert session.exec(source).code == 1
    assert session.probe().code == 0  # the status of before would end the shell, so it is not handed on
    assert session.exec(b"echo alive").text == b"alive\n"


def test_ctrl_c_under_errexit_does_not_end_bash(start: Start) -> None:
    session = start("bash", rc="PROMPT_COMMAND=:")
    session.exec(b"set -e")
    running = session.start(b"while :; do :; done")
    running.begun()
    session.type(b"\x03")
    assert running.finish().code == 130
    assert session.exec(b"echo alive").text == b"alive\n"


@pytest.mark.parametrize(("shell", "trace"), [("bash", b"+++ "), ("zsh", b"+zsh:"), ("sh", b"+ ")])
def test_xtrace_shows_the_source_and_nothing_of_ours(start: Start, shell: str, trace: bytes) -> None:
    session = start(shell)
    session.exec(b"set -x")
    for _ in range(2):
        result = session.exec(b"echo one; echo two")
        lines = result.text.splitlines()
        assert [line for line in lines if not line.startswith(trace)] == [b"one", b"two"]
        assert [line.rpartition(b"echo ")[2] for line in lines if line.startswith(trace)] == [b"one", b"two"]
        assert result.code == 0
    assert session.exec(b"false").code == 1
    assert b"2" in session.exec(b"case $- in *x*) echo 2;; esac").text
    session.exec(b"set +x")
    assert session.exec(b"echo quiet").text == b"quiet\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_xtrace_survives_a_syntax_error(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"set -x")
    session.exec(b"echo )")
    assert session.exec(b"echo one").text.splitlines()[1:] == [b"one"]
    assert session.exec(b"[[ -o xtrace ]] 2>/dev/null").code == 0


def test_verbose_shows_the_source_and_nothing_of_ours(start: Start) -> None:
    session = start("bash")
    session.exec(b"set -v")
    assert session.exec(b"echo one\necho two").text == b"echo one\none\necho two\ntwo\n"
    assert session.exec(b"set +v").code == 0


@pytest.mark.parametrize("shell", POSIX)
def test_options_are_afterwards_what_they_were(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"set -a -u -C -f")
    before = session.exec(b"echo $-; set -o").text
    session.exec(b"echo )")
    session.exec(b"sh -c 'exit 3'")
    session.probe()
    assert session.exec(b"echo $-; set -o").text == before
    typed = session.command(b"echo $-; set -o").replace(b"\r\n", b"\n")
    assert before.partition(b"\n")[2] in typed


def test_options_of_zsh_are_afterwards_what_they_were(start: Start) -> None:
    session = start("zsh")
    session.exec(b"setopt nounset ksharrays evallineno nobeep cshjunkiequotes localoptions")
    before = session.exec(b"setopt").text
    session.exec(b"echo )")
    session.exec(b"return 4")
    session.probe()
    assert session.exec(b"setopt").text == before
    assert before in session.command(b"setopt").replace(b"\r\n", b"\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh"])
def test_functions_and_aliases_of_the_user_do_not_take_our_builtins_over(start: Start, shell: str) -> None:
    names = b"printf echo eval pwd set unset return read history print setopt local export emulate command"
    names = names.replace(b" command", b"") if shell == "sh" else names
    session = start(shell)
    for name in names.split():
        if shell == "sh" and name in (b"eval", b"set", b"unset", b"return", b"export"):
            continue  # special builtins: dash looks for them before functions
        session.exec(name + b"() { /bin/echo not the builtin; }")
    for name in names.split():
        session.exec(b"alias " + name + b"='/bin/echo not the builtin'")
    result = session.exec(b"/bin/echo fine; (exit 5)")
    assert (result.text, result.code) == (b"fine\n", 5)
    running = session.start(b"/bin/sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x03")
    assert running.finish().code == 130
