"""A file that an agent names: opened by `hold mcp` itself, with the user and the mounts of that process.

The host and the web process open nothing for an agent: what they may read is the owner's, not the agent's. Inside the
project a file is taken as it is; for any other a person is asked first, by the name that the kernel gives it.
"""

from __future__ import annotations

import os
from typing import Any

from ...client.files.local_files import Opened, beginning, project_root
from ...model.errors import HoldfastError, invalid
from ...model.sessions.isolation import within
from .call import ToolCall

Json = dict[str, Any]

_READ_MAX = 64 << 20  # bytes that are kept through this process: larger files with hold artifact put
_ASKED_MAX = 100  # questions under way; an agent that asks more has stopped listening to the answers


async def content(call: ToolCall, run: str, named: str) -> bytes | Json:
    """The bytes of a file, or the item that a person has not answered yet."""
    if not call.host.local_files:
        raise HoldfastError("not_allowed", "over HTTP an artifact comes with its content", "send content, not a path")
    with _opened(named) as file:
        if not _inside(file.path, call.host.home.path):
            waiting = await _approved(call, run, file.path)
            if waiting is not None:
                return waiting
        data = beginning(file, _READ_MAX + 1)
    if len(data) > _READ_MAX:
        raise invalid(f"{named[:200]} has more than {_READ_MAX:,} bytes", "hold artifact put takes it")
    return data


def _opened(named: str) -> Opened:
    try:
        return Opened(named)
    except (OSError, ValueError) as e:
        words = getattr(e, "strerror", None) or e
        raise HoldfastError("failed", f"cannot read {named[:200]}: {words}", "name a regular file") from None


def _inside(path: str, home: str) -> bool:
    """Whether a file is the project's. One of Holdfast's own, keys among them, is nobody's to keep."""
    if within(path, os.path.realpath(home)):
        raise HoldfastError("not_allowed", "Holdfast's own files are no artifacts", "name a file of the project")
    root = project_root(os.getcwd())
    return root is not None and within(path, root)


async def _approved(call: ToolCall, run: str, path: str) -> Json | None:
    """None once a person has said yes to this very file, which counts once; the item while it is open.

    Raises on a no. The same call again finds the same item: its id is kept here, as long as this process lives.
    """
    asked, key = call.agent.asked, (run, path)
    if key not in asked:
        if len(asked) >= _ASKED_MAX:
            asked.pop(next(iter(asked)))
        words = f"read {path}, outside of the project, and keep it as an artifact of {run}"
        item = await call.host.ask_raw(words, session=None, options=(), why=None, kind="approval")
        asked[key] = str(item["id"])
    ask = asked[key]
    found = await call.waiting(call.host.asked_raw(ask, call.limit), call.limit, "waiting for a person")
    if found["state"] == "open":
        return {"state": "waiting_for_approval", "ask": ask, "next": f"wait for=answer={ask}, then the same call"}
    asked.pop(key, None)
    if found["state"] != "answered":
        raise HoldfastError("not_allowed", f"{path} is not read: {found['state']} ({ask})", "send its content instead")
    return None
