"""Exec in a shell that still reads its start-up files: it waits with its caller, and says what it waits for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client._sync.host import Session
from holdfast.model import ids
from holdfast.model.errors import HoldfastError
from tests.support.home import HOLD, HomeForTests, read_all, until

DEADLINE_S = 90.0


@pytest.fixture
def go(tmp_path: Path) -> Iterator[Path]:
    """The file that the start-up files wait for; made at the end, so that no shell is left waiting."""
    path = tmp_path / "go"
    yield path
    path.touch()


def begun(hold: HomeForTests, user: Path, go: Path, name: str) -> Session:
    """A shell that reads its start-up files until `go` is there."""
    user.mkdir(exist_ok=True)
    (user / ".bashrc").write_text(f"echo begun; until [ -e {go} ]; do sleep 0.05; done; ready=yes\n")
    s = hold.run("bash", name=name, env={"HOME": str(user)})
    assert s.wait(text="begun", timeout=DEADLINE_S).event != "timeout"
    return s


@pytest.fixture
def loading(hold: HomeForTests, go: Path, tmp_path: Path) -> Session:
    return begun(hold, tmp_path / "user", go, "slow")


def exec_beside(hold: HomeForTests, session: str, *options: str) -> subprocess.Popen[bytes]:
    words = [*HOLD, "exec", *options, session, "--", "echo $ready"]
    return subprocess.Popen(words, env=hold.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.timeout(180)
def test_a_shell_is_waited_for_past_ten_seconds_until_its_first_prompt_with_a_long_timeout_and_without_one(
    hold: HomeForTests, loading: Session, go: Path, tmp_path: Path
) -> None:
    begun(hold, tmp_path / "user", go, "other")
    with exec_beside(hold, "slow") as without, exec_beside(hold, "other", "--timeout", "80") as long:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                without.wait(12)  # past what is given to every shell
            with pytest.raises(subprocess.TimeoutExpired):
                long.wait(0.5)  # it began after the first, by no more than a process takes to start
        finally:
            go.touch()
        for process in (without, long):
            out, err = process.communicate(timeout=DEADLINE_S)
            assert (process.returncode, out, err) == (0, b"yes\n", b"")


def test_a_caller_whose_time_is_up_hears_that_the_shell_still_loads(loading: Session) -> None:
    with pytest.raises(HoldfastError) as caught:
        loading.exec("true", timeout=0.5)
    assert caught.value.code == "busy"
    assert "still loading its start-up files" in caught.value.message


def test_another_caller_hears_that_one_waits_already(hold: HomeForTests, loading: Session, go: Path) -> None:
    exec_id = ids.new("exe_")
    program = "import sys; from holdfast import Host; Host().call('exec', session='slow', words=['true'], exec_id=sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", program, exec_id], env=hold.env) as process:
        known = {"session": loading.id, "exec_id": exec_id, "since": ""}
        until(lambda: loading.host.call("exec_outcome", **known)["known"] == "running", timeout=DEADLINE_S)
        with pytest.raises(HoldfastError) as caught:
            loading.exec("true")
        assert (caught.value.code, caught.value.message) == ("busy", "another command waits for the prompt in slow")
        go.touch()
        assert process.wait(DEADLINE_S) == 0


def test_a_caller_that_leaves_while_the_shell_loads_leaves_no_command_behind(
    hold: HomeForTests, loading: Session, go: Path
) -> None:
    exec_id = ids.new("exe_")
    program = "import sys; from holdfast import Host; Host().call('exec', session='slow', words=['echo unwanted'], exec_id=sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", program, exec_id], env=hold.env) as process:
        known = {"session": loading.id, "exec_id": exec_id, "since": ""}  # not even a start is old enough to be sure
        until(lambda: loading.host.call("exec_outcome", **known)["known"] == "running", timeout=DEADLINE_S)
        process.kill()
    until(lambda: loading.host.call("exec_outcome", **known)["known"] != "running", timeout=DEADLINE_S)
    go.touch()
    assert loading.exec("echo $ready", timeout=DEADLINE_S).output == "yes\n"
    assert b"unwanted" not in read_all(loading)
