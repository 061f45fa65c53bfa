"""A task's contract: its goal, its limits, and its verification. Checked as a whole. Pure.

goal = "Logging in works without a password"     # `intent` is the same word
scope = ["src/login/**"]                         # paths relative to the project's root
constraints = ["no new dependency"]
acceptance = ["a link in a mail logs in"]
artifacts = ["docs/login.md"]                    # files that exist afterwards
verification = ["pytest -q tests/login", {command = ["make", "lint"], timeout_s = 60}, {profile = "slow"}]
backend = "claude"
timeout_s = 1800
depends_on = ["1.4"]
"""

from __future__ import annotations

import posixpath

from ..errors import HoldfastError, invalid
from ..limits import (
    AFTER_MAX,
    CHECK_TIMEOUT_MAX_S,
    CHECK_TIMEOUT_S,
    CHECKS_BYTES_MAX,
    CHECKS_MAX,
    LIST_MAX,
    NAME_MAX,
    PROSE_MAX,
    TITLE_MAX,
)
from .task_states import check_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Json = dict[str, Any]

KEYS = ("title", "goal", "scope", "constraints", "acceptance", "artifacts", "verification", "backend", "timeout_s")
_LISTS = ("scope", "constraints", "acceptance", "artifacts")
_CHECK_KEYS = frozenset({"command", "timeout_s", "profile"})
_FAULTS_SHOWN = 8  # of one contract in one line


def parse(text: str, where: str) -> Json:
    """Parse a contract file: JSON if it begins with a brace, else TOML."""
    try:
        if text.lstrip().startswith("{"):
            import json

            found = json.loads(text)
        else:
            import tomllib

            found = tomllib.loads(text)
    except (ValueError, RecursionError) as e:
        raise invalid(f"{where} is neither JSON nor TOML: {str(e)[:200]}", "see docs/tasks.md for an example") from None
    if not isinstance(found, dict):
        raise invalid(f"{where} is not a table of fields", "see docs/tasks.md for an example")
    return found


def check(
    given: object, *, title: object = None, before: Mapping[str, Any] | None = None, whole: bool = False
) -> tuple[Json, Any]:
    """The complete contract, and its dependencies (None: not given). Reports all errors in one line.

    `before` is the version in force: fields that are not given stay. `whole`: a file that lacks a goal is refused;
    otherwise the title is the goal.
    """
    if not isinstance(given, dict):
        raise invalid("a contract must be a table of fields", "see docs/tasks.md for an example")
    fields: Json = dict(given)
    faults: list[str] = []
    depends_on = fields.pop("depends_on", None)
    if depends_on is not None:
        faults += _list_faults("depends_on", depends_on, AFTER_MAX)
    intent = fields.pop("intent", None)
    if intent is not None and fields.setdefault("goal", intent) != intent:
        faults.append("goal and intent mean the same, but differ")
    if title is not None:
        fields["title"] = title
    unknown = sorted(str(k)[:40] for k in fields if k not in KEYS)
    if unknown:
        faults.append(f"unknown: {', '.join(map(repr, unknown))}")
    made: Json = {**_EMPTY, **(before or {}), **{k: v for k, v in fields.items() if k in KEYS}}
    if not made["title"]:
        faults.append("title is missing")
    if whole and not made["goal"]:
        faults.append("goal is missing")
    made["goal"] = made["goal"] or made["title"]
    faults += _prose_faults("title", made["title"], TITLE_MAX) + _prose_faults("goal", made["goal"], PROSE_MAX)
    if isinstance(made["title"], str) and not all(c.isprintable() for c in made["title"]):
        faults.append("title must be one line of printable text")
    for name in _LISTS:
        faults += _list_faults(name, made[name], LIST_MAX)
    faults += _path_faults(made)
    made["verification"], more = _checks(made["verification"])
    faults += more + _time_faults("timeout_s", made["timeout_s"])
    if made["backend"] is not None:
        faults += _name_faults("backend", made["backend"])
    if faults:
        raise bad("the contract", faults)
    made["scope"] = made["scope"] or ["**"]
    return made, depends_on


_EMPTY: Mapping[str, Any] = {
    "title": None,
    "goal": None,
    "scope": [],
    "constraints": [],
    "acceptance": [],
    "artifacts": [],
    "verification": [],
    "backend": None,
    "timeout_s": None,
}


def bad(what: str, faults: list[str]) -> HoldfastError:
    more = len(faults) - _FAULTS_SHOWN
    line = "; ".join(faults[:_FAULTS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return invalid(f"{what} is not valid: {line}", "see docs/tasks.md; nothing was changed")


def _prose_faults(name: str, text: object, most: int) -> list[str]:
    if text is None:
        return []
    if not isinstance(text, str):
        return [f"{name} must be text, not {type(text).__name__}"]
    if not text.strip():
        return [f"{name} is empty"]
    if "\0" in text or not _encodes(text):
        return [f"{name} must contain only text (no NUL)"]
    return [f"{name} has at most {most:,} characters, not {len(text):,}"] if len(text) > most else []


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_faults(name: str, found: object, most: int) -> list[str]:
    if not isinstance(found, list):
        return [f"{name} must be a list, not {type(found).__name__}"]
    if len(found) > most:
        return [f"{name} has at most {most:,} entries, not {len(found):,}"]
    faults = [fault for n, text in enumerate(found, 1) for fault in _prose_faults(f"{name}[{n}]", text, PROSE_MAX)]
    return faults + [f"{name}[{n}] is missing" for n, text in enumerate(found, 1) if text is None]


def _path_faults(made: Json) -> list[str]:
    """Errors in a scope: it must stay within the project."""
    paths = made["scope"] if isinstance(made["scope"], list) else []
    return [
        f"scope {path[:60]!r} leaves the project's root"
        for path in paths
        if isinstance(path, str) and (path.startswith("/") or ".." in path.split("/"))
    ]


def _time_faults(name: str, found: object) -> list[str]:
    if found is None:
        return []
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return [f"{name} must be a number of seconds, not {type(found).__name__}"]
    if not 0 < found <= CHECK_TIMEOUT_MAX_S:
        return [f"{name} must be between 0 and {CHECK_TIMEOUT_MAX_S:g} seconds, not {found:g}"]
    return []


def _name_faults(name: str, found: object) -> list[str]:
    try:
        check_id(found, f"a {name}")
    except HoldfastError as e:
        return [e.message[: NAME_MAX * 2]]
    return []


# -- verification ------------------------------------------------------------------------------------------------------


def _checks(found: object) -> tuple[list[Json], list[str]]:
    """The complete verification: commands (shell source, or a program and its arguments) and profiles' names."""
    if not isinstance(found, list):
        return [], [f"verification must be a list of commands, not {type(found).__name__}"]
    if len(found) > CHECKS_MAX:
        return [], [f"verification has at most {CHECKS_MAX} commands, not {len(found)}"]
    made: list[Json] = []
    faults: list[str] = []
    for n, one in enumerate(found, 1):
        check, more = _check(one, f"verification[{n}]")
        made.append(check)
        faults += more
    if sum(len(ascii(c)) for c in made) > CHECKS_BYTES_MAX:
        faults.append(f"verification is more than {CHECKS_BYTES_MAX:,} bytes; keep it in a script")
    return made, faults


def _check(one: object, name: str) -> tuple[Json, list[str]]:
    table = one if isinstance(one, dict) else {"command": one}
    faults = [f"{name} has an unknown key: {str(k)[:40]!r}" for k in sorted(set(map(str, table)) - _CHECK_KEYS)]
    faults += _time_faults(f"{name}.timeout_s", table.get("timeout_s"))
    if table.get("profile") is not None:
        if table.get("command") is not None:
            faults.append(f"{name} must be a command or a profile, not both")
        return {"profile": table["profile"]}, faults + _name_faults("verification profile", table["profile"])
    faults += command_faults(name, table.get("command"))
    return {"command": table.get("command"), "timeout_s": table.get("timeout_s") or CHECK_TIMEOUT_S}, faults


def command_faults(name: str, command: object) -> list[str]:
    if command is None or command in ("", []):
        return [f"{name} has no command"]
    given: list[Any] = command if isinstance(command, list) else [command]
    words = [w for w in given if isinstance(w, str)]
    if len(words) != len(given):
        return [f"{name} must be shell source, or a program and its arguments"]
    if not words[0].strip():
        return [f"{name} has an empty command"]
    if any("\0" in w or not _encodes(w) for w in words):
        return [f"{name} must contain only text (no NUL)"]
    return []


def expand(contract: Mapping[str, Any], policy: Mapping[str, Any]) -> list[Json]:
    """The commands to run, with the policy's profiles expanded."""
    profiles, made = policy["verification"]["profiles"], []
    for check in contract["verification"]:
        if "profile" not in check:
            made.append(dict(check))
        elif check["profile"] in profiles:
            made += [dict(c) for c in profiles[check["profile"]]]
        else:
            known = ", ".join(sorted(profiles)) or "none"
            raise invalid(f"the policy has no verification profile {check['profile']!r}", f"it has {known}")
    return made


def first_word(command: object) -> str | None:
    """The program that a command starts, if that is certain."""
    if isinstance(command, list):
        return str(command[0])
    import shlex

    try:
        words = shlex.split(str(command), comments=True)
    except ValueError:
        return None
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        words.pop(0)
    return words[0] if words and not any(c in "$`*?[;&|<>(){}~" for c in words[0]) else None


def impossible(contract: Mapping[str, Any], root: str, look: Callable[[str], str | None]) -> list[str]:
    """Errors of a verification that can never pass because its program is missing. `look` returns what is wrong with a
    path, if anything.

    A program that the task itself makes is in its artifacts, and is checked when it is needed.
    """
    made = {posixpath.normpath(path) for path in contract["artifacts"]}
    faults = []
    for n, check in enumerate(contract["verification"], 1):
        word = first_word(check["command"]) if "command" in check else None
        if word is None or "/" not in word:
            continue
        path = posixpath.normpath(posixpath.join(root, word))
        wrong = None if {posixpath.normpath(word), posixpath.relpath(path, root)} & made else look(path)
        if wrong is not None:
            faults.append(f"verification[{n}] cannot run: {word[:80]} {wrong}")
    return faults
