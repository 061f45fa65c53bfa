"""Which project is meant, as far as a client knows it: by name, environment, the nearest holdfast.toml, the folder."""

from __future__ import annotations

import os

from ..model.errors import invalid
from ..model.sessions.holdfast_toml import FILE
from .files.project_file import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def context(project: str | None = None) -> dict[str, Any]:
    """`project` and `cwd` for a call of the work plane, which finds the rest."""
    try:
        cwd: str | None = os.getcwd()
    except FileNotFoundError:
        cwd = None  # the folder is gone: a name, or the only project
    return {"project": project or os.environ.get("HOLDFAST_PROJECT") or (cwd and _named(cwd)) or None, "cwd": cwd}


def _named(cwd: str) -> str | None:
    """`[project] name` of the nearest file."""
    found = nearest(cwd, readable=True)
    if found is None or "[project]" not in found[1]:
        return None
    path, text = found
    import tomllib

    try:
        name = tomllib.loads(text).get("project", {}).get("name")
    except (ValueError, AttributeError) as e:
        raise invalid(f"{path}: {e}", f"mend {FILE}, or name the project: --project NAME") from None
    if name is not None and not isinstance(name, str):
        raise invalid(f"{path}: a project's name is text", 'write [project] and name = "…"')
    return name
