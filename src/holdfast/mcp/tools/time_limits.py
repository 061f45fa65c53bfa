"""The time limit of one call, by client and configuration. Pure.

The agent loses the result of a call that outlasts its client's timeout, so every wait ends before it, with a cursor.
"""

from __future__ import annotations

from ...model.durations import duration_s
from ...model.errors import HoldfastError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ENV = "HOLDFAST_MCP_WAIT_MAX"
DEFAULT_S = 4.0  # the least patient known client gives up after 5 s; the rest is for transport
MOST_S = 600.0  # a longer wait is repeated by the agent; a hanging connection is noticed
# Clients by the beginning of their name. Each gives up after at least 10 s more than this.
_KNOWN = (
    ("claude-code", 100.0),
    ("claude", 50.0),
    ("codex", 50.0),
    ("cursor", 50.0),
    ("visual studio code", 50.0),
    ("vscode", 50.0),
)


def configured(flag: str | None, environ: Mapping[str, str]) -> float | None:
    """The limit from `--wait-max` or the environment, in seconds; None if neither is set."""
    text = flag or environ.get(ENV)
    if not text:
        return None
    try:
        seconds = duration_s(text)
    except HoldfastError as e:
        raise HoldfastError("usage", e.message, e.hint) from None
    if not 0 < seconds <= MOST_S:
        raise HoldfastError("usage", f"--wait-max must be above 0 and at most {MOST_S:g} s", "--wait-max 50s")
    return seconds


def limit(chosen: float | None, client: str) -> float:
    """The longest wait of one call for this client, in seconds."""
    if chosen is not None:
        return chosen
    name = client.lower()
    return next((seconds for start, seconds in _KNOWN if name.startswith(start)), DEFAULT_S)


def wanted(seconds: float | None, most: float) -> float:
    """The requested wait, up to the limit."""
    if seconds is None:
        return most
    if not seconds >= 0:
        raise invalid("wait_s must be at least 0", "leave it out to wait as long as your client allows")
    return min(float(seconds), most)
