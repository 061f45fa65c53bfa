"""Backends as command lines: built-in ones, a project's own, and their placeholders. Pure except for PATH.

A command line is a list of arguments; a placeholder is replaced within its argument, and no shell reads the result. A
program on pipes gets the brief on its standard input, where agents read their prompt, with an end. A program on a
terminal has the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...model.errors import HoldfastError


class Backend(NamedTuple):
    """A program that does tasks, and how it is started."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    terminal: bool = False
    timeout_s: float | None = None


# Both agents read their prompt from standard input, may edit files below the current folder, and never ask a person.
_BUILTIN = {
    "claude": Backend("claude", ("claude", "-p", "--permission-mode", "acceptEdits"), {}),
    "codex": Backend("codex", ("codex", "exec", "--sandbox", "workspace-write", "--skip-git-repo-check", "-"), {}),
}
_HOLE = re.compile(r"\{(contract|brief|task|run|attempt|root|project)\}")


def find(name: str, rows: Sequence[Mapping[str, Any]], environ: Mapping[str, str]) -> Backend:
    """A backend by its name: the project's own before the builtin one. `shell` is a terminal for a person."""
    for row in rows:
        if row["name"] == name:
            return Backend(
                name, tuple(row["template"]), row.get("env") or {}, bool(row.get("terminal")), row.get("timeout_s")
            )
    if name in _BUILTIN:
        return _BUILTIN[name]
    if name == "shell":
        return Backend("shell", (environ.get("SHELL") or "/bin/sh",), {}, terminal=True)
    raise HoldfastError("not_found", f"no such backend: {name[:80]!r}", "hold backend ls, or hold backend add NAME")


def fill(argv: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The arguments with placeholders replaced, once: values are not searched again."""
    return [_HOLE.sub(lambda m: values[m[1]], word) for word in argv]


def missing(argv: Sequence[str], environ: Mapping[str, str], root: str) -> str | None:
    """The program or the working folder, if it does not exist."""
    program = argv[0]
    if not os.path.isdir(root):
        return root
    if "/" in program:
        path = os.path.join(root, program)
        return None if os.path.isfile(path) and os.access(path, os.X_OK) else program
    return None if shutil.which(program, path=environ.get("PATH", os.defpath)) else program


def command(argv: Sequence[str], brief: str, terminal: bool) -> list[str]:
    """The session's command. The shell only opens the brief as stdin and runs the program; it parses nothing."""
    return list(argv) if terminal else ["/bin/sh", "-c", 'exec "$@" <"$0"', brief, *argv]
