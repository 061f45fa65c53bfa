"""Computes a configuration file's text after connecting or disconnecting a program, and how to undo it. Pure.

Every edit is checked by parsing both texts as the program would: only Holdfast's values may differ.
"""

from __future__ import annotations

import copy
import hashlib
import json
import tomllib

from ....model.errors import HoldfastError
from . import agent_programs, json_edit, toml_edit
from .json_positions import BrokenError, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .agent_programs import File, Value
    from .json_edit import Splice

    Json = dict[str, Any]


def read(text: str, form: str) -> Any:
    """The text as the program reads it; raises BrokenError."""
    if not text.strip("\ufeff \t\r\n"):
        return {}
    if form == "toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as e:
            raise BrokenError(str(e)) from None
    return scan(text, form == "jsonc").value


def sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Change:
    """A file's text before (None: no file) and after (None: the file is removed), and how to undo the change."""

    __slots__ = ("after", "before", "file", "paths", "splices")

    def __init__(
        self, file: File, before: str | None, after: str | None, splices: list[Splice], paths: list[list[str]]
    ) -> None:
        self.file, self.before, self.after = file, before, after
        self.splices, self.paths = splices, paths  # paths: objects and arrays that were created for Holdfast's values

    @property
    def what(self) -> str:
        if self.before == self.after:
            return "none"
        return "made" if self.before is None else "removed" if self.after is None else "changed"

    def record(self, made: bool) -> Json:
        return {"after": sha(self.after or ""), "made": made, "splices": self.splices, "paths": self.paths}


def connect(file: File, text: str | None, record: Json | None) -> Change:
    """The file with Holdfast's values added; those of an earlier connection are removed first."""
    data = _checked(file, text or "")
    if all(_there(data, v) for v in file.values) and not _stale(data, file):
        return Change(file, text, text, [], [])
    base = disconnect(file, text, record).after if text is not None and record else text
    empty = "" if file.form == "toml" else "{}\n"
    now = base if base is not None and base.strip("\ufeff \t\r\n") else empty
    splices: list[Splice] = [] if base in (None, now) else [(0, base or "", now)]
    wanted = copy.deepcopy(_checked(file, now))
    paths = _missing(wanted, file)
    for value in file.values:
        try:
            for path, index in _ours(wanted, value) if value.append else []:
                now = _taken(now, _take(now, path, index, file.form), splices)
                _unset(wanted, path, index)
            now = _taken(now, _put(now, value, file.form, _at(wanted, value.path) is not None), splices)
        except BrokenError as e:
            raise _broken(file, str(e)) from None
        _set(wanted, value)
    if not _reads(now, file.form, wanted):
        raise _unsafe(file, "add by hand what hold connect … --print shows")
    return Change(file, text, now, splices, paths)


def disconnect(file: File, text: str | None, record: Json | None) -> Change:
    """The file without Holdfast's values; byte for byte as before if no other program changed it since."""
    if text is None:
        return Change(file, None, None, [], [])
    if record and record.get("after") == sha(text):
        try:
            before = json_edit.undo(text, [(s[0], s[1], s[2]) for s in record["splices"]])
            return Change(file, text, None if record.get("made") else before, [], [])
        except BrokenError:
            pass  # the record does not match this text
    wanted, now, done = copy.deepcopy(_checked(file, text)), text, []  # type: ignore[var-annotated]
    for value in file.values:
        for path, index in _ours(wanted, value):
            if not _of_this_home(wanted, path, index, value):
                continue
            now = _taken(now, _take(now, path, index, file.form), done)
            _unset(wanted, path, index)
    for made in record.get("paths", []) if record and done and file.form != "toml" else []:
        if _at(wanted, tuple(made)) in ({}, []):
            now = _taken(now, _take(now, tuple(made), None, file.form), done)
            _unset(wanted, tuple(made), None)
    if not _reads(now, file.form, wanted):
        raise _unsafe(file, f"remove {agent_programs.ENTRY} by hand")
    gone = bool(record and record.get("made")) and not _full(wanted, "toml")
    return Change(file, text, None if gone else now, [], [])


def _taken(text: str, steps: list[Splice], splices: list[Splice]) -> str:
    splices += steps
    return json_edit.apply(text, steps)


def _missing(data: Any, file: File) -> list[list[str]]:
    """Objects and arrays that do not exist yet, the deepest first."""
    paths = {v.path[:n] for v in file.values for n in range(1, len(v.path) + bool(v.append))}
    return [list(p) for p in sorted(paths, key=lambda p: (-len(p), p)) if _at(data, p) is None]


def _checked(file: File, text: str) -> Any:
    try:
        data = read(text, file.form)
    except BrokenError as e:
        raise _broken(file, str(e)) from None
    if not isinstance(data, dict):
        raise _broken(file, "it is not a JSON object")
    return data


def _broken(file: File, why: str) -> HoldfastError:
    return HoldfastError("failed", f"{file.path} cannot be read: {why}", "fix it first; it was not changed")


def _unsafe(file: File, hint: str) -> HoldfastError:
    return HoldfastError("failed", f"{file.path} has a layout that hold cannot edit safely", hint)


def _reads(text: str, form: str, wanted: Any) -> bool:
    """Whether the program that reads this text gets the expected values."""
    try:
        return bool(_full(read(text, form), form) == _full(wanted, form))
    except BrokenError:
        return False


def _put(text: str, value: Value, form: str, there: bool) -> list[Splice]:
    if form == "toml":
        return toml_edit.put(text, value.path, value.value, there)
    return json_edit.put(text, value.path, value.value, form == "jsonc", append=value.append)


def _take(text: str, path: tuple[str, ...], index: int | None, form: str) -> list[Splice]:
    return toml_edit.take(text, path) if form == "toml" else json_edit.take(text, path, index, form == "jsonc")


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _there(data: Any, value: Value) -> bool:
    found = _at(data, value.path)
    return (isinstance(found, list) and value.value in found) if value.append else found == value.value


def _stale(data: Any, file: File) -> bool:
    """Whether a hook of another Holdfast installation exists next to the right one."""
    wanted = [json.dumps(v.value, sort_keys=True) for v in file.values if v.append]
    left = [g for v in file.values if v.append for p, i in _ours(data, v) for g in [_at(data, p)[i]]]
    return any(json.dumps(g, sort_keys=True) not in wanted for g in left)


def _ours(data: Any, value: Value) -> list[tuple[tuple[str, ...], int | None]]:
    """The positions of Holdfast's values, the last first, so that removing one moves no other."""
    found = _at(data, value.path)
    if not value.append:
        return [] if found is None else [(value.path, None)]
    groups = found if isinstance(found, list) else []
    return [(value.path, i) for i in reversed(range(len(groups))) if agent_programs.is_ours(groups[i])]


def _of_this_home(data: Any, path: tuple[str, ...], index: int | None, value: Value) -> bool:
    """Whether the entry was written for this home: one of the user's own, or of another home, is left alone."""
    found = _at(data, path) if index is None else _at(data, path)[index]
    own = agent_programs.is_ours(found) if value.append else agent_programs.is_our_server(found)
    return own and agent_programs.home_of(found) == agent_programs.home_of(value.value)


def _set(data: Any, value: Value) -> None:
    for key in value.path[:-1]:
        data = data.setdefault(key, {}) if isinstance(data, dict) else {}
    if not isinstance(data, dict):
        return
    if value.append:
        held = data.setdefault(value.path[-1], [])
        if isinstance(held, list):
            held.append(value.value)
    else:
        data[value.path[-1]] = value.value


def _unset(data: Any, path: tuple[str, ...], index: int | None) -> None:
    holder = _at(data, path if index is not None else path[:-1])
    del holder[path[-1] if index is None else index]


def _full(data: Any, form: str) -> Any:
    """TOML has no table without its own line: a table that became empty is gone."""
    return {k: v for k, v in data.items() if v != {}} if form == "toml" else data
