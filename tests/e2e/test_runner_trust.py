"""What a runner takes for its own: a verification that the attempt began itself is none, and a session out of sight is
not taken for one that is gone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HomeForTests, alive
from tests.support.operators import enrol, journal
from tests.support.runners import DEADLINE_S, Project, runner_of

# A backend that acts as its runner's own operator and begins the verification first, under the runner's own request id.
_FIRST = """
import json, os, sys
from holdfast.client.process import VERIFIER as program
from holdfast.client.requests import own_limits
from holdfast.client._sync.host import Host

request, how, command = sys.argv[1].replace("RUN", os.environ["HOLDFAST_RUN"]), sys.argv[2], sys.argv[3]
theirs = ("HOLDFAST_ATTEMPT", "HOLDFAST_BRIEF", "HOLDFAST_CONTRACT", "HOLDFAST_PROJECT_ROOT", "HOLDFAST_SESSION")
env = {k: v for k, v in os.environ.items() if k not in theirs}
if how == "poisoned":
    env["PATH"] = f"{os.getcwd()}/evil:{env['PATH']}"
os.umask(umask := os.umask(0))
with Host() as host:
    made = host.call("run", request=request, name="verify-demo.1-1", cwd=os.getcwd(), env=env, pipes=True, record=True,
                     umask=umask, rlimits=own_limits(), written_by=None, restart="never",
                     command=[sys.executable, "-I", program, json.dumps([{"command": command, "timeout_s": 60.0}])])
    host.session(made["id"]).wait(exit=True, timeout=60)
    print(made["id"], flush=True)
"""


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path) -> Iterator[Project]:
    made = Project(hold, tmp_path)
    yield made
    made.close()


def first(project: Project, request: str, how: str, command: str, then: str = "") -> None:
    """A task whose backend verifies it first, in its own way."""
    code = project.folder / "first.py"
    code.write_text(_FIRST)
    before = "mkdir -p evil; printf '#!/bin/sh\\nexit 0\\n' > evil/mytool; chmod +x evil/mytool; touch made"
    line = f"{sys.executable} {code} '{request}' {how} '{command}' > {project.folder}/begun || exit 9"
    project.backend("cheat", f"{before}\n{line}\n{then}")
    project.policy(backends=["cheat"], retry={"attempts_max": 1})
    project.add("1", verification=[{"command": command, "timeout_s": 60.0}])


@pytest.mark.parametrize("request_id", ["req_RUN-verify-1", "req_RUN-verify-1-guessed"])
@pytest.mark.parametrize("how", ["poisoned", "early"])
def test_a_verification_that_the_attempt_began_itself_does_not_count(
    project: Project, how: str, request_id: str
) -> None:
    command = "mytool" if how == "poisoned" else "test -e made"
    first(project, request_id, how, command, then="rm made")
    runner = project.run_once()
    theirs = (project.folder / "begun").read_text().strip()
    assert runner.saw("not_ours")["session"] == "verify-demo.1-1"
    shown = project.show()
    assert shown["status"] == "blocked", shown
    result = shown["attempts"][0]["verification"]["results"][0]
    assert (result["state"], result["session"] != theirs) == ("failed", True)
    begun = [e for e in journal(project.hold, "start") if e["session_name"].startswith("verify-demo.1-1")]
    assert len(begun) == 2, "both are in the journal"


def test_an_agents_runner_says_that_it_may_not_see_the_session_and_what_to_do(project: Project) -> None:
    hold, go = project.hold, project.folder / "go"
    enrol(hold, "bot", "agent")
    project.backend("gated", 'echo "$$" >> pids; until [ -e "$1" ]; do sleep 0.05; done; echo x >> out', str(go))
    project.policy(backends=["gated"])
    project.add("1")
    person = project.runner()
    pid = person.saw("started")["pid"]
    person.kill()
    bot = runner_of(project, "bot", "--once")
    told = bot.saw("blocked")
    bot.wait()
    assert "bot may not see it" in told["failure_detail"]
    advice = "hold operator grant bot --grant view,stop --session demo.1-1"
    assert advice in told["failure_detail"]
    report = project.show()
    assert report["status"] == "blocked"
    assert advice in report["why"]
    assert alive(pid), "nobody ended it, and nobody began another"
    assert hold("operator", *advice.split()[2:]).code == 0
    project.tasks.unblock("1", project="demo", why="it may look now")
    again = runner_of(project, "bot", "--once")
    assert again.saw("adopted")["pid"] == pid
    go.touch()
    assert again.wait() == 0, again.events
    assert project.wait("done")["attempts"][0]["outcome"] == "done"
    assert len((project.root / "pids").read_text().split()) == 1, DEADLINE_S
