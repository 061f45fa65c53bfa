"""Agents over HTTP: the same tools behind exact names and tokens, in a process that outlives the daemon."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.agents import ERAS, every_tool, over_http
from tests.support.home import HomeForTests, alive, until
from tests.support.web import request, serve, token, web_pid


@pytest.mark.parametrize("era", ERAS)
async def test_every_tool_works_over_http(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    url = serve(hold)
    async with over_http(url, token(hold, "remote"), era) as tools:
        listed = {tool.name for tool in (await tools.client.list_tools()).tools}
        assert await every_tool(tools, tmp_path) == listed
        assert (await tools("status"))["you"] == "remote"


@pytest.mark.parametrize("era", ERAS)
async def test_each_token_is_an_agent_of_its_own(hold: HomeForTests, era: str) -> None:
    url = serve(hold)
    async with over_http(url, token(hold, "one"), era) as one, over_http(url, token(hold, "two"), era) as two:
        await one("run", name="shell")
        assert [s["session"] for s in (await one("status"))["sessions"]] == ["shell"]
        assert (await two("status"))["sessions"] == []
    assert hold.host.session("shell").status().started_by == next(
        o["id"] for o in hold.host.operators() if o["name"] == "one"
    )


async def test_the_port_outlives_the_daemon_and_its_calls_bring_the_daemon_back(hold: HomeForTests) -> None:
    url = serve(hold)
    secret = token(hold, "remote")
    async with over_http(url, secret) as tools:
        await tools("run", name="shell")
    web = web_pid(hold)
    assert web is not None
    hold.kill_daemon()
    assert alive(web)
    assert request(url, "/healthz", method="GET") == (200, {"ok": True})
    async with over_http(url, secret) as tools:
        assert (await tools("exec", session="shell", command="echo still"))["output"] == "still\n"
    assert until(lambda: web_pid(hold), 60) == web, "the new daemon has adopted it"


def test_a_dead_web_process_is_started_again_at_the_same_place(hold: HomeForTests) -> None:
    url = serve(hold)
    web = web_pid(hold)
    assert web is not None
    os.kill(web, signal.SIGKILL)
    until(lambda: web_pid(hold) not in (None, web), 60)
    assert request(url, "/healthz", method="GET") == (200, {"ok": True})


def test_hold_down_ends_it_and_hold_up_brings_it_back(hold: HomeForTests) -> None:
    url = serve(hold)
    web = web_pid(hold)
    assert web is not None
    assert hold("down").code == 0
    until(lambda: not alive(web), 60)
    assert hold("up").code == 0
    until(lambda: web_pid(hold), 60)
    assert request(url, "/healthz", method="GET") == (200, {"ok": True})
    assert url in hold("status").out
    assert any(c["name"] == "web" and c["status"] == "ok" for c in hold("doctor", "--json").json["checks"])
    again = web_pid(hold)
    assert again is not None
    assert hold("up", "--web", "off").code == 0
    until(lambda: not alive(again), 60)
    assert hold.host.call("ping")["host"]["web"] is None


def test_hold_down_ends_it_also_where_the_daemon_is_dead(hold: HomeForTests) -> None:
    serve(hold)
    web = web_pid(hold)
    assert web is not None
    hold.kill_daemon()
    assert hold("down").code == 0
    until(lambda: not alive(web), 60)


def test_a_port_that_is_taken_or_nonsense_is_refused_in_one_line(hold: HomeForTests, tmp_path: Path) -> None:
    url = serve(hold)
    other = HomeForTests(tmp_path / "other")
    try:
        taken = other("up", "--web", url.rpartition(":")[2])
        assert (taken.code, len(taken.err.strip().splitlines())) == (1, 1)
        assert "cannot listen" in taken.err
        assert other.host.call("ping")["host"]["web"] is None
    finally:
        other.close()
    for nonsense in ("nowhere", "0.0.0.0:80", "[::]:80", "1:2:99999", "99999", "bad host:80"):
        refused = hold("up", "--web", nonsense)
        assert (refused.code, len(refused.err.strip().splitlines())) == (2, 1), nonsense
