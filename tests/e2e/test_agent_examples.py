"""The worked examples run as they are printed: agents that lose everything finish their job, and do nothing twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.home import HomeForTests

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PAGE = str([f"<p>{part}</p>" for part in ("orders", "stock", "people", "summary")])


@pytest.mark.timeout(400)  # seven processes that import an agent framework or the MCP SDK each, on two busy cores
@pytest.mark.parametrize("example", ["agent_mcp.py", "agent_openai.py", "agent_langgraph.py"])
def test_an_agent_loses_its_process_its_memory_and_its_connection_and_finishes(
    hold: HomeForTests, tmp_path: Path, example: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)],
        env={**hold.env, "TMPDIR": str(tmp_path)},
        timeout=380,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"the page: {PAGE}" in done.stdout
    assert "the task: done" in done.stdout
    assert "its connection broke" in done.stdout
    (run,) = hold("work", "ls", "--json").json
    steps = hold.host.work.call("step_ls", run=run["run"])
    assert [s["tries"] for s in steps] == [1] * 4, "each was begun once"
    assert {s["state"] for s in steps} <= {"done", "settled"}, "settled: from the record of its session"
    assert all(s.state != "live" for s in hold.host.sessions()), "what the story started is over"


def test_every_example_is_listed_and_says_how_it_is_run() -> None:
    listed = (EXAMPLES.parent / "examples.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"(examples/{path.name})" in listed, path.name
        assert path.read_text().startswith('"""'), path.name
