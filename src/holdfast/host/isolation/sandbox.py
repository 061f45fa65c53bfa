"""Isolated sessions on the host's side: from what was asked to what bubblewrap is told, checked before a start."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ...model.errors import HoldfastError, invalid
from ...model.home import Home, default_home
from ...model.sessions import isolation
from ...model.sessions.isolation import Machine, Place, View
from ...system import bubblewrap
from ..sessions.session import Session

Json = dict[str, Any]

_PATHS_MAX = 64  # of --read and --write together; each is a mount


def view_of(request: Json, cwd: str, home: Home) -> View | None:
    """What a start asks for, checked; None where it asks for no isolation. Links are followed here, once."""
    ready = request.get("isolation")
    if ready is not None:
        view = isolation.from_dict(ready)
    elif request.get("isolate"):
        asked = request["isolate"] if isinstance(request["isolate"], dict) else {}
        read, write = _paths(asked.get("read")), _paths(asked.get("write"))
        if len(read) + len(write) > _PATHS_MAX:
            raise invalid(f"{len(read) + len(write)} paths to show", f"at most {_PATHS_MAX}: name folders above them")
        view = View(os.path.realpath(cwd), read, write, asked.get("network") is not False)
        if not os.path.isdir(view.cwd):
            raise HoldfastError("not_found", f"cannot enter {cwd}: it is not a folder", "--cwd DIR")
    else:
        return None
    env = request.get("env") or {}
    views = bubblewrap.kernel_views()
    for user_home in {os.path.realpath(h) for h in (os.path.expanduser("~"), str(env.get("HOME") or "")) if h}:
        isolation.check(view, os.path.realpath(home.path), user_home, views)
    return view


def _paths(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(path, str) and path for path in given):
        raise invalid("paths to show are a list of texts", "--read PATH")
    found = []
    for path in given:
        if not os.path.isabs(path) or "\0" in path:
            raise invalid(f"{path[:200]!r} is not an absolute path", "name a folder or a file")
        if not os.path.exists(path):
            raise HoldfastError("not_found", f"{path[:200]} is not there", "name what an isolated program may see")
        found.append(os.path.realpath(path))
    return tuple(dict.fromkeys(found))


async def prepare(session: Session, home: Home) -> None:
    """Make its folders, try bubblewrap with its very options, and leave in the manifest what the keeper starts."""
    await asyncio.to_thread(_prepare, session, home)


def _prepare(session: Session, home: Home) -> None:
    manifest = session.manifest
    view = isolation.from_dict(manifest["isolation"])
    isolation.check_beside(view, os.path.realpath(home.path))  # also when it is started again, by an older recipe
    machine = bubblewrap.look()
    if not manifest.get("door"):  # paths from inside a session are not ours to follow: starting it shows
        check_program(manifest["command"], manifest["env"], view, machine)
    for folder in (session.folder.door, session.folder.exchange):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    order = bubblewrap.order(session.id, view, machine, _place(session, home), manifest["env"])
    complaint = bubblewrap.probe(order, machine)
    if complaint:
        raise HoldfastError("failed", f"bubblewrap cannot isolate it here: {complaint}", bubblewrap.advice(complaint))
    command = isolation.launched(manifest["command"], machine, terminal=manifest["kind"] == "terminal")
    manifest["wrap"] = order | {"command": command, "env": bubblewrap.outside_environment(session.id, home.path)}


def _place(session: Session, home: Home) -> Place:
    env: dict[str, str] = session.manifest["env"]
    user_home = os.path.expanduser("~")
    runtime = (f"/run/user/{os.getuid()}", os.environ.get("XDG_RUNTIME_DIR"), env.get("XDG_RUNTIME_DIR"))
    other = default_home({}, user_home)  # the usual home of another instance
    hidden = {os.path.realpath(p) for p in (*runtime, other) if p and os.path.isdir(p)}
    agent = os.path.realpath(os.path.join(session.folder.links, "ssh-agent"))
    real = os.path.realpath(home.path)
    return Place(
        real,
        session.folder.door,
        session.folder.exchange,
        os.path.normpath(env.get("HOME") or user_home),
        tuple(sorted(hidden - {real})),
        (agent,) if os.path.exists(agent) else (),
    )


def check_program(command: list[str], env: dict[str, str], view: View, machine: Machine) -> None:
    """Say before the start that the program is not to be seen, and which folder would show it."""
    name = command[0]
    if "/" in name:
        candidates = [os.path.join(view.cwd, name)]
    else:
        candidates = [os.path.join(view.cwd, part, name) for part in env.get("PATH", os.defpath).split(":")]
    unseen = ""
    for path in candidates:
        if os.path.isfile(path):
            if all(_seen(os.path.realpath(p), view, machine) for p in (path, os.path.dirname(path))):
                return
            unseen = unseen or path
    if unseen:
        raise HoldfastError(
            "no_program", f"an isolated program does not see {unseen}", f"--read {os.path.dirname(unseen)} shows it"
        )
    raise HoldfastError("no_program", f"{name[:200]}: command not found", "")


def _seen(path: str, view: View, machine: Machine) -> bool:
    shown = (*isolation.SYSTEM, *machine.install, *machine.files, *view.read, *view.write, view.cwd)
    return any(isolation.within(path, folder) for folder in shown)
