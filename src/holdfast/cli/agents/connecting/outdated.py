"""Finds configurations that an older version wrote and that lack hooks of this version. For `hold doctor`."""

from __future__ import annotations

import os

from ....model.doctor_findings import Finding, ok, some, warn
from ....model.errors import HoldfastError
from ....model.home import default_home
from . import agent_programs, change_plan, config_files
from .json_positions import BrokenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = "claude hooks"


def findings(environ: Mapping[str, str], home: str, project: str) -> list[Finding]:
    """One finding about Claude Code's hooks if it is connected, in the user's or this project's settings; else none.
    Only hooks of `home` are checked."""
    person = os.path.expanduser("~")
    places = agent_programs.Places(environ, person, project)
    usual = default_home({k: v for k, v in environ.items() if k != "HOLDFAST_HOME"}, person)
    seen: list[str] = []
    for scope, folder in (("user", places.claude), ("project", os.path.join(project, ".claude"))):
        path = os.path.join(folder, "settings.json")
        try:
            missing = lacks(config_files.read(path), home, usual)
        except (HoldfastError, BrokenError, OSError):
            return [warn(_NAME, f"{path} cannot be read", "fix it; Claude Code cannot read it either")]
        again = "run hold connect claude again" + (" with --scope project" if scope == "project" else "")
        if missing:
            return [warn(_NAME, f"an older version wrote {path}: no hook for {some(missing)}", again)]
        seen += [path] if missing is not None else []
    return [ok(_NAME, f"{some(seen)}: has all hooks of this version")] if seen else []


def lacks(text: str | None, home: str, usual: str) -> list[str] | None:
    """The events that Claude Code has no hook for; None if it is not connected to this home. A hook that names no
    home is for the default one (`usual`). Pure."""
    data = change_plan.read(text or "", "json")
    hooks = data.get("hooks") if isinstance(data, dict) else None
    if not isinstance(hooks, dict):
        return None
    lists = {event: groups for event, groups in hooks.items() if isinstance(groups, list)}
    told = {event for event, groups in lists.items() if any(_home(g, usual) == home for g in groups)}
    return [event for event, _, _ in agent_programs.HOOKS if event not in told] if told else None


def _home(group: object, usual: str) -> str | None:
    return agent_programs.home_of(group) or usual if agent_programs.is_ours(group) else None
