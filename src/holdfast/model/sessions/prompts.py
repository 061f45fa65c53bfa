"""The facts of a sample that make a shell's prompt the same as one seen before."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODE = ("canonical", "echo", "icrnl", "inlcr", "vmin", "vtime")


def seen_at_prompt(facts: dict[str, Any]) -> list[object] | None:
    """Which process reads the terminal, in which call and mode; None if the foreground's leader does not, or if unread
    input waits. Only for comparison: whether it is a prompt is judged elsewhere."""
    tty = facts["tty"]
    for thread in facts["threads"]:
        if thread["tid"] == tty["foreground_pgid"] and thread["fd_on_tty"] is True and thread["state"] == "S":
            mode = [tty[key] for key in _MODE]
            return [thread["pid"], thread["name"], thread["count"], *mode] if not facts["in_queue"] else None
    return None
