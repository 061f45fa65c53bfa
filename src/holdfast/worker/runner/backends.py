"""Backends as command lines: the builtin ones, a project's own, and the placeholders in them. Pure but for PATH.

A command line is a list of words; a placeholder is filled in within its word, and no shell ever reads the result. A
program on pipes finds the brief on its standard input: agents take their prompt there, and none waits for an end that
never comes. A program on a terminal has the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...model.errors import HoldfastError


class Backend(NamedTuple):
    """Who does the work, and how it is started."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    terminal: bool = False
    timeout_s: float | None = None


# Both agents read their prompt from standard input, may edit files below the current folder, and ask nobody.
_BUILTIN = {
    "claude": Backend("claude", ("claude", "-p", "--permission-mode", "acceptEdits"), {}),
    "codex": Backend("codex", ("codex", "exec", "--sandbox", "workspace-write", "--skip-git-repo-check", "-"), {}),
}
_HOLE = re.compile(r"\{(contract|brief|task|run|attempt|root|project)\}")


def find(name: str, rows: Sequence[Mapping[str, Any]], environ: Mapping[str, str]) -> Backend:
    """A backend by its name: the project's own before the builtin one. `shell` is a terminal for whoever attaches."""
    for row in rows:
        if row["name"] == name:
            return Backend(
                name, tuple(row["template"]), row.get("env") or {}, bool(row.get("terminal")), row.get("timeout_s")
            )
    if name in _BUILTIN:
        return _BUILTIN[name]
    if name == "shell":
        return Backend("shell", (environ.get("SHELL") or "/bin/sh",), {}, terminal=True)
    raise HoldfastError("not_found", f"there is no backend {name[:80]!r}", "hold backend ls, or hold backend add NAME")


def fill(argv: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with their placeholders filled in, once: what a value holds is not looked at again."""
    return [_HOLE.sub(lambda m: values[m[1]], word) for word in argv]


def missing(argv: Sequence[str], environ: Mapping[str, str], root: str) -> str | None:
    """The program, or the folder it is to work in, if it is not there."""
    program = argv[0]
    if not os.path.isdir(root):
        return root
    if "/" in program:
        path = os.path.join(root, program)
        return None if os.path.isfile(path) and os.access(path, os.X_OK) else program
    return None if shutil.which(program, path=environ.get("PATH", os.defpath)) else program


def command(argv: Sequence[str], brief: str, terminal: bool) -> list[str]:
    """What the session runs. The shell here opens one file and becomes the program; it reads none of the words."""
    return list(argv) if terminal else ["/bin/sh", "-c", 'exec "$@" <"$0"', brief, *argv]
