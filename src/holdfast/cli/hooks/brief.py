"""The resume brief for a conversation that begins, and the run that this process works on."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...client.sync import Host

TOKENS_MAX = 2000  # of the model's context, and within what Claude Code takes from a hook


def run_of(host: Host) -> str | None:
    """The run that this process works on: HOLDFAST_RUN."""
    return os.environ.get("HOLDFAST_RUN") or None


def of(host: Host, cwd: str) -> str:
    return ""
