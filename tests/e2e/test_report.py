"""Reports, retention and usage as people use them; and a backup that carries tasks, claims and policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def done(hold: HomeForTests, *words: str) -> str:
    result = hold(*words)
    assert result.code == 0, (words, result.err)
    return result.out.strip()


def some_work(hold: HomeForTests) -> None:
    done(hold, "project", "init", "demo")
    done(hold, "task", "add", HOSTILE, "--id", "1", "--verify", "true")
    done(hold, "task", "add", "Fails", "--id", "2", "--verify", "false")
    done(hold, "task", "start", "1")
    done(hold, "task", "done", "1")
    done(hold, "task", "start", "2")
    assert hold("task", "done", "2").code == 1
    done(hold, "task", "fail", "2", "--why", "it never works", "--type", "test_failure")


def test_a_report_tells_what_was_done_by_whom_and_how_it_ended(host: Host, hold: HomeForTests, tmp_path: Path) -> None:
    some_work(hold)
    found = hold("report", "--json").json
    assert found["totals"]["tasks"] == 2
    assert found["totals"]["attempts"] == {"begun": 2, "done": 1, "failed": 1}
    assert found["totals"]["verifications"] == {"passed": 1, "failed": 1}
    assert [(p["done"], p["failed"]) for p in found["people"]] == [(1, 1)]
    text = done(hold, "report", "--since", "1h", "--markdown")
    assert "it never works" in text
    assert "1 done" in text
    file = tmp_path / "week.html"
    done(hold, "report", "--html", str(file))
    page = file.read_text()
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<rect") == 2
    one = hold("report", "--task", "2", "--json").json
    assert [t["task_id"] for t in one["tasks"]] == ["2"]
    assert one["tasks"][0]["attempts"][0]["failure_type"] == "test_failure"


def test_a_span_without_work_is_one_line_and_empty_lists(hold: HomeForTests) -> None:
    quiet = ("report", "--since", "2020-01-01", "--until", "2020-02-01T00:00:00Z")
    plain = hold(*quiet)
    assert (plain.code, plain.out.count("\n"), plain.err) == (0, 1, "")
    assert plain.out.startswith("no work")
    found = hold(*quiet, "--json").json
    assert (found["tasks"], found["runs"], found["people"]) == ([], [], [])
    assert "no work" in done(hold, *quiet, "--html", "-")


def test_bad_spans_and_forms_are_one_line_each(hold: HomeForTests) -> None:
    for words, code in (
        (("--since", "yesterday"), 2),
        (("--since", "1h", "--until", "2h"), 2),
        (("--project", "nothing"), 3),
        (("--task", "nothing/1"), 3),
        (("--html", "/nonexistent/x.html"), 1),
        (("--markdown", "--html", "x"), 2),
    ):
        refused = hold("report", *words)
        assert (refused.code, refused.err.count("\n")) == (code, 1), (words, refused.err)


def test_ended_work_is_forgotten_when_asked_with_an_age_and_by_who_may(hold: HomeForTests) -> None:
    run = done(hold, "work", "begin")
    done(hold, "work", "end", run)
    left = done(hold, "work", "begin")
    assert hold("prune", "--work").code == 2
    assert hold("prune", "--work", "--older-than", "1d", "--json").json["runs"] == 0
    done(hold, "operator", "add", "bot", "--kind", "agent", "--grant", "work,view", "--session", "*")
    bot = Host(str(hold.path), operator="bot")
    with bot, pytest.raises(HoldfastError) as refused:
        bot.work.prune(0)
    assert refused.value.code == "not_allowed"
    assert hold("prune", "--work", "--older-than", "0s", "--json").json["runs"] == 1
    assert [r["run"] for r in hold("work", "ls", "--json").json] == [left]


def test_usage_tells_what_takes_the_room(hold: HomeForTests) -> None:
    chatty = hold.run("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x", name="chatty")
    assert chatty.wait(exit=True, timeout=60).event != "timeout"
    done(hold, "work", "begin")
    found = hold("usage", "--json").json
    assert found["sessions"][0]["name"] == "chatty"
    assert found["sessions"][0]["bytes"] >= 2_900_000
    assert found["parts"]["all"] >= found["parts"]["sessions"] >= found["sessions"][0]["bytes"]
    assert found["work"]["rows"]["run"] == 1
    assert "session chatty" in done(hold, "usage")


def test_a_backup_carries_tasks_claims_and_policies(hold: HomeForTests, tmp_path: Path) -> None:
    some_work(hold)
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"retry": {"attempts_max": 7}}))
    done(hold, "policy", "set", str(policy), "--why", "be patient")
    done(hold, "claim", "add", "--task", "2", "--file", str(policy))
    saved = str(tmp_path / "all.backup")
    done(hold, "backup", saved)
    other = HomeForTests(tmp_path / "other")
    try:
        done(other, "restore", saved)
        state = other("project", "show", "--project", "demo", "--json").json
        assert [(t["task_id"], t["status"] == "done") for t in state["tasks"]] == [("1", True), ("2", False)]
        assert other("policy", "show", "--project", "demo", "--json").json["policy"]["retry"]["attempts_max"] == 7
        [claim] = other("claim", "ls", "--task", "demo/2", "--json").json
        assert claim["spec"]["path"] == str(policy)
        assert other("report", "--json", "--all").json["totals"]["tasks"] == 2
    finally:
        other.close()
