"""Reads a file that an agent names, in `hold mcp` itself, with the user and mounts of that process.

The host and the web process open no file for an agent, because they have the owner's rights. A file inside the project
is read directly; for any other file a person is asked first, with the path that the kernel resolves.
"""

from __future__ import annotations

import os
from typing import Any

from ...client.files.local_files import Opened, beginning, project_root
from ...model.errors import HoldfastError, invalid
from ...model.sessions.isolation import within
from .call import ToolCall

Json = dict[str, Any]

_READ_MAX = 64 << 20  # bytes; larger files go through hold artifact put
_ASKED_MAX = 100  # open questions; an agent with more ignores the answers


async def content(call: ToolCall, run: str, named: str) -> bytes | Json:
    """The bytes of a file, or the inbox item that is not answered yet."""
    if not call.host.local_files:
        raise HoldfastError("not_allowed", "a path cannot be read over HTTP", "send content instead of a path")
    with _opened(named) as file:
        if not _inside(file.path, call.host.home.path):
            waiting = await _approved(call, run, file.path)
            if waiting is not None:
                return waiting
        data = beginning(file, _READ_MAX + 1)
    if len(data) > _READ_MAX:
        raise invalid(f"{named[:200]} has more than {_READ_MAX:,} bytes", "use hold artifact put")
    return data


def _opened(named: str) -> Opened:
    try:
        return Opened(named)
    except (OSError, ValueError) as e:
        words = getattr(e, "strerror", None) or e
        raise HoldfastError("failed", f"cannot read {named[:200]}: {words}", "give a regular file") from None


def _inside(path: str, home: str) -> bool:
    """Whether a file is inside the project. Holdfast's own files, such as keys, are refused."""
    if within(path, os.path.realpath(home)):
        raise HoldfastError("not_allowed", "Holdfast's own files cannot be artifacts", "give a file of the project")
    root = project_root(os.getcwd())
    return root is not None and within(path, root)


async def _approved(call: ToolCall, run: str, path: str) -> Json | None:
    """None once a person has approved exactly this file, for one use; the item while it is open.

    Raises if denied. The same call again uses the same item, as long as this process lives.
    """
    asked, key = call.agent.asked, (run, path)
    if key not in asked:
        if len(asked) >= _ASKED_MAX:
            asked.pop(next(iter(asked)))
        words = f"read {path}, outside the project, and store it as an artifact of {run}"
        item = await call.host.ask_raw(words, session=None, options=(), why=None, kind="approval")
        asked[key] = str(item["id"])
    ask = asked[key]
    found = await call.waiting(call.host.asked_raw(ask, call.limit), call.limit, "waiting for a person")
    if found["state"] == "open":
        return {"state": "waiting_for_approval", "ask": ask, "next": f"wait for=answer={ask}, then repeat the call"}
    asked.pop(key, None)
    if found["state"] != "answered":
        raise HoldfastError("not_allowed", f"{path} is not read: {found['state']} ({ask})", "send its content instead")
    return None
