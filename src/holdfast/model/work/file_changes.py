"""What an attempt did to its files: two snapshots of a scope compared, and the patch between them. Pure.

A snapshot knows every file of the scope by size, times and hash, in one order, up to a limit that it names. The
contents of small text files are kept beside it, so that a patch can be made later, by whoever comes after a killed
runner.
"""

from __future__ import annotations

import re
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import msgspec

from ..errors import HoldfastError
from ..inflating import inflate
from ..limits import SNAPSHOT_BYTES_MAX

Json = dict[str, Any]
LISTED_MAX = 500  # paths of one kind kept with the attempt itself; all of them are in the artifact
SETTLED_NS = 2_000_000_000  # a file that changed less than this before it was looked at may change again unseen
_CONTEXT = 3  # lines around a change, as diff gives them
_MATCHED_MAX = 4_000_000  # lines before times lines after that are matched; more are shown as replaced, at once


class Entry(NamedTuple):
    """A file as it was; `sha256` is None where it was too large to be read."""

    sha256: str | None
    size: int
    mode: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    blob: str | None = None  # the same content in git, where it was clean


class Snapshot(msgspec.Struct):
    """`until` is the last path looked at, where the limit cut the rest off."""

    root: str
    scope: list[str]
    at_ns: int
    files: dict[str, Entry]
    until: str | None = None
    unread: int = 0  # files known by their size and time alone


# -- the scope ---------------------------------------------------------------------------------------------------------


_BRACKET = re.compile(r"\[(?P<not>!?+)(?P<letters>\]?+[^]]*+)\]", re.DOTALL)  # a bracket that comes first is a letter
_RANGE = re.compile(r"([\s\S])(?:-([\s\S]))?")


class Scope:
    """Paths relative to the root that belong to a task: globs with `**`; a folder's name means all that is in it."""

    def __init__(self, globs: Sequence[str], extra: Iterable[str] = ()) -> None:
        wanted = [g for g in (*globs, *extra) if g] or ["**"]
        self.everything = any(g.strip("./") in ("**", "") for g in globs) or not globs
        self._match = re.compile("|".join(f"(?:{translate(g)})" for g in wanted), re.DOTALL).fullmatch

    def __contains__(self, path: str) -> bool:
        return self.everything or self._match(path) is not None


def translate(glob: str) -> str:
    """One glob as a regular expression over a relative path."""
    glob = glob.removeprefix("./").rstrip("/")
    out, i = "", 0
    while i < len(glob):
        if glob.startswith("**/", i):
            out, i = out + "(?:[^/]+/)*", i + 3
        elif glob.startswith("**", i):
            out, i = out + ".*", i + 2
        elif glob[i] == "*":
            out, i = out + "[^/]*", i + 1
        elif glob[i] == "?":
            out, i = out + "[^/]", i + 1
        elif bracket := _BRACKET.match(glob, i):
            out, i = out + _one_of(bracket["letters"], negated=bool(bracket["not"])), bracket.end()
        else:
            out, i = out + re.escape(glob[i]), i + 1
    return out + "(?:/.*)?"


def _one_of(letters: str, *, negated: bool) -> str:
    """A bracket's letters and ranges; a range that runs backwards has no letter in it, as in a shell."""
    said = ""
    for first, last in _RANGE.findall(letters):
        if not last:
            said += re.escape(first)
        elif first <= last:
            said += f"{re.escape(first)}-{re.escape(last)}"
    if not said:
        return "." if negated else "(?!)"
    return f"[^{said}]" if negated else f"[{said}]"


def order(path: str) -> list[str]:
    """Paths are taken in this order: a folder's files stand together, so that a limit cuts cleanly."""
    return path.split("/")


# -- snapshots ---------------------------------------------------------------------------------------------------------

_HEAD = struct.Struct(">4sQ")
_MARK = b"HFS1"


def pack(snapshot: Snapshot, contents: Mapping[str, bytes]) -> bytes:
    """The snapshot and the contents that were kept, as one artifact."""
    import zstandard

    index = {path: len(data) for path, data in contents.items()}
    head = msgspec.json.encode({"snapshot": snapshot, "contents": index})
    body = _HEAD.pack(_MARK, len(head)) + head + b"".join(contents.values())
    return zstandard.ZstdCompressor(level=3).compress(body)


def unpack(data: bytes) -> tuple[Snapshot, dict[str, bytes]]:
    try:
        body = inflate(data, SNAPSHOT_BYTES_MAX)
        mark, length = _HEAD.unpack_from(body)
        head = msgspec.json.decode(body[_HEAD.size : _HEAD.size + length], type=_Packed)
    except (struct.error, msgspec.MsgspecError, ValueError):
        mark = b""
    if mark != _MARK:
        raise HoldfastError("damaged", "the files' state at the attempt's start cannot be read", "compare by hand")
    at, contents = _HEAD.size + length, {}
    for path, size in head.contents.items():
        contents[path] = body[at : at + size]
        at += size
    return head.snapshot, contents


class _Packed(msgspec.Struct):
    snapshot: Snapshot
    contents: dict[str, int]


# -- comparing ---------------------------------------------------------------------------------------------------------


def differs(a: Entry, b: Entry) -> bool:
    kind = stat.S_IFMT(a.mode) != stat.S_IFMT(b.mode) or (a.mode ^ b.mode) & 0o111
    if a.sha256 is None or b.sha256 is None:
        return bool(kind) or (a.size, a.mtime_ns) != (b.size, b.mtime_ns)
    return bool(kind) or a.sha256 != b.sha256


def compare(before: Snapshot, after: Snapshot) -> Json:
    """created, changed and deleted, with hashes before and after; what only the limit hid is in none of them."""
    ends = [order(s.until) for s in (before, after) if s.until is not None]
    end = min(ends) if ends else None
    created, changed, deleted = [], [], []
    for path in sorted(before.files.keys() | after.files.keys(), key=order):
        if end is not None and order(path) > end:
            break
        old, new = before.files.get(path), after.files.get(path)
        if old is None and new is not None:
            created.append({"path": path, "before": None, "after": new.sha256, "size": new.size})
        elif new is None and old is not None:
            deleted.append({"path": path, "before": old.sha256, "after": None, "size": old.size})
        elif old is not None and new is not None and differs(old, new):
            changed.append({"path": path, "before": old.sha256, "after": new.sha256, "size": new.size})
    told: Json = {"created": created, "changed": changed, "deleted": deleted, "limits": []}
    if end is not None:
        told["limits"].append(f"only the first {len(before.files):,} files were looked at, up to {'/'.join(end)}")
    if unread := max(before.unread, after.unread):
        told["limits"].append(f"{unread:,} files were too large to be read: they are known by size and time")
    return told


def count(changes: Json) -> int:
    return sum(len(changes[kind]) for kind in ("created", "changed", "deleted"))


def listed(changes: Any, kind: str) -> list[Json]:
    """The files that were created, changed or deleted, of what was noted with an attempt, whoever noted it."""
    found = changes.get(kind) if isinstance(changes, dict) else None
    return (
        [one for one in found if isinstance(one, dict) and isinstance(one.get("path"), str)]
        if isinstance(found, list)
        else []
    )


def shortened(changes: Json) -> Json:
    """As it is kept with the attempt: bounded, and what was left out is counted."""
    told = {**changes, "counts": {k: len(changes[k]) for k in ("created", "changed", "deleted")}}
    for kind in ("created", "changed", "deleted"):
        told[kind] = changes[kind][:LISTED_MAX]
    told["omitted"] = count(changes) - count(told)
    return told


# -- the patch ---------------------------------------------------------------------------------------------------------


def is_text(data: bytes) -> bool:
    if b"\0" in data[:8000]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def file_patch(path: str, before: bytes | None, after: bytes | None, old_mode: int = 0, new_mode: int = 0) -> str:
    """One file's part, as git writes it; None is a file that is not there."""
    a, b = quoted("a/" + path), quoted("b/" + path)
    head = [f"diff --git {a} {b}"]
    if before is None:
        head.append(f"new file mode {new_mode or 0o100644:o}")
    elif after is None:
        head.append(f"deleted file mode {old_mode or 0o100644:o}")
    elif old_mode and new_mode and (old_mode ^ new_mode) & 0o111:
        head += [f"old mode {old_mode:o}", f"new mode {new_mode:o}"]
    if before == after:
        return "\n".join(head) + "\n"
    if not (is_text(before or b"") and is_text(after or b"")):
        return "\n".join([*head, f"Binary files {a} and {b} differ"]) + "\n"
    tab = "\t" if " " in path else ""
    names = ("/dev/null" if before is None else a + tab, "/dev/null" if after is None else b + tab)
    hunks = _hunks(_lines(before), _lines(after))
    if not hunks:
        return "\n".join(head) + "\n"  # an empty file came or went
    return "\n".join([*head, f"--- {names[0]}", f"+++ {names[1]}"]) + "\n" + hunks


def _lines(data: bytes | None) -> list[str]:
    """With their ends; split at newlines alone, as patch tools do."""
    parts = (data or b"").decode().split("\n")
    lines = [p + "\n" for p in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _hunks(old: list[str], new: list[str]) -> str:
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    if not a and not b:
        return ""
    spans = [(start, len(old) - end, start, len(new) - end)]
    if len(a) * len(b) <= _MATCHED_MAX:
        found = SequenceMatcher(None, a, b, autojunk=True).get_opcodes()
        spans = [(start + i, start + j, start + k, start + m) for tag, i, j, k, m in found if tag != "equal"]
    groups: list[list[tuple[int, int, int, int]]] = []
    for span in spans:
        if groups and span[0] - groups[-1][-1][1] <= 2 * _CONTEXT:
            groups[-1].append(span)
        else:
            groups.append([span])
    return "".join(_hunk(old, new, group) for group in groups)


def _hunk(old: list[str], new: list[str], spans: list[tuple[int, int, int, int]]) -> str:
    lead = min(_CONTEXT, spans[0][0])
    first, other = spans[0][0] - lead, spans[0][2] - lead
    trail = min(_CONTEXT, len(old) - spans[-1][1])
    last, other_last = spans[-1][1] + trail, spans[-1][3] + trail
    out, at = [], first
    for i, j, k, m in spans:
        out += [" " + line for line in old[at:i]]
        out += ["-" + line for line in old[i:j]]
        out += ["+" + line for line in new[k:m]]
        at = j
    out += [" " + line for line in old[at:last]]
    text = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in out)
    return f"@@ -{_range(first, last)} +{_range(other, other_last)} @@\n{text}"


def _range(start: int, end: int) -> str:
    length = end - start
    return f"{start + (length > 0)},{length}" if length != 1 else str(start + 1)


def quoted(path: str) -> str:
    if path.isascii() and path.isprintable() and not set(path) & set('"\\'):
        return path
    special = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    out = []
    for c in path:
        if c in special:
            out.append(special[c])
        elif c.isascii() and c.isprintable():
            out.append(c)
        else:
            out.append("".join(f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogateescape")))
    return f'"{"".join(out)}"'
