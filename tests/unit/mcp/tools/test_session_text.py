"""What an agent is told of a request that a person is asked about."""

from __future__ import annotations

from holdfast.mcp.tools import session_text


def test_a_request_that_waits_names_its_item_and_what_to_do() -> None:
    told = {"state": "waiting_for_approval", "ask": "ask_1", "expires_at": "2026-01-01T00:00:00Z"}
    assert session_text.waiting(told)["next"].startswith("wait for=answer=ask_1, then call this again")
    begun = session_text.waiting({**told, "state": "running"})  # approved, and not carried out yet
    assert (begun["state"], begun["next"]) == ("running", "call this again for the result")
