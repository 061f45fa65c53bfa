"""Hooks, traps and prompts of the user go on working, and are afterwards exactly what they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.ptyshell import PROMPT, PtyShell, Result

Start = Callable[..., PtyShell]


def interrupted(session: PtyShell) -> Result:
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x03")
    return running.finish()


def shown(session: PtyShell, line: bytes) -> bytes:
    """What a typed line printed."""
    return session.command(line).partition(b"\n")[2].partition(PROMPT)[0]


BASH_HOOKS = {
    "unset": "unset PROMPT_COMMAND",
    "empty": "PROMPT_COMMAND=",
    "scalar": "PROMPT_COMMAND='last=$?; shown=$((shown+1))'",
    "lines": "PROMPT_COMMAND=$'last=$?\\nshown=$((shown+1)) # it\\'s'",
    "array": "PROMPT_COMMAND=('last=$?' 'shown=$((shown+1))')",
    "sparse": "declare -a PROMPT_COMMAND=([3]='last=$?' [7]='shown=$((shown+1))')",
    "no elements": "declare -a PROMPT_COMMAND=()",
    "exported": "export PROMPT_COMMAND='last=$?; shown=$((shown+1))'",
    "readonly": "readonly PROMPT_COMMAND='last=$?; shown=$((shown+1))'",
}


@pytest.mark.parametrize("hook", BASH_HOOKS)
def test_prompt_command_is_afterwards_what_it_was(start: Start, hook: str) -> None:
    session = start("bash", rc=BASH_HOOKS[hook])
    before = shown(session, b"declare -p PROMPT_COMMAND")
    assert session.exec(b"echo out; (exit 3)").text == b"out\n"
    assert session.probe().code == 3
    session.exec(b"echo )")
    assert shown(session, b"declare -p PROMPT_COMMAND") == before


@pytest.mark.parametrize("hook", sorted(BASH_HOOKS.keys() - {"exported", "readonly"}))
def test_prompt_command_is_what_it_was_after_ctrl_c_too(start: Start, hook: str) -> None:
    session = start("bash", rc=BASH_HOOKS[hook])
    before = shown(session, b"declare -p PROMPT_COMMAND")
    assert interrupted(session).code == 130
    assert shown(session, b"declare -p PROMPT_COMMAND") == before


@pytest.mark.parametrize("hook", ["scalar", "lines", "array", "sparse", "exported", "readonly"])
def test_prompt_command_of_the_user_runs_and_sees_the_status(start: Start, hook: str) -> None:
    session = start("bash", rc="shown=0\n" + BASH_HOOKS[hook])
    session.exec(b"shown=0; (exit 6)")
    assert b"6 1" in session.command(b"echo $last $shown")


@pytest.mark.parametrize("hook", ["exported", "readonly"])
def test_after_ctrl_c_a_probe_settles_what_no_hook_could(start: Start, hook: str) -> None:
    session = start("bash", rc=BASH_HOOKS[hook])
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x03")
    session.wait_prompt(running.marks[0].end)
    assert not running.ended()
    assert session.probe().code == 130
    assert b"__hf" not in session.exec(b"declare -p PROMPT_COMMAND").output


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (b"PROMPT_COMMAND=mine", b'declare -- PROMPT_COMMAND="mine"'),
        (b'PROMPT_COMMAND="mine; $PROMPT_COMMAND"', b'declare -- PROMPT_COMMAND="mine; old"'),
        (b'PROMPT_COMMAND+="; mine"', b'declare -- PROMPT_COMMAND="old; mine"'),
        (b"unset PROMPT_COMMAND", b"PROMPT_COMMAND: not found"),
        (b'PROMPT_COMMAND=(mine "${PROMPT_COMMAND[@]}")', b'declare -a PROMPT_COMMAND=([0]="mine" [1]="old")'),
        (b"export PROMPT_COMMAND", b'declare -x PROMPT_COMMAND="old"'),
    ],
)
def test_a_command_may_change_prompt_command(start: Start, change: bytes, left: bytes) -> None:
    session = start("bash", rc="old() { :; }; mine() { :; }; PROMPT_COMMAND=old")
    assert session.exec(change).code == 0
    assert left in session.command(b"declare -p PROMPT_COMMAND")
    assert session.exec(b"(exit 2)").code == 2


ZSH_HOOKS = {
    "none": "",
    "array": "first() { last=$?; }; second() { (( shown++ )); }; precmd_functions=(first second)",
    "function": "precmd() { last=$?; (( shown++ )); }",
    "add-zsh-hook": "autoload -Uz add-zsh-hook; f() { last=$?; (( shown++ )); }; add-zsh-hook precmd f",
    "unique": "typeset -aU precmd_functions; f() { last=$?; (( shown++ )); }; precmd_functions=(f)",
    "no elements": "typeset -a precmd_functions",
    "vcs": "autoload -Uz vcs_info; precmd() { last=$?; (( shown++ )); vcs_info; print -Pn '\\e]0;%~\\a'; }",
}


@pytest.mark.parametrize("hook", ZSH_HOOKS)
def test_precmd_functions_are_afterwards_what_they_were(start: Start, hook: str) -> None:
    session = start("zsh", rc=ZSH_HOOKS[hook])
    show = b"typeset -p precmd_functions; functions precmd"
    before = shown(session, show)
    assert session.exec(b"echo out; (exit 3)").text == b"out\n"
    assert interrupted(session).code == 130
    session.exec(b"echo )")
    assert shown(session, show) == before


@pytest.mark.parametrize("hook", ["array", "function", "add-zsh-hook", "unique", "vcs"])
def test_precmd_of_the_user_runs_and_sees_the_status(start: Start, hook: str) -> None:
    session = start("zsh", rc="shown=0\n" + ZSH_HOOKS[hook])
    session.exec(b"shown=0; (exit 6)")
    assert b"6 1" in session.command(b"echo $last $shown")


def test_a_prompt_like_those_of_zsh_frameworks_does_not_disturb(start: Start) -> None:
    rc = """
setopt promptsubst histignorespace sharehistory autocd extendedglob correct nounset
HISTFILE=$HOME/history HISTSIZE=100 SAVEHIST=100
preexec() { print -Pn "\\e]2;$1\\a"; }
precmd() { print -Pn "\\e]1;%~\\a"; RPROMPT="%F{red}%?%f"; }
chpwd() { print moved; }
zle-line-init() { print -n '\\e[?1h'; }; zle -N zle-line-init
alias -g L='| less'; alias sudo='sudo '; alias -s txt=cat
"""
    session = start("zsh", rc=rc)
    assert session.exec(b"echo one\n(exit 2)").text == b"one\n"
    assert session.exec(b"cd /").text == b"moved\n"
    assert interrupted(session).code == 130
    assert session.exec(b"echo still; (exit 4)").code == 4


def test_ps0_and_debug_and_other_traps_do_not_disturb(start: Start) -> None:
    rc = "PS0='[ps0 \\t]'; trap 'seen=$BASH_COMMAND' DEBUG; trap 'errs=$((errs+1))' ERR; trap 'echo bye' EXIT"
    session = start("bash", rc=rc)
    result = session.exec(b"echo out; (exit 3)")
    assert (result.text, result.code) == (b"out\n", 3)
    session.exec(b"errs=0")
    assert session.exec(b"false; echo $errs").text == b"1\n"
    assert session.exec(b"true; echo $seen").text == b"echo $seen\n"
    assert interrupted(session).code == 130
    running = session.start(b"exit 5")
    assert session.wait_exit() == 5
    assert b"bye" in running.result().output


def test_a_debug_trap_that_prints_sees_the_source_from_its_first_command(start: Start) -> None:
    session = start("bash", rc='trap \'printf "<%s>" "$BASH_COMMAND"\' DEBUG')
    result = session.exec(b"echo one; echo two")
    assert result.text.startswith(b"<echo one>one\n<echo two>two\n")
    assert result.code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh"])
def test_a_trap_on_int_runs_and_the_command_goes_on(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"trap 'echo caught; stop=yes' INT")
    running = session.start(b'echo looping; while [ -z "$stop" ]; do :; done; echo end; (exit 7)')
    session.until_output(b"looping\r\n", 0)
    session.type(b"\x03")
    result = running.finish()
    assert result.text.endswith(b"caught\nend\n")
    assert result.code == 7


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_trap_on_exit_runs_when_the_shell_ends(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"trap 'echo farewell' EXIT")
    assert session.exec(b"echo here").text == b"here\n"
    running = session.start(b"exit 2")
    assert session.wait_exit() == 2
    assert b"farewell" in running.result().output


def test_a_prompt_of_dash_is_afterwards_what_it_was(start: Start) -> None:
    session = start("sh", rc="count=0")
    session.exec(b"PS1='$? '\"$PS1\"")
    assert b"[$? " + PROMPT + b"]" in session.command(b"printf '[%s]' \"$PS1\"")
    session.exec(b"(exit 3)")
    assert interrupted(session).code == 130
    session.exec(b"echo )")
    session.probe()
    assert b"[$? " + PROMPT + b"]" in session.command(b"printf '[%s]' \"$PS1\"")


def test_a_fish_with_events_of_its_own_does_not_disturb(start: Start) -> None:
    rc = "function on_prompt --on-event fish_prompt; set -g shown $status; end\n"
    rc += "function on_done --on-event fish_postexec; set -g done $argv; end\n"
    session = start("fish", rc=rc)
    assert session.exec(b"echo out; sh -c 'exit 3'").text == b"out\n"
    assert b"3" in session.command(b"echo $shown")
    assert interrupted(session).code == 130
    assert session.exec(b"echo on").text == b"on\n"
