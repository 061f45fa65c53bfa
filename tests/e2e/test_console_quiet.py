"""A page that shows the sessions costs those that rest nothing, and is told at once of those that do not."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.support.console import Browser, Socket
from tests.support.home import HomeForTests
from tests.support.web import serve

SHELL = ["bash", "--norc", "--noprofile", "-i"]
_QUIET_S = 5.0  # a page that looked by the clock would look several times


@pytest.fixture
def browser(hold: HomeForTests) -> Any:
    made = Browser(hold, serve(hold))
    yield made
    made.close()


def _switches(pid: int) -> int:
    """How often a process was woken."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


async def _seen(live: Socket, session: str, **facts: Any) -> None:
    def told() -> bool:
        latest = [s for t in live.texts if t["kind"] == "sessions" for s in t["sessions"] if s["id"] == session]
        return bool(latest) and all(latest[-1][key] == value for key, value in facts.items())

    await live.until(told)


async def _resting(live: Socket, keepers: list[int]) -> None:
    """Until none of them was woken for a while, with the page open."""
    deadline, since, before = time.monotonic() + 60, time.monotonic(), [_switches(k) for k in keepers]
    while time.monotonic() - since < _QUIET_S:
        await asyncio.wait({reading := asyncio.ensure_future(live.step())}, timeout=0.5)
        reading.cancel()
        now = [_switches(k) for k in keepers]
        if now != before:
            since, before = time.monotonic(), now
        assert time.monotonic() < deadline, "somebody looks at sessions that rest"


async def test_sessions_that_rest_are_left_alone_while_a_page_is_open(hold: HomeForTests, browser: Browser) -> None:
    sessions = [hold.run(*SHELL, name=f"shell-{n}", env={"PS1": "$ "}) for n in range(3)]
    keepers = [hold.host.call("status", session=s.id)["keeper_pid"] for s in sessions]
    async with browser.socket("/api/live") as live:
        for session in sessions:
            await _seen(live, session.id, last_line="$")
        await _resting(live, keepers)
        await asyncio.to_thread(sessions[1].send, "echo so this is news", enter=True)
        await _seen(live, sessions[1].id, last_line="$")
        await asyncio.to_thread(hold, "rename", "shell-0", "other-name")
        await _seen(live, sessions[0].id, name="other-name")
        await asyncio.to_thread(sessions[2].stop, 0)
        assert (await live.text("gone"))["id"] == sessions[2].id


async def test_a_program_that_begins_to_listen_without_a_word_is_seen(hold: HomeForTests, browser: Browser) -> None:
    program = "import socket, sys, time; sys.stdin.readline(); s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); time.sleep(600)"
    session = hold.run("bash", "-c", f'stty -echo; exec python3 -c "{program}"', name="serves")
    async with browser.socket("/api/live") as live:
        await _seen(live, session.id, ports=[])
        await asyncio.to_thread(session.send, "", enter=True)

        def listens() -> bool:
            told = [s for t in live.texts if t["kind"] == "sessions" for s in t["sessions"] if s["id"] == session.id]
            return bool(told and told[-1]["ports"])

        await live.until(listens)
