"""How long one call may take: what is known of clients, what was asked for. Pure.

A call that takes longer than its client waits is lost to the agent, so every wait ends before and returns a cursor.
"""

from __future__ import annotations

from ...model.durations import duration_s
from ...model.errors import HoldfastError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ENV = "HOLDFAST_MCP_WAIT_MAX"
DEFAULT_S = 4.0  # the least patient client known gives up after 5 s; the rest is for the way there and back
MOST_S = 600.0  # a person who takes longer is asked again; a connection that hangs is noticed
# Clients by the beginning of the name that they give themselves. Each gives up after at least 10 s more than this.
_KNOWN = (
    ("claude-code", 100.0),
    ("claude", 50.0),
    ("codex", 50.0),
    ("cursor", 50.0),
    ("visual studio code", 50.0),
    ("vscode", 50.0),
)


def configured(flag: str | None, environ: Mapping[str, str]) -> float | None:
    """What `--wait-max` or the environment says, in seconds; None where neither does."""
    text = flag or environ.get(ENV)
    if not text:
        return None
    try:
        seconds = duration_s(text)
    except HoldfastError as e:
        raise HoldfastError("usage", e.message, e.hint) from None
    if not 0 < seconds <= MOST_S:
        raise HoldfastError("usage", f"a call waits more than 0 and at most {MOST_S:g} s", "--wait-max 50s")
    return seconds


def limit(chosen: float | None, client: str) -> float:
    """The most seconds one call may wait for this client."""
    if chosen is not None:
        return chosen
    name = client.lower()
    return next((seconds for start, seconds in _KNOWN if name.startswith(start)), DEFAULT_S)


def wanted(seconds: float | None, most: float) -> float:
    """As long as the agent asks for, and never past the limit."""
    if seconds is None:
        return most
    if not seconds >= 0:
        raise invalid("wait_s is 0 or more", "leave it out to wait as long as your client bears")
    return min(float(seconds), most)
