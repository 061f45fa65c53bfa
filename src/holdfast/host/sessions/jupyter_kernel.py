"""Kernel sessions as the host knows them: which command a kernelspec stands for, and what the kernel is doing."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError, invalid, not_found
from ...model.sessions.activity import Activity
from ...system import programs
from ...system.atomic_files import read_json
from . import manifest
from .session import Session

Json = dict[str, Any]

_PYTHON = (sys.executable, "-I")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
STARTING = "kernel starting"
_EXTRA = "pip install 'holdfast[kernel]' where the host runs"


async def resolved(request: Json) -> Json:
    """The request with the kernelspec's command and environment in place of its name.

    The list of kernels is the host's own: this runs with the host's rights, before anyone approved the start, so the
    request has no say in it beyond the name.
    """
    name = request.get("kernel")
    if not name:
        return {**request, "kernel": None}
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise invalid(f"{str(name)[:40]!r} is not a kernelspec's name", "jupyter kernelspec list")
    if request.get("command"):
        raise invalid("a kernel's command is its kernelspec's", "leave out the command, or --kernel")
    if request.get("pipes"):
        raise invalid("a kernel does not run on pipes", "leave out --pipes, or --kernel")
    if request.get("isolate"):
        raise invalid("a kernel cannot be isolated yet", "leave out --isolate, or run it as another user")
    env = manifest.check_env(request.get("env") or {})
    found = await _find(name)
    if "missing" in found:
        raise HoldfastError("failed", f"kernels need {found['missing']}, which is not installed", _EXTRA)
    if "broken" in found:
        raise invalid(f"the kernelspec {name} cannot be used: {found['broken']}", "jupyter kernelspec list")
    if "known" in found:
        known = ", ".join(found["known"])
        raise not_found(f"the host knows no kernelspec {name!r}", f"there are: {known}" if known else _EXTRA)
    return {**request, "command": found["argv"], "env": {**env, **found.pop("env")}, "kernel": found}


async def _find(name: str) -> Json:
    process = await asyncio.create_subprocess_exec(
        *_PYTHON,
        programs.FIND_KERNELSPEC,
        name,
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(limits.KERNEL_FIND_S):
            out, complaint = await process.communicate()
    except TimeoutError:
        raise HoldfastError("timeout", f"the kernelspec {name} was not found in time", "try again") from None
    finally:
        if process.returncode is None:
            process.kill()
    try:
        found: Json = json.loads(out)
        return found
    except ValueError:
        last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        raise HoldfastError("failed", f"the kernelspecs cannot be read: {last}", _EXTRA) from None


def state(session: Session) -> Json:
    """What the recorder says of this generation's kernel."""
    said = read_json(session.folder.kernel_state) or {}
    return said if said.get("generation") == session.manifest["generation"] else {}


def activity(session: Session) -> Activity:
    """From the kernel's own messages, which the recorder hears; so it is certain, and needs no look at the terminal."""
    said = state(session)
    prompt = said.get("prompt") or None
    match said.get("state"):
        case "idle":
            return Activity("at_prompt", "certain", "kernel idle")
        case "busy":
            return Activity("running", "certain", "kernel busy")
        case "input":
            return Activity("waiting_for_input", "certain", "the kernel asks for a line of input", prompt)
        case "secret":
            return Activity("waiting_for_secret", "certain", "the kernel asks for a password", prompt)
    return Activity("running", "certain", STARTING)


def described(session: Session) -> Json:
    """What the session object says more of a kernel: how to reach it, and how far it is."""
    about = session.manifest.get("kernel")
    if about is None:
        return {}
    said = state(session) if session.live else {}
    return {
        "kernel": {
            "spec": about["spec"],
            "display_name": about["display_name"],
            "language": about["language"],
            "connection_file": session.folder.connection_file if said else None,
            "pid": said.get("pid"),
            "state": said.get("state") if session.live else None,
            "execution_count": said.get("execution_count"),
        }
    }
