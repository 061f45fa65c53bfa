"""How long a shell that is not at its prompt is waited for: as long as asked, while it reads start-up files. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...model.sessions.activity import SHELLS

Json = dict[str, Any]

READY_S = 10.0  # a shell may load its start-up files for so long, whatever time was given
FREE_S = 0.5  # a command that is just ending gets this long to give the prompt back
_INTERACTIVE = frozenset({"-i", "-l", "-il", "-li", "--login", "--interactive"})  # with these a shell prompts
# It asks somebody, or is gone.
_NOT_BY_ITSELF = ("waiting_for_input", "waiting_for_secret", "menu", "full_screen", "exited")


def loading(command: Sequence[str], sample: Json, activity: str) -> bool:
    """Whether a shell has not come to its first prompt and will by itself: nobody has typed anything into it yet, so
    what is in the foreground was started by its start-up files, and it asks nobody anything."""
    prompts = os.path.basename(command[0]) in SHELLS and all(word in _INTERACTIVE for word in command[1:])
    return prompts and sample.get("typed") == 0 and activity not in _NOT_BY_ITSELF


def patience(command: Sequence[str], sample: Json, activity: str, young: bool, timeout: float | None) -> float | None:
    """Seconds from the first look until it is given up; None: it is waited for however long it takes."""
    if loading(command, sample, activity):
        return None if timeout is None else max(timeout, READY_S)
    return READY_S if young else FREE_S
