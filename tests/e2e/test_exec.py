"""Exec in a persistent shell: exact exit codes, exact output, whatever the command does to its shell."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until
from tests.support.needs import needs

pytestmark = pytest.mark.home("file")

MEGABYTE = 1 << 20


@pytest.fixture(params=["bash", "zsh"])
def shell(hold: HomeForTests, request: pytest.FixtureRequest) -> Session:
    words = {"bash": ["bash", "--norc"], "zsh": ["zsh", "-f"]}[request.param]
    return hold.run(*words, name="shell", env={"PS1": "prompt> "})


@pytest.fixture
def bash(hold: HomeForTests) -> Session:
    return hold.run("bash", "--norc", name="bash", env={"PS1": "prompt> "})


CASES = {
    "true": ("true", 0, ""),
    "false": ("false", 1, ""),
    "output": ("echo hello", 0, "hello\n"),
    "no newline": ("printf abc", 0, "abc"),
    "several lines": ("echo one\necho two\nfalse", 1, "one\ntwo\n"),
    "heredoc": ("cat <<'END'\n$HOME `x` \\ !\nEND", 0, "$HOME `x` \\ !\n"),
    "quotes": ("echo 'it'\"'\"'s' \"a  b\"", 0, "it's a  b\n"),
    "unicode": ("echo 'né 日本 🙂'", 0, "né 日本 🙂\n"),
    "tabs": ("printf 'a\tb\\n'", 0, "a\tb\n"),
    "clear": ("clear; echo after", 0, None),
    "not found": ("nosuchcommand_x 2>/dev/null", 127, ""),
    "signal": ("sh -c 'kill -9 $$'", 137, None),
    "background": ("(sleep 0.05; echo late) & echo now", 0, None),
    "pipeline": ("seq 1 5 | tail -n 2", 0, "4\n5\n"),
    "forged": ("printf '\\033]7733;e;00000000000000000000000000000000\\007done\\n'", 0, None),
    "raw": ("stty raw; printf x; stty sane", 0, "x"),
    "exit in a subshell": ("(exit 9)", 9, ""),
    "long": ("echo " + "x" * 10_000, 0, "x" * 10_000 + "\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_exit_code_and_output_are_exact(shell: Session, case: str) -> None:
    source, code, output = CASES[case]
    done = shell.exec(source, timeout=30)
    assert (done.state, done.exit_code) == ("exited", code)
    if output is not None:
        assert done.output == output
    again = shell.exec("echo still here", timeout=30)
    assert (again.exit_code, again.output.splitlines()[-1]) == (0, "still here")


def test_folder_variables_and_functions_survive_from_one_command_to_the_next(shell: Session) -> None:
    shell.exec("cd /usr; MINE=1; export YOURS=2; f() { echo f $1; }", timeout=30)
    done = shell.exec("pwd; echo $MINE $YOURS; f x", timeout=30)
    assert done.output == "/usr\n1 2\nf x\n"
    assert done.cwd == "/usr"


def test_several_words_are_quoted_and_one_is_source(bash: Session) -> None:
    assert bash.exec("echo", "a b", "$HOME", "*", timeout=30).output == "a b $HOME *\n"
    assert bash.exec("echo $((1+1))", timeout=30).output == "2\n"


def test_errexit_ends_the_shell_with_its_own_code(bash: Session) -> None:
    done = bash.exec("set -e; echo before; false; echo after", timeout=30)
    assert (done.state, done.exit_code) == ("shell_ended", 1)
    assert done.output.startswith("before\n")
    assert "after" not in done.output


def test_a_shell_that_dies_is_told_with_its_code(bash: Session) -> None:
    done = bash.exec("echo bye; exit 7", timeout=30)
    assert (done.state, done.exit_code) == ("shell_ended", 7)
    assert "bye" in done.output


def test_a_shell_that_replaces_itself_goes_on(bash: Session) -> None:
    done = bash.exec("exec bash --norc", timeout=30)
    assert done.state == "exited"
    assert bash.exec("echo new $0", timeout=30).output.startswith("new ")


def test_leaving_a_nested_shell_gives_its_code(bash: Session) -> None:
    bash.send("bash --norc\r")
    until(lambda: len(bash.status().processes) == 2)
    assert bash.wait(input=True, timeout=20).event != "timeout"
    done = bash.exec("exit 3", timeout=30)
    assert (done.state, done.exit_code) == ("shell_ended", 3)
    assert bash.exec("echo outer", timeout=30).output == "outer\n"


def test_a_command_that_waits_for_input_comes_back_and_is_finished_later(bash: Session) -> None:
    done = bash.exec("read -p 'name? ' x; echo got $x; (exit 4)", timeout=30)
    assert (done.state, done.prompt) == ("waiting_for_input", "name?")
    with pytest.raises(HoldfastError, match="still running"):
        bash.exec("true", timeout=30)
    bash.send("me\r")
    assert bash.wait(done=done.exec_id, timeout=20).detail["exit_code"] == 4
    assert bash.exec_result(done.exec_id).output.endswith("got me\n")


def test_a_secret_prompt_is_told_as_such(bash: Session) -> None:
    done = bash.exec("read -s -p 'password: ' x; echo; echo ${#x}", timeout=30)
    assert done.state == "waiting_for_secret"
    bash.send("hunter2\r", secret=True)
    finished = bash.exec_result(done.exec_id, wait=True, timeout=20)
    assert (finished.exit_code, finished.output.splitlines()[-1]) == (0, "7")


@needs("less")
def test_a_pager_comes_back_as_full_screen_and_ends_with_its_key(bash: Session) -> None:
    done = bash.exec("less /etc/services", timeout=30)
    assert done.state == "full_screen"
    bash.send(keys=["q"])
    assert bash.exec_result(done.exec_id, wait=True, timeout=20).exit_code == 0


def test_ctrl_c_ends_a_command_with_130(shell: Session) -> None:
    running = shell.exec("echo started; sleep 1000", timeout=1)
    assert running.state == "running"
    shell.send(keys=["C-c"])
    done = shell.exec_result(running.exec_id, wait=True, timeout=20)
    assert (done.state, done.exit_code) == ("exited", 130)


def test_a_hundred_megabytes_of_output_are_exact(bash: Session) -> None:
    size = 100 * MEGABYTE
    done = bash.exec(f"head -c {size} /dev/zero | tr '\\0' y", timeout=110, max_output=2 * size)
    assert (done.exit_code, done.omitted_bytes, len(done.raw)) == (0, 0, size)
    assert done.raw == b"y" * size


def test_more_output_than_asked_for_keeps_head_and_tail(bash: Session) -> None:
    done = bash.exec("seq 1 100000", timeout=60, max_output=1000)
    assert done.output.startswith("1\n2\n")
    assert done.output.endswith("99999\n100000\n")
    assert done.omitted_bytes == done.end - (done.start or 0) - 1000


@pytest.mark.home("own")
def test_a_command_outlives_the_daemon_and_its_result_is_known(bash: Session, hold: HomeForTests) -> None:
    running = bash.exec("sleep 1; echo survived; (exit 6)", timeout=0.2)
    assert running.state == "running"
    hold.kill_daemon()
    done = bash.exec_result(running.exec_id, wait=True, timeout=30)
    assert (done.exit_code, done.output) == (6, "survived\n")


@pytest.mark.home("own")
def test_a_daemon_that_dies_while_a_client_waits_is_not_noticed(bash: Session, hold: HomeForTests) -> None:
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(bash.exec("sleep 1.5; echo here", timeout=60)))
    thread.start()
    until(lambda: bash.status().activity.kind == "running")
    hold.kill_daemon()
    thread.join(60)
    assert got[0].output == "here\n"  # type: ignore[attr-defined]


def test_exec_needs_a_shell_at_its_prompt(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000")
    with pytest.raises(HoldfastError, match="no shell is at its prompt") as refused:
        s.exec("true", timeout=5)
    assert refused.value.exit_status == 5
    pipes = hold.run("cat", pipes=True)
    with pytest.raises(HoldfastError, match="pipes"):
        pipes.exec("true", timeout=5)


def test_other_shells_run_plain_commands(hold: HomeForTests) -> None:
    for words in (["dash"], ["fish", "--no-config"]):
        s = hold.run(*words)
        done = s.exec("echo plain; false", timeout=30)
        assert (done.exit_code, done.output) == (1, "plain\n"), words


def test_the_command_line_streams_output_and_passes_the_code_through(bash: Session, hold: HomeForTests) -> None:
    done = hold("exec", "bash", "--", "sh", "-c", "echo out; exit 5")
    assert (done.code, done.out) == (5, "out\n")
    quick = hold("exec", "bash", "--timeout", "0.3", "sleep 3")
    assert quick.code == 124
    until(lambda: bash.status().activity.kind == "at_prompt")
    data = hold("exec", "bash", "--json", "pwd").json
    assert set(data) == {
        "exec_id",
        "state",
        "exit_code",
        "output",
        "start",
        "end",
        "omitted_bytes",
        "duration_ms",
        "cwd",
        "prompt",
    }
    assert data["output"].strip() == data["cwd"] == os.getcwd()


def test_an_unknown_exec_id_is_not_found(bash: Session, hold: HomeForTests) -> None:
    assert hold("exec-result", "bash", "exe_none").code == 3
    assert hold("exec-result", "bash", "../../etc/passwd").code == 3


@pytest.mark.parametrize(
    "left", [b'echo "abc\r', b"cat <<END\rone\r", b"garbage (", b"\x12sea"], ids=["quote", "heredoc", "text", "search"]
)
def test_what_somebody_left_at_the_prompt_is_given_up(shell: Session, left: bytes) -> None:
    """An open quote, a heredoc, half a line, a search: the command runs, once, and what was left does not."""
    assert shell.exec("echo before", timeout=30).output == "before\n"
    shell.send(left)
    until(lambda: shell.status().activity.kind == "at_prompt", timeout=30)
    done = shell.exec("echo hi", timeout=60)
    assert (done.state, done.exit_code, done.output) == ("exited", 0, "hi\n")
    again = shell.exec("echo again", timeout=60)
    assert (again.exit_code, again.output) == (0, "again\n")


def test_a_line_typed_to_its_end_leaves_its_status_to_the_next_command(bash: Session) -> None:
    """No Ctrl-C where none is needed: it would change $? and run a trap."""
    assert bash.exec("trap 'echo trapped' INT", timeout=60).output == ""
    bash.send("(exit 6)\r")
    assert bash.exec("echo $?", timeout=60).output == "6\n"


@pytest.mark.home("own")
def test_commands_one_after_the_other_keep_one_file_and_leave_no_other(hold: HomeForTests, bash: Session) -> None:
    done = [bash.exec(f"echo {n}", timeout=60) for n in range(5)]
    assert [d.output for d in done] == [f"{n}\n" for n in range(5)]
    folder = hold.path / "sessions" / bash.id / "exec"
    until(lambda: os.listdir(folder) == ["results.jsonl"], timeout=30)
    hold.kill_daemon()
    assert [bash.exec_result(d.exec_id).exit_code for d in done] == [0] * 5


def test_a_command_that_ends_its_shell_passes_the_code_and_all_of_the_output(hold: HomeForTests) -> None:
    """The shell's end is the keeper's end, and the line that the output comes by breaks."""
    for n in range(6):
        hold.run("bash", "--norc", name=f"ends{n}", env={"PS1": "prompt> "})
        done = hold("exec", f"ends{n}", "--", "echo before; exit 3")
        assert (done.code, done.err) == (3, ""), done.out
        assert done.out.startswith("before\n")


@pytest.mark.home("own")
def test_a_command_of_a_host_that_died_keeps_the_next_one_from_typing(hold: HomeForTests) -> None:
    """Also where notes on the session were written while it was known which commands run."""
    assert hold("operator", "add", "bot", "--kind", "agent", "--grant", "view,type,exec,request_control").code == 0
    shell = hold.run("bash", "--norc", name="sh")
    assert shell.exec("true", timeout=60).exit_code == 0
    assert hold("exec", "sh", "--", "true", HOLDFAST_OPERATOR="bot").code == 0  # the host notes that bot typed
    running = shell.exec("sleep 1000", timeout=0).exec_id
    hold.kill_daemon()
    refused = hold("exec", "sh", "--", "true")
    assert refused.code != 0
    assert running in refused.err


@pytest.mark.home("own")
def test_an_operator_s_command_is_waited_for_as_that_operator(hold: HomeForTests) -> None:
    """What ends with the operator's rights ends for the command that waits: it does not go on as the OS user."""
    assert hold("operator", "add", "bot", "--kind", "agent", "--grant", "view,type,exec,request_control").code == 0
    shell = hold.run("bash", "--norc", name="sh")
    done: list[Any] = []
    words = ("exec", "sh", "--", "echo begun; sleep 1000")
    asking = threading.Thread(target=lambda: done.append(hold(*words, HOLDFAST_OPERATOR="bot")))
    asking.start()
    assert shell.wait(text="begun", timeout=60).event == "text"
    assert hold("operator", "revoke", "bot").code == 0
    asking.join(60)
    assert done
    assert done[0].code not in (0, 124)
