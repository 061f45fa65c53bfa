"""A session's stable links to what follows its latest controller: the agent that holds keys, and the display."""

from __future__ import annotations

import logging
import os

log = logging.getLogger("holdfast.host")


def follow_links(links: str, env: dict[str, str]) -> None:
    """Point the session's stable links at the latest controller's agent and display."""
    display = env.get("DISPLAY", "")
    targets = {"ssh-agent": env.get("SSH_AUTH_SOCK")}
    if display.startswith(":"):
        targets["display"] = "/tmp/.X11-unix/X" + display[1:].split(".")[0]
    for name, target in targets.items():
        path = os.path.join(links, name)
        if not target or os.path.realpath(target) == os.path.realpath(path) or target == path:
            continue
        temporary = path + ".new"
        try:
            os.makedirs(links, mode=0o700, exist_ok=True)  # most sessions never need them
            if os.path.lexists(temporary):
                os.unlink(temporary)
            os.symlink(target, temporary)
            os.replace(temporary, path)
        except OSError:
            log.warning("could not point %s at %s", path, target)
