"""Ways around the rules that were tried: each is closed, and stays closed."""

from __future__ import annotations

from typing import Any

from tests.support.home import HomeForTests, read_all, until
from tests.support.operators import INSIDE, acting_as, enrol


def test_what_is_started_or_typed_from_a_shell_that_an_agent_had_its_hands_on_is_in_its_hands_too(
    hold: HomeForTests,
) -> None:
    """An agent types `hold` into a person's shell: neither a new session, its restart nor a second shell is a person."""
    for name in ("web-1", "web-2"):
        hold.run("bash", "--norc", name=name).wait(input=True, timeout=60)
    enrol(hold, "bot", verbs=["view", "start", "type", "exec", "request_control"], sessions=["web-*"])
    with acting_as(hold, "bot") as bot:
        shell = bot.session("web-1")
        asks = "operator whoami --json"
        shell.exec(f"{INSIDE} run -d --name web-3 -- {INSIDE} {asks}", timeout=60)
        shell.exec(f"{INSIDE} send web-2 --enter '{INSIDE} {asks}'", timeout=60)
    started = hold.host.session("web-3")
    started.wait(exit=True, timeout=60)
    assert '"bound_by":["bot"]' in _said(started)
    hold("restart", "web-3")
    until(lambda: _said(started).count('"bound_by":["bot"]') == 2, 60)
    until(lambda: '"bound_by":["bot"]' in _said(hold.host.session("web-2")), 60)


def _said(session: Any) -> str:
    return "".join(read_all(session).decode(errors="replace").split())
