"""`hold demo`: the whole story holds here, a broken promise is told loudly, and nothing is left either way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.admin.demo import play, story
from holdfast.cli.admin.demo.demo_home import DemoFailed, DemoHome
from tests.support.home import HOLD, HomeForTests, until


def marked(home: str) -> list[int]:
    """Processes that carry the home in their environment."""
    found = []
    for name in os.listdir("/proc"):
        try:
            environ = Path(f"/proc/{name}/environ").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        if f"HOLDFAST_HOME={home}".encode() in environ.split(b"\0"):
            found.append(int(name))
    return found


@pytest.mark.timeout(400)  # the longest test there is: every promise, one after the other
def test_the_whole_story_holds_and_leaves_nothing(hold: HomeForTests, tmp_path: Path) -> None:
    done = hold("demo", "--json", timeout=380, TMPDIR=str(tmp_path), HOLDFAST_SESSION="ses_elsewhere")
    told = done.json
    assert (done.code, told["ok"]) == (0, True), told["steps"][-1]
    assert [s["title"] for s in told["steps"]] == [title for title, _ in story()]
    assert list(tmp_path.glob("holdfast-demo-*")) == []
    assert list(hold.path.iterdir()) == [], "the caller's own home is not touched"


def test_a_broken_promise_is_told_with_its_details_and_ends_the_story(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    homes, played = [], []

    def works(stage: DemoHome) -> str:
        homes.append(stage.home)
        stage.hold("run", "-d", "-n", "left", "--", "sleep", "1000")
        return "it worked"

    def breaks(stage: DemoHome) -> str:
        stage.check(1 + 1 == 3, "arithmetic holds", sum=1 + 1)
        return ""

    def never(stage: DemoHome) -> str:
        played.append(stage)
        return ""

    assert play([("Works", works), ("Breaks", breaks), ("Never", never)], show=True) == 1
    shown = capsys.readouterr().out
    assert "✓  1 Works" in shown
    assert "✗  2 Breaks" in shown
    assert "promised: arithmetic holds" in shown
    assert "sum: 2" in shown
    assert "Never" not in shown
    assert played == []
    assert not os.path.exists(homes[0])
    assert marked(homes[0]) == []


def test_a_surprise_in_a_step_is_a_broken_promise_too(capsys: pytest.CaptureFixture[str]) -> None:
    def surprises(stage: DemoHome) -> str:
        stage.last = "hold something"
        raise RuntimeError("out of the blue")

    assert play([("Surprises", surprises)], show=False) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert told["steps"][0]["details"] == {"surprise": "RuntimeError('out of the blue')", "after": "'hold something'"}


def test_a_command_that_fails_breaks_its_promise() -> None:
    with DemoHome() as stage, pytest.raises(DemoFailed, match="ends with exit code 0"):
        stage.hold("status", "nobody")


def test_a_terminal_whose_killing_was_interrupted_does_not_stop_the_cleaning_up() -> None:
    with DemoHome() as stage:
        stage.hold("run", "-d", "-n", "left", "--", "sleep", "1000")
        terminal = stage.terminal("attach", "left")
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)  # as far as an interrupted kill() came
    assert not os.path.exists(stage.home)
    assert marked(stage.home) == []


def test_a_demo_that_is_terminated_cleans_up(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen([*HOLD, "demo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    try:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("✓".encode()):  # the build runs, in a session of a home of its own
                break
        [home] = tmp_path.glob("holdfast-demo-*")
        assert marked(str(home))
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 128 + signal.SIGTERM
        assert list(tmp_path.iterdir()) == []
        until(lambda: not marked(str(home)))
    finally:
        demo.kill()
        demo.wait()
        assert demo.stdout is not None
        demo.stdout.close()
