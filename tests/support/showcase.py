"""A home in which things go on, as on a working day: for looking at every screen of the console."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.home import HomeForTests, until
from tests.support.operators import acting_as, enrol
from tests.support.tasks import ok

Json = dict[str, Any]

_BUILD = r"""
printf '\033[1mshop\033[0m api tests\n\n'
for t in login_link link_expires link_is_single_use mail_is_queued session_cookie logout; do
  printf '  \033[32mok\033[0m    tests/login/test_%s.py  \033[2m0.%s s\033[0m\n' "$t" "${#t}"
done
printf '  \033[31mFAIL\033[0m  tests/login/test_clock_skew.py\n\n'
printf '    assert token.age(now) <= LIMIT\n    \033[31mE   61 <= 60\033[0m\n\n'
printf '6 passed, \033[31m1 failed\033[0m in 2.31 s\n'
"""
_DEPLOY = r"""
echo 'building image shop:4f1c2ab ...'; echo 'pushed registry.local/shop:4f1c2ab'
echo 'plan: 3 to change, 0 to destroy'
read -r -p 'Deploy to production? [y/N] ' answer; echo "$answer"; sleep 3600
"""


def fill(hold: HomeForTests, folder: Path) -> dict[str, str]:
    """Sessions, an inbox, a project; the ids by what they are for."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = _sessions(hold, folder)
    ids["run"] = _project(hold, folder)
    return ids


def _sessions(hold: HomeForTests, folder: Path) -> dict[str, str]:
    enrol(hold, "claude", sessions=["*"])
    enrol(hold, "nightly", "service")
    claude = acting_as(hold, "claude")
    cwd = str(folder)
    calm = {"PS1": r"\[\e[36m\]shop\[\e[0m\]$ ", "HOLDFAST_HOME": str(hold.path), "SHELL": "/bin/bash"}
    bash = ["bash", "--norc", "--noprofile", "-i"]
    web = hold.run("python3", "-m", "http.server", "0", "--bind", "127.0.0.1", name="web", cwd=cwd)
    until(lambda: web.status().ports, 60)
    (folder / "test.sh").write_text(_BUILD)
    agent = claude.run(bash, name="fix-login", cwd=cwd, env=calm)
    agent.take(why="working on 1.1")
    agent.exec("ls", timeout=60)
    agent.exec("grep -c LIMIT *.sh; test -d src", timeout=60, why="is it the limit?")
    for typed in ("clear", "bash test.sh"):
        agent.send(typed, enter=True)
    shell = hold.run(*bash, name="shell", cwd=cwd, env=calm)
    shell.send("bash test.sh", enter=True, why="what is left")
    for ran in (agent, shell):
        assert ran.wait(text="in 2.31 s", timeout=60).event != "timeout"
    deploy = claude.run(["bash", "-c", _DEPLOY], name="deploy", cwd=cwd)
    secret = hold.run(
        "bash", "-c", "read -r -s -p 'Password for registry.local: ' p; sleep 3600", name="registry", cwd=cwd
    )
    for waiting in (deploy, secret):
        assert waiting.wait(input=True, timeout=60).event != "timeout"
    failed = hold.run(
        "bash",
        "-c",
        "echo 'migrating 0042_orders'; echo 'error: lock timeout on orders' >&2; exit 3",
        name="migrate",
        cwd=cwd,
    )
    done = hold.run("bash", "-c", "echo '1,204 files checked, no problem'", name="lint", cwd=cwd)
    for ended in (failed, done):
        assert ended.wait(exit=True, timeout=60).event != "timeout"
    claude.ask(
        "The clock check is off by one second. Widen the limit to 61 s, or fix the rounding?",
        session=agent.id,
        options=["fix the rounding", "widen the limit"],
    )
    claude.close()
    return {"web": web.id, "agent": agent.id, "shell": shell.id, "deploy": deploy.id, "secret": secret.id}


def _project(hold: HomeForTests, folder: Path) -> str:
    todo = hold.host.work.tasks
    todo.init("shop", phases=["build", "ship"], root=str(folder))
    contract = {
        "goal": "A link in a mail logs in; no password anywhere",
        "verification": ["bash test.sh && false"],
        "constraints": ["no new dependency", "the old form stays until the release"],
        "acceptance": ["a link works once", "a link of yesterday does not"],
        "scope": ["src/login/**"],
    }
    todo.add("Log in by mail", id="1.1", contract=contract, project="shop")
    todo.add("Say so in the docs", id="1.2", after=["1.1"], contract={"goal": "the guide has a page"}, project="shop")
    todo.add("Rate limit on mails", id="1.3", contract={"goal": "five an hour"}, project="shop")
    todo.add(
        "Clean up old sessions",
        id="1.4",
        contract={"goal": "none is older than 30 days", "verification": ["true"]},
        project="shop",
    )
    todo.add("Announce it", id="2.1", phase="ship", contract={"goal": "a mail to everybody"}, project="shop")
    todo.done("1.4", project="shop")
    first = todo.start("1.1", worker="claude-1", backend="claude", project="shop")
    why = {
        "failure_type": "test_failure",
        "failure_detail": "test_clock_skew: 61 <= 60",
        "suggested_focus": "rounding of token.age",
        "convergence": "converging",
    }
    todo.fail("1.1", run=first["run"], epoch=first["epoch"], classification=why, project="shop")
    run = str(todo.start("1.1", project="shop")["run"])
    todo.block("1.3", question="Per address, or per account?", why="both are common", project="shop")
    _record(hold, folder, run)
    return run


def _record(hold: HomeForTests, folder: Path, run: str) -> None:
    plan = ["round in token.age", "widen the test", "ask for a review"]
    ok(hold, "note", run, "The limit is right; token.age rounds up. Fix the rounding.", "--kind", "decision")
    ok(hold, "note", run, "Storing tokens in Redis: a dependency more, for nothing", "--kind", "rejected")
    ok(hold, "step", "begin", run, "patch:token.py", "--effect", "idempotent")
    ok(hold, "step", "end", run, "patch:token.py", "--result", '{"lines": 4}')
    ok(
        hold,
        "checkpoint",
        "save",
        run,
        "--label",
        "found it",
        "--set",
        f"plan={json.dumps(plan)}",
        "--set",
        'goal="a link in a mail logs in"',
    )
    ok(hold, "step", "begin", run, "mail:reviewers", "--effect", "unsafe", "--action", "mail the reviewers")
    ok(hold, "step", "fail", run, "mail:reviewers", "--error", "connection lost", "--unknown")
    ok(
        hold,
        "checkpoint",
        "save",
        run,
        "--label",
        "patched",
        "--set",
        f"plan={json.dumps(plan[1:])}",
        "--set",
        'context={"file": "src/login/token.py"}',
    )
    report = folder / "rounding.md"
    report.write_text("# Why 61 <= 60\n")
    ok(hold, "artifact", "put", run, str(report))
