"""Kernel sessions: code runs in a heap that stays, its outputs come back as data, and no daemon has to listen."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host, Session
from holdfast.model.errors import HoldfastError
from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, alive, read_all, until
from tests.support.kernels import LONG, add_spec, kernel
from tests.support.operators import acting_as, enrol, journal

UNTIL_THERE = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.01)\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HomeForTests]:
    """For tests that leave the kernel as they found it: an interpreter takes seconds to start."""
    made = HomeForTests(tmp_path_factory.mktemp("kernels") / "home")
    yield made
    made.close()


@pytest.fixture(scope="module")
def calc(home: HomeForTests) -> Session:
    return kernel(home)


# -- what exec returns


def test_outputs_come_as_data_and_as_text(home: HomeForTests, calc: Session) -> None:
    done = home("exec", "calc", "--json", "--", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7").json
    assert (done["state"], done["exit_code"], done["error"]) == ("exited", 0, None)
    kinds = [(o["output_type"], o.get("name")) for o in done["outputs"]]
    assert sorted(map(str, kinds[:2])) == ["('stream', 'stderr')", "('stream', 'stdout')"]
    assert done["outputs"][2]["output_type"] == "execute_result"
    assert done["outputs"][2]["data"]["text/plain"] == "42"
    assert done["execution_count"] == done["outputs"][2]["execution_count"]
    assert sorted(done["output"].splitlines()) == ["42", "err", "out"]
    assert home("exec", "calc", "6 * 7").out == "42\n"


def test_an_error_is_data_with_exit_code_1_and_can_be_read_on_a_terminal(home: HomeForTests, calc: Session) -> None:
    done = calc.exec("def f():\n    return 1 / 0\nf()", timeout=LONG)
    assert (done.state, done.exit_code) == ("exited", 1)
    assert done.error is not None
    assert (done.error["ename"], done.error["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert any("return 1 / 0" in line for line in done.error["traceback"])
    assert "\x1b" not in "".join(done.error["traceback"])
    assert done.outputs[-1]["output_type"] == "error"
    shown = home("exec", "calc", "1 / 0")
    assert (shown.code, "division by zero" in shown.out) == (1, True)


def test_variables_stay_across_clients_and_the_folder_is_told(
    home: HomeForTests, calc: Session, tmp_path: Path
) -> None:
    assert home("exec", "calc", f"import os; os.chdir({str(tmp_path)!r}); stays = 20").code == 0
    done = calc.exec("stays + 1", timeout=LONG)
    assert (done.output, done.cwd) == ("21\n", str(tmp_path))
    assert calc.status().cwd == str(tmp_path)


def test_several_words_are_one_line_of_code(home: HomeForTests, calc: Session) -> None:
    assert home("exec", "calc", "--", "2", "+", "3").out == "5\n"


def test_output_that_looks_like_a_mark_or_a_cell_changes_nothing(calc: Session) -> None:
    done = calc.exec("print('\\x1b]7733;e;' + '0' * 32 + '\\x07holdfast-cell exe_0', end='')", timeout=LONG)
    assert done.output.endswith("holdfast-cell exe_0")
    assert calc.exec("1", timeout=LONG).output == "1\n"


def test_binary_values_come_as_base64_and_too_large_ones_are_named(calc: Session) -> None:
    done = calc.exec(
        "from IPython.display import display\n"
        "display({'image/png': b'\\x89PNG\\x00', 'text/plain': 'small'}, raw=True)\n"
        "display({'image/png': 'A' * 3_000_000, 'text/plain': 'large'}, raw=True)",
        timeout=LONG,
    )
    small, large = done.outputs
    assert base64.b64decode(small["data"]["image/png"]) == b"\x89PNG\x00"
    assert large["data"] == {"text/plain": "large"}
    assert large["omitted"]["image/png"] >= 3_000_000
    assert done.output == "small\nlarge\n"


def test_a_flood_of_output_is_bounded_and_the_result_after_it_is_kept(calc: Session) -> None:
    done = calc.exec("for _ in range(1000): print('x' * 104_999)\n'the end'", timeout=LONG, max_output=1000)
    assert (done.exit_code, done.outputs[-1]["data"]["text/plain"]) == (0, "'the end'")
    assert len(json.dumps(done.outputs)) < 1 << 20
    assert done.outputs_omitted is not None
    assert done.outputs_omitted["chars"] > 100_000_000
    assert done.omitted_bytes > 100_000_000
    assert done.output.endswith("'the end'\n")
    assert calc.exec("1 + 1", timeout=LONG).output == "2\n"


def test_a_child_that_the_kernel_forks_does_not_keep_the_cell(home: HomeForTests, calc: Session) -> None:
    source = "import os, time\nchild = os.fork()\nif not child:\n    time.sleep(1000)\n    os._exit(0)\nchild"
    child = int(calc.exec(source, timeout=LONG).output)
    assert child in [p["pid"] for p in home("ps", "calc", "--json").json]
    assert calc.exec("os.kill(child, 9); os.waitpid(child, 0)[1]", timeout=LONG).output == "9\n"


def test_code_that_is_no_text_is_refused_in_one_line(home: HomeForTests, calc: Session) -> None:
    refused = home("exec", "calc", b"print('\xff')")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_a_record_that_cannot_be_written_costs_that_record_and_not_the_heap(home: HomeForTests, calc: Session) -> None:
    calc.exec("precious = 3", timeout=LONG)
    folder = home.path / "sessions" / calc.id / "exec"
    exec_id = "exe_" + os.urandom(8).hex()
    (folder / f"{exec_id}.cell").mkdir()  # where its outputs should go, as a full disk would have it
    done = home.host.call("exec", session="calc", words=["precious"], exec_id=exec_id, timeout=LONG)
    assert (done["state"], done["exit_code"], done["outputs"]) == ("exited", 0, [])
    (folder / f"{exec_id}.cell").rmdir()
    assert calc.exec("precious", timeout=LONG).outputs[0]["data"]["text/plain"] == "3"


# -- what it is doing


def test_activity_is_what_the_kernel_says(calc: Session, tmp_path: Path) -> None:
    idle = until(lambda: (a := calc.status().activity).kind == "at_prompt" and a, LONG)
    assert (idle.confidence, idle.evidence) == ("certain", "kernel idle")
    go = tmp_path / "go"
    running = calc.exec(UNTIL_THERE.format(str(go)), timeout=0.1)
    assert running.state == "running"
    busy = until(lambda: (a := calc.status().activity).kind == "running" and a, LONG)
    assert (busy.confidence, busy.evidence) == ("certain", "kernel busy")
    go.touch()
    assert calc.wait(done=running.exec_id, timeout=LONG).event == "done"
    assert calc.exec_result(running.exec_id).exit_code == 0


def test_what_runs_too_long_goes_on_and_an_interrupt_ends_it(home: HomeForTests, calc: Session) -> None:
    running = home(
        "exec", "calc", "--timeout", "0.5", "--json", "--", "kept = 5\nprint('be' + 'gun')\nwhile True: pass"
    )
    assert (running.code, running.json["state"]) == (124, "running")
    assert calc.wait(text="begun\r", timeout=LONG).event == "text"
    assert home("kill", "calc", "-s", "INT").code == 0
    ended = home("exec-result", "calc", running.json["exec_id"], "--wait", "--json", timeout=LONG).json
    assert (ended["state"], ended["exit_code"], ended["error"]["ename"]) == ("exited", 1, "KeyboardInterrupt")
    assert calc.exec("kept", timeout=LONG).output == "5\n"


def test_an_interrupt_that_comes_before_the_kernel_has_begun_is_not_lost(home: HomeForTests, calc: Session) -> None:
    about = calc.status().kernel
    assert about is not None
    os.kill(about["pid"], signal.SIGSTOP)
    try:
        running = calc.exec("while True: pass", timeout=0.1)
        until(lambda: calc.status().activity.evidence == "kernel busy", LONG)
        assert home("kill", "calc", "-s", "INT").code == 0
        assert calc.exec_result(running.exec_id).state == "running"
    finally:
        os.kill(about["pid"], signal.SIGCONT)
    ended = calc.exec_result(running.exec_id, wait=True, timeout=LONG)
    assert ended.error is not None
    assert ended.error["ename"] == "KeyboardInterrupt"


def test_a_question_is_seen_and_answered(home: HomeForTests, calc: Session) -> None:
    asked = calc.exec("name = input('Your name? ')\nprint('hello', name)", timeout=LONG)
    assert (asked.state, asked.prompt) == ("waiting_for_input", "Your name? ")
    assert home("send", "calc", "ada", "--enter").code == 0
    done = calc.exec_result(asked.exec_id, wait=True, timeout=LONG)
    assert (done.state, done.outputs) == (
        "exited",
        [{"output_type": "stream", "name": "stdout", "text": "hello ada\n"}],
    )


def test_a_password_is_answered_from_the_inbox_and_is_nowhere_afterwards(home: HomeForTests, calc: Session) -> None:
    secret = "Zq" + os.urandom(12).hex()
    asked = calc.exec("import getpass\ngiven = getpass.getpass('Key: ')\nlen(given)", timeout=LONG)
    assert (asked.state, asked.prompt) == ("waiting_for_secret", "Key: ")
    item = until(lambda: [i for i in home("inbox", "--json").json if i["kind"] == "secret"], LONG)[0]
    assert home("answer", item["id"], "--stdin", stdin=secret.encode() + b"\n").code == 0
    done = calc.exec_result(asked.exec_id, wait=True, timeout=LONG)
    assert done.outputs[0]["data"]["text/plain"] == str(len(secret))
    assert calc.exec("del given", timeout=LONG).exit_code == 0
    for file in home.path.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


# -- several who use it


def test_executions_queue_and_none_is_lost(home: HomeForTests, calc: Session, tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = calc.exec("order = []\n" + UNTIL_THERE.format(str(go)), timeout=0.1)
    assert first.state == "running"

    def one(n: int) -> str:
        with Host(str(home.path)) as host:
            return Session(host, calc.id, "calc").exec(f"order.append({n})", timeout=LONG).state

    with ThreadPoolExecutor(4) as pool:
        rest = [pool.submit(one, n) for n in range(4)]
        go.touch()
        assert [r.result() for r in rest] == ["exited"] * 4
    assert sorted(json.loads(calc.exec("order", timeout=LONG).output)) == [0, 1, 2, 3]


def test_who_does_not_want_to_wait_for_a_turn_is_told_that_nothing_began(
    home: HomeForTests, calc: Session, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    calc.exec("began = []\n" + UNTIL_THERE.format(str(go)), timeout=0.1)
    refused = home("exec", "calc", "--timeout", "0.1", "--", "began.append(1)")
    assert (refused.code, "has not begun" in refused.err) == (5, True)
    go.touch()
    assert calc.exec("began", timeout=LONG).output == "[]\n"


def test_two_operators_share_the_variables_and_the_journal_knows_both(hold: HomeForTests) -> None:
    calc = kernel(hold)
    enrol(hold, "helper", verbs=["view", "exec", "type", "signal"])
    theirs = Session(acting_as(hold, "helper"), calc.id, "calc")
    assert calc.exec("shared = [1]", timeout=LONG, why="mine").exit_code == 0
    assert theirs.exec("shared.append(2); shared", timeout=LONG, why="theirs").output == "[1, 2]\n"
    assert calc.exec("shared", timeout=LONG).output == "[1, 2]\n"
    ran = [(e["name"], e["text"], e["why"]) for e in journal(hold, "exec")][1:3]
    assert [text for _, text, _ in ran] == ["shared = [1]", "shared.append(2); shared"]
    assert (ran[1][0], ran[0][2], ran[1][2]) == ("helper", "mine", "theirs")
    assert ran[0][0] != "helper"
    theirs.host.close()


def test_who_comes_while_anothers_cell_runs_waits_for_it(hold: HomeForTests, tmp_path: Path) -> None:
    calc, go = kernel(hold), tmp_path / "go"
    enrol(hold, "helper", verbs=["view", "exec", "type"])
    running = calc.exec("shared = []\n" + UNTIL_THERE.format(str(go)) + "shared.append(1)", timeout=0.1)
    assert running.state == "running"
    with acting_as(hold, "helper") as host, ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(Session(host, calc.id, "calc").exec, "shared.append(2); shared", timeout=LONG)
        go.touch()
        assert theirs.result().output == "[1, 2]\n"


def test_a_question_outlives_the_daemon_that_saw_it(hold: HomeForTests) -> None:
    calc = kernel(hold)
    asked = calc.exec("name = input('Your name? ')\nname", timeout=LONG)
    assert asked.state == "waiting_for_input"
    hold.kill_daemon()
    again = calc.exec_result(asked.exec_id, wait=True, timeout=LONG)
    assert (again.state, again.prompt) == ("waiting_for_input", "Your name? ")
    calc.send("ada", enter=True)
    assert calc.wait(done=asked.exec_id, timeout=LONG).event == "done"
    assert calc.exec_result(asked.exec_id).outputs[0]["data"]["text/plain"] == "'ada'"


def test_controls_that_a_person_holds_keep_an_agent_out(hold: HomeForTests) -> None:
    calc = kernel(hold)
    enrol(hold, "helper", verbs=["view", "exec", "type"])
    assert hold("take", "calc").code == 0
    theirs = Session(acting_as(hold, "helper"), calc.id, "calc")
    with pytest.raises(HoldfastError) as refused:
        theirs.exec("never = 1", timeout=LONG)
    assert refused.value.code == "conflict"
    assert hold("release", "calc").code == 0
    assert theirs.exec("'never' in globals()", timeout=LONG).output == "False\n"
    theirs.host.close()


# -- what dies


def test_a_cell_whose_daemon_was_killed_is_answered_by_the_next(hold: HomeForTests, tmp_path: Path) -> None:
    calc, go = kernel(hold), tmp_path / "go"
    source = f"kept = 'heap'\nprint('begun')\n{UNTIL_THERE.format(str(go))}print('ended')\nkept"
    running = calc.exec(source, timeout=1)
    assert running.state == "running"
    before = calc.status().kernel
    hold.kill_daemon()
    go.touch()
    record = hold.path / "sessions" / calc.id / "exec" / f"{running.exec_id}.cell"
    until(record.exists, LONG)  # the cell ends while there is no daemon at all
    done = calc.exec_result(running.exec_id, wait=True, timeout=LONG)
    assert (done.state, done.exit_code, done.output) == ("exited", 0, "begun\nended\n'heap'\n")
    assert [o["output_type"] for o in done.outputs] == ["stream", "execute_result"]
    assert done.outputs[0]["text"] == "begun\nended\n"
    assert calc.exec("kept", timeout=LONG).output == "'heap'\n"
    after = calc.status().kernel
    assert before is not None
    assert after is not None
    assert before["pid"] == after["pid"]


def test_a_call_under_way_does_not_notice_that_the_daemon_dies(hold: HomeForTests, tmp_path: Path) -> None:
    calc, go = kernel(hold), tmp_path / "go"
    with ThreadPoolExecutor(1) as pool, Host(str(hold.path)) as host:
        call = pool.submit(calc.exec, f"print('here')\n{UNTIL_THERE.format(str(go))}7", timeout=LONG)
        assert Session(host, calc.id, "calc").wait(text="here\r\n", timeout=LONG).event != "timeout"
        hold.kill_daemon()
        go.touch()
        assert call.result().output == "here\n7\n"


def test_a_kernel_that_ends_ends_the_session_with_its_code_and_restart_gives_an_empty_one(hold: HomeForTests) -> None:
    calc = kernel(hold)
    calc.exec("mine = 1", timeout=LONG)
    done = calc.exec("import os\nprint('last', flush=True)\nos._exit(7)", timeout=LONG)
    assert (done.state, done.exit_code) == ("shell_ended", 7)
    assert done.error is not None
    assert done.error["ename"] == "KernelEnded"
    assert calc.wait(exit=True, timeout=LONG).detail["exit"]["code"] == 7  # type: ignore[index]
    refused = hold("exec", "calc", "1")
    assert (refused.code, "not running" in refused.err) == (5, True)
    again = hold("restart", "calc", "--json", timeout=LONG).json
    assert again["generation"] == 2
    done = calc.exec("mine", timeout=LONG)
    assert done.error is not None
    assert (done.error["ename"], done.execution_count) == ("NameError", 1)
    assert "its memory is empty" in read_all(calc).decode()


def test_a_kernel_killed_by_a_signal_is_told_with_it(hold: HomeForTests) -> None:
    calc = kernel(hold)
    about = calc.status().kernel
    assert about is not None
    os.kill(about["pid"], signal.SIGKILL)
    ended = calc.wait(exit=True, timeout=LONG).detail["exit"]
    assert (ended["code"], ended["signal"]) == (None, "SIGKILL")  # type: ignore[index]
    assert not os.path.exists(about["connection_file"])


def test_no_process_is_left_when_the_recorder_is_killed(hold: HomeForTests) -> None:
    calc = kernel(hold)
    status = hold("status", "calc", "--json").json
    os.kill(status["pid"], signal.SIGKILL)
    assert calc.wait(exit=True, timeout=LONG).event == "exit"
    until(lambda: not alive(status["kernel"]["pid"]), LONG)
    until(lambda: calc.status().state == "exited", LONG)


# -- other front ends


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_an_ordinary_front_end_connects_through_the_connection_file(tmp_path: Path, transport: str) -> None:
    from jupyter_client.blocking.client import BlockingKernelClient

    if transport == "ipc":
        folder = Path("/tmp") / f"hk-{os.getpid()}-{threading.get_ident() % 10000}"  # a socket's path has its limit
    else:
        folder = tmp_path / "a-folder-whose-name-is-too-long-for-the-path-of-a-socket-in-it" / "home"
    hold = HomeForTests(folder)
    try:
        calc = kernel(hold)
        calc.exec("ours = 40", timeout=LONG)
        path = hold("status", "calc", "--json").json["kernel"]["connection_file"]
        assert path in hold("status", "calc").out
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        client = BlockingKernelClient(connection_file=path)
        client.load_connection_file()
        assert client.transport == transport
        client.start_channels()
        client.wait_for_ready(timeout=LONG)
        seen: list[str] = []
        reply = client.execute_interactive(
            "theirs = ours + 2; print(theirs)",
            timeout=LONG,
            output_hook=lambda m: seen.append(m["content"].get("text", "")),
        )
        client.stop_channels()
        assert (reply["content"]["status"], "".join(seen)) == ("ok", "42\n")
        assert calc.exec("theirs", timeout=LONG).output == "42\n"
        assert "theirs = ours + 2; print(theirs)" in read_all(calc).decode()  # what others ran is in the log too
    finally:
        hold.close()
        if transport == "ipc":
            import shutil

            shutil.rmtree(folder)


def test_jupyter_console_works_in_the_same_kernel(hold: HomeForTests) -> None:
    calc = kernel(hold)
    calc.exec("ours = 40", timeout=LONG)
    about = calc.status().kernel
    assert about is not None
    console = hold.run(
        sys.executable,
        "-m",
        "jupyter_console",
        "--existing",
        about["connection_file"],
        "--simple-prompt",
        name="console",
    )
    assert console.wait(text=r"In \[", timeout=LONG).event != "timeout"
    console.send("theirs = ours + 2", enter=True)
    until(lambda: calc.exec("globals().get('theirs')", timeout=LONG).output == "42\n", LONG, pause=0.2)


def test_any_installed_kernelspec_can_be_held_with_its_environment(
    hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Mine",
        "language": "other",
        "env": {"FROM_SPEC": "yes"},
        "interrupt_mode": "message",
    }
    monkeypatch.setenv("JUPYTER_PATH", add_spec(tmp_path, "mine", spec))  # of the host, which starts with this
    calc = kernel(hold, kernel="mine")
    assert calc.exec("import os; os.environ['FROM_SPEC']", timeout=LONG).output == "'yes'\n"
    about = calc.status().kernel
    assert about is not None
    assert (about["display_name"], about["language"]) == ("Mine", "other")
    running = calc.exec("import time\nprint('be' + 'gun')\nwhile True: time.sleep(0.1)", timeout=0.1)
    assert calc.wait(text="begun\r", timeout=LONG).event == "text"
    assert hold("kill", "calc", "-s", "INT").code == 0  # told by a message, as this kernelspec wants it
    assert calc.exec_result(running.exec_id, wait=True, timeout=LONG).exit_code == 1


# -- people


def test_a_person_can_type_code_into_it(hold: HomeForTests) -> None:
    with AttachedTerminal(hold, "run", "--kernel", "python3", "-n", "calc") as terminal:
        terminal.shows("In [1]:", LONG)
        terminal.type(b"6 * 7\r")
        terminal.shows("Out[1]: 42", LONG)
        terminal.type(b"def f(x):\r")
        terminal.shows("...:", LONG)
        terminal.type(b"    return x + 1\r\r")
        terminal.shows("In [3]:", LONG)
        terminal.type(b"exec('print(1000 + 1)\\nwhile True: pass')\r")
        terminal.shows("1001", LONG)
        terminal.type(b"\x03")
        terminal.shows("KeyboardInterrupt", LONG)
        terminal.shows("In [4]:", LONG)
        terminal.type(b"\x1cd")
        assert terminal.wait(LONG) == 0
    assert hold("exec", "calc", "f(41)").out == "42\n"


def test_without_a_terminal_it_is_left_running_with_a_hint(hold: HomeForTests) -> None:
    started = hold("run", "--kernel", "python3", "-n", "calc")
    assert (started.code, "hold exec calc" in started.err) == (0, True)
    assert started.out.endswith("\tcalc\n")
    assert hold("exec", "calc", "1 + 1", timeout=LONG).out == "2\n"


# -- what cannot be


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--kernel", "nosuch"], 3, "python3"),
        (["--kernel", "../x"], 2, "kernelspec"),
        (["--kernel", "python3", "--", "ls"], 2, "leave out"),
        (["--kernel", "python3", "--pipes"], 2, "pipes"),
        (["--kernel", "python3", "--isolate"], 2, "isolate"),
    ],
)
def test_what_cannot_be_started_is_one_line(home: HomeForTests, words: list[str], code: int, says: str) -> None:
    refused = home("run", "-d", *words)
    assert (refused.code, refused.err.count("\n"), refused.out) == (code, 1, "")
    assert says in refused.err


@pytest.mark.parametrize("spec", ["{", "{}", '{"argv": [], "display_name": "x", "language": "x"}'])
def test_a_broken_kernelspec_is_one_line(hold: HomeForTests, tmp_path: Path, spec: str) -> None:
    refused = hold("run", "-d", "--kernel", "broken", JUPYTER_PATH=add_spec(tmp_path, "broken", spec))
    assert (refused.code in (2, 3), refused.err.count("\n")) == (True, 1)


def test_a_kernel_that_cannot_start_ends_its_session_and_the_log_says_why(hold: HomeForTests, tmp_path: Path) -> None:
    spec = {"argv": [str(tmp_path / "nothing"), "{connection_file}"], "display_name": "x", "language": "x"}
    started = hold("run", "-d", "-n", "x", "--kernel", "x", JUPYTER_PATH=add_spec(tmp_path, "x", spec))
    assert started.code == 0
    ended = hold("wait", "x", "--for", "exit", "--timeout", str(LONG), "--json", timeout=LONG).json
    assert ended["detail"]["exit"]["code"] == 1
    assert "could not be started" in hold("logs", "x").out
