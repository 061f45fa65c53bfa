"""holdfast.toml: `[session.NAME]` tables to the sessions they describe, in the order to start them. Pure.

[session.db]
command = "exec postgres -D data"        # a string is shell source, a list is program and arguments
wait = "port=5432"                       # before the sessions with it in `after` start

[session.web]
command = ["npm", "run", "dev"]
cwd = "frontend"                         # relative to the file
env = { PORT = "3000" }
after = "db"                             # a name, or a list of names
size = "120x40"
restart = "on-failure"
idle_ttl = "2h"
pipes = false
isolate = true                           # access to system files and its own folder only
read = ["~/.cache/pip"]                  # isolated, but may read these; `write` likewise
network = false
limits = { pids = 500, memory = "1G" }
wait_timeout = "60s"
"""

from __future__ import annotations

import os
import re

from .. import ids
from ..durations import duration_s
from ..errors import HoldfastError, invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

FILE = "holdfast.toml"
RESTART = ("never", "on-failure", "always")
WAIT_S = 60.0  # enough for a database or a dev server; a slower one sets wait_timeout
_WAITS = ("port", "text", "quiet", "input", "exit")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Recipe:
    """One session to start: the arguments of a run request, and its order."""

    __slots__ = (
        "after",
        "command",
        "cwd",
        "env",
        "folder",
        "idle_ttl",
        "isolate",
        "kernel",
        "memory",
        "name",
        "network",
        "pids",
        "pipes",
        "read",
        "restart",
        "size",
        "wait",
        "wait_s",
        "write",
    )

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.command: list[str] | None = None
        self.cwd = self.folder = folder
        self.env: dict[str, str] = {}
        self.size: tuple[int, int] | None = None
        self.restart = "never"
        self.idle_ttl: str | None = None
        self.pipes = False
        self.kernel: str | None = None
        self.pids: int | None = None
        self.memory: int | None = None
        self.after: list[str] = []
        self.wait: str | None = None
        self.wait_s = WAIT_S
        self.isolate, self.network = False, True
        self.read: list[str] = []
        self.write: list[str] = []

    def request(self) -> dict[str, Any]:
        """The arguments of `start_request`."""
        return {
            "command": self.command,
            "name": self.name,
            "cwd": self.cwd,
            "env": self.env,
            "pipes": self.pipes,
            "size": self.size,
            "restart": self.restart,
            "idle_ttl": self.idle_ttl,
            "acts_as": None,
            "pids_max": self.pids,
            "memory_max": self.memory,
            "isolate": {"read": self.read, "write": self.write, "network": self.network} if self.isolate else None,
            "kernel": self.kernel,
        }


def places(folder: str) -> list[str]:
    """The paths where the file may be: in the folder or above, the nearest first."""
    found = [os.path.join(folder, FILE)]
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        found.append(os.path.join(folder, FILE))
    return found


def parse(text: str, folder: str) -> dict[str, Recipe]:
    """Every recipe of a file in `folder`, by name, in the file's order."""
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise invalid(f"{FILE} is not TOML: {e}", "see hold up --help") from None
    tables = document.get("session", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise invalid(f"{FILE}: sessions must be tables", "write [session.NAME]")
    recipes = {name: _recipe(ids.check_name(name), table, folder) for name, table in tables.items()}
    for recipe in recipes.values():
        for other in recipe.after:
            if other not in recipes:
                raise invalid(
                    f"{FILE}: {recipe.name} has after = {other!r}, which does not exist",
                    _closest(other, recipes) or f"add [session.{other}]",
                )
    return recipes


def in_order(recipes: Mapping[str, Recipe], wanted: Sequence[str]) -> list[Recipe]:
    """The named sessions (default: all) with those in their `after`, in start order."""
    for name in wanted:
        if name not in recipes:
            hint = _closest(name, recipes) or f"it has {', '.join(recipes) or 'none'}"
            raise not_found(f"{FILE} has no session {name[:60]!r}", hint)
    out: list[Recipe] = []
    path: list[str] = []

    def add(name: str) -> None:
        if name in path:
            circle = " after ".join([*path[path.index(name) :], name])
            raise invalid(f"{FILE}: `after` has a cycle: {circle}", "remove one `after`")
        if recipes[name] in out:
            return
        path.append(name)
        for needed in recipes[name].after:
            add(needed)
        path.pop()
        out.append(recipes[name])

    for name in wanted or recipes:
        add(name)
    return out


def parse_size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})[xX](\d{1,9})", text)
    if not found:
        raise invalid(f"{text[:40]!r} is not a size", "write COLSxROWS, for example 80x24")
    return int(found[1]), int(found[2])


def parse_bytes(value: object) -> int:
    """`512M`, `1G` or a plain number of bytes."""
    found = re.fullmatch(r"(\d{1,18})([kKmMgG]?)", str(value))
    if not found or isinstance(value, bool):
        raise invalid(f"{str(value)[:40]!r} is not a size in bytes", "write 512M or 1G")
    return int(found[1]) * _UNITS[found[2].lower()]


def _recipe(name: str, table: dict[str, Any], folder: str) -> Recipe:
    recipe = Recipe(name, folder)
    for key, value in table.items():
        where = f"{FILE}: session.{name}.{key}"
        if key not in _KEYS:
            raise invalid(f"{where} is not a known key", _closest(key, _KEYS) or f"the keys are {', '.join(_KEYS)}")
        try:
            _KEYS[key](recipe, value)
        except HoldfastError as e:
            raise invalid(f"{where}: {e.message}", e.hint) from None
    if not recipe.isolate and (recipe.read or recipe.write or not recipe.network):
        raise invalid(f"{FILE}: session.{name} has settings that need isolation", "add isolate = true")
    return recipe


def _closest(word: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean {close[0]}?" if close else ""


def _of(value: object, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid(f"it must be {what}", "")
    return value


def _words(value: object, what: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(w, str) for w in value):
        raise invalid(f"it must be {what}", "")
    return value


def _command(recipe: Recipe, value: object) -> None:
    if isinstance(value, str) and value.strip():
        recipe.command = ["sh", "-c", value]
    else:
        recipe.command = _words(value, "shell source, or a list of words")


def _cwd(recipe: Recipe, value: object) -> None:
    folder = os.path.expanduser(_of(value, str, "a folder"))
    recipe.cwd = os.path.normpath(os.path.join(recipe.cwd, folder))


def _env(recipe: Recipe, value: object) -> None:
    for key, text in _of(value, dict, "a table of names and values").items():
        if not isinstance(text, str | int | float) or isinstance(text, bool):
            raise invalid(f"{key} must be a text or a number", "")
        recipe.env[key] = str(text)


def _size(recipe: Recipe, value: object) -> None:
    recipe.size = parse_size(_of(value, str, 'COLSxROWS, for example "80x24"'))


def _restart(recipe: Recipe, value: object) -> None:
    if value not in RESTART:
        raise invalid(f"it must be {', '.join(RESTART[:-1])} or {RESTART[-1]}", "")
    recipe.restart = str(value)


def _idle_ttl(recipe: Recipe, value: object) -> None:
    recipe.idle_ttl = _duration(value)


def _duration(value: object) -> str:
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    duration_s(text)
    return text


def _pipes(recipe: Recipe, value: object) -> None:
    recipe.pipes = _of(value, bool, "true or false")


def _kernel(recipe: Recipe, value: object) -> None:
    recipe.kernel = _of(value, str, "a kernelspec's name")


def _isolate(recipe: Recipe, value: object) -> None:
    recipe.isolate = _of(value, bool, "true or false")


def _network(recipe: Recipe, value: object) -> None:
    recipe.network = _of(value, bool, "true or false")


def _read(recipe: Recipe, value: object) -> None:
    recipe.read = _paths(recipe, value)


def _write(recipe: Recipe, value: object) -> None:
    recipe.write = _paths(recipe, value)


def _paths(recipe: Recipe, value: object) -> list[str]:
    """Paths relative to the file, like `cwd`."""
    paths = [os.path.expanduser(path) for path in _words(value, "a list of paths")]
    return [os.path.normpath(os.path.join(recipe.folder, path)) for path in paths]


def _limits(recipe: Recipe, value: object) -> None:
    for key, limit in _of(value, dict, "a table with pids or memory").items():
        if key == "pids":
            recipe.pids = _of(limit, int, "a number of processes")
        elif key == "memory":
            recipe.memory = parse_bytes(limit)
        else:
            raise invalid(f"{key} is not a limit", _closest(key, ("pids", "memory")) or "pids or memory")


def _after(recipe: Recipe, value: object) -> None:
    recipe.after = [value] if isinstance(value, str) else _words(value, "a session's name, or a list of them")


def _wait(recipe: Recipe, value: object) -> None:
    text = _of(value, str, 'a condition, for example "port=3000"')
    kind, _, rest = text.partition("=")
    if kind not in _WAITS or (kind in ("port", "text") and not rest):
        raise invalid(f"{text[:40]!r} is not a condition", "port=N, text=REGEX, quiet[=S], input or exit")
    recipe.wait = text


def _wait_timeout(recipe: Recipe, value: object) -> None:
    recipe.wait_s = duration_s(_duration(value))


_KEYS: dict[str, Callable[[Recipe, Any], None]] = {
    "command": _command,
    "cwd": _cwd,
    "env": _env,
    "size": _size,
    "restart": _restart,
    "idle_ttl": _idle_ttl,
    "pipes": _pipes,
    "limits": _limits,
    "after": _after,
    "wait": _wait,
    "wait_timeout": _wait_timeout,
    "kernel": _kernel,
    "isolate": _isolate,
    "read": _read,
    "write": _write,
    "network": _network,
}
