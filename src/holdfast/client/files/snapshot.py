"""What an attempt did to its files: looks at the scope before and after, and makes the list and the patch.

The look before is kept with the run, packed (`take`), so that another process can compare (`outcome`), also after the
one that looked first was killed. Git says which files are ignored, where the root is in a repository.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...model.limits import (
    KEPT_BYTES_MAX,
    KEPT_FILE_BYTES_MAX,
    PATCH_BYTES_MAX,
    SCOPE_BYTES_MAX,
    SCOPE_FILE_BYTES_MAX,
    SCOPE_FILES_MAX,
)
from ...model.work.file_changes import (
    SETTLED_NS,
    Entry,
    Scope,
    Snapshot,
    compare,
    file_patch,
    is_text,
    order,
    pack,
    quoted,
    unpack,
)
from . import git

Json = dict[str, Any]
_SKIPPED = (".git",)  # git's own bookkeeping changes with every look


def take(root: str, scope: Sequence[str], artifacts: Iterable[str] = (), home: str | None = None) -> bytes:
    """The scope as it is now, with the contents of small text files; for `outcome`, later."""
    found, contents = look(root, scope, artifacts, home, keep=True)
    return pack(found, contents)


def outcome(packed: bytes, artifacts: Iterable[str] = (), home: str | None = None) -> tuple[Json, bytes]:
    """The changes since `take`, and the patch."""
    before, kept = unpack(packed)
    after, _ = look(before.root, before.scope, artifacts, home, known=before)
    told = compare(before, after)
    with git.looked_at(before.root) as repository:
        patch, unpatched = _patch(repository, before, after, kept, told)
    told |= {"root": before.root, "scope": before.scope, "unpatched": unpatched}
    return told, patch


def look(
    root: str,
    scope: Sequence[str],
    artifacts: Iterable[str] = (),
    home: str | None = None,
    *,
    keep: bool = False,
    known: Snapshot | None = None,
) -> tuple[Snapshot, dict[str, bytes]]:
    """Every file of the scope, in order. A file that `known` has seen, and that was left alone since, is not read."""
    wanted, expected = Scope(scope), Scope(list(artifacts) or ["\0"])
    taken = Snapshot(root, list(scope), time.time_ns(), {})
    contents: dict[str, bytes] = {}
    room, kept = SCOPE_BYTES_MAX, KEPT_BYTES_MAX
    with git.looked_at(root) as repository:
        staged = repository.staged() if repository else None
        for path in _paths(root, expected, home, repository, staged):
            if path not in wanted and path not in expected:
                continue
            if len(taken.files) >= SCOPE_FILES_MAX:
                taken.until = next(reversed(taken.files))
                break
            read = _entry(root, path, room, None if known is None else known.files.get(path), known)
            if read is None:
                continue  # gone in this moment, or neither a file nor a link
            found, data = read
            if data is not None:
                room -= len(data)
            if found.sha256 is None:
                taken.unread += 1
            if keep and data is not None and repository and staged and repository.name_of(data) == staged.get(path):
                found = found._replace(blob=staged[path])  # git has this very content: no need to keep it twice
            elif keep and data is not None and len(data) <= min(KEPT_FILE_BYTES_MAX, kept) and is_text(data):
                contents[_name(path)] = data
                kept -= len(data)
            taken.files[_name(path)] = found
    return taken, contents


def _entry(
    root: str, path: str, room: int, before: Entry | None, known: Snapshot | None
) -> tuple[Entry, bytes | None] | None:
    """What a path is; with its content, where that was read."""
    full = os.path.join(root, path)
    try:
        at = os.lstat(full)
        if stat.S_ISLNK(at.st_mode):
            data: bytes | None = os.fsencode(os.readlink(full))
        elif not stat.S_ISREG(at.st_mode):
            return None
        elif before is not None and known is not None and _untouched(before, at, known):
            return before, None
        elif at.st_size > min(SCOPE_FILE_BYTES_MAX, room):
            data = None
        else:
            data = read_file(full)
    except PermissionError:
        data = None  # it is there, and known by its size and time
    except OSError:
        return None
    digest = None if data is None else hashlib.sha256(data).hexdigest()
    return Entry(digest, at.st_size, at.st_mode, at.st_mtime_ns, at.st_ctime_ns, at.st_ino), data


def _untouched(before: Entry, at: os.stat_result, known: Snapshot) -> bool:
    """The kernel sets the time of change itself; only one just before the first look could hide a second."""
    same = (before.size, before.mode, before.mtime_ns, before.ctime_ns, before.inode) == (
        at.st_size,
        at.st_mode,
        at.st_mtime_ns,
        at.st_ctime_ns,
        at.st_ino,
    )
    return same and before.sha256 is not None and before.ctime_ns < known.at_ns - SETTLED_NS


def read_file(path: str) -> bytes:
    """A regular file's content, however it came to be one: no link is followed, no pipe waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        return file.read(SCOPE_FILE_BYTES_MAX + 1)[:SCOPE_FILE_BYTES_MAX]


# -- which files -------------------------------------------------------------------------------------------------------


def _paths(
    root: str, expected: Scope, home: str | None, repository: git.Git | None, staged: Iterable[str] | None
) -> Iterator[str]:
    """Paths below the root in order: what git does not ignore, and what the contract expects; else all there is."""
    own = os.path.relpath(os.path.realpath(home), os.path.realpath(root)) if home else ".."
    others = repository.others() if repository else None
    if repository is None or staged is None or others is None:
        yield from _walk(root, own)
        return
    paths = {*staged, *others}
    paths |= {p for p in repository.others(ignored=True) or () if p in expected}
    folders = _Folders(root)
    for path in sorted(paths, key=order):
        if not path.startswith(own + "/") and folders.hold(path.rstrip("/")):
            yield path.rstrip("/")


def _walk(root: str, own: str) -> Iterator[str]:
    """Every path in order, however deep. `own` is the home's path from the root: what we write ourselves is nobody's
    change."""
    ahead = _entries(root, "")
    while ahead:
        path, one = ahead.pop()
        if one.name in _SKIPPED or path == own:
            continue
        try:
            folder = one.is_dir(follow_symlinks=False)
        except OSError:
            continue
        if folder:
            ahead += _entries(root, path)
        else:
            yield path


def _entries(root: str, below: str) -> list[tuple[str, os.DirEntry[str]]]:
    """What is in a folder, the first last."""
    try:
        with os.scandir(os.path.join(root, below)) as found:
            entries = sorted(found, key=lambda e: e.name, reverse=True)
    except OSError:
        return []
    return [(f"{below}/{one.name}" if below else one.name, one) for one in entries]


class _Folders:
    """Which paths are really below the root: no folder on the way is a link, whatever an index says."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known = {"": True}

    def hold(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        steps: list[str] = []
        while folder not in self._known:
            steps.append(folder)
            folder = folder.rpartition("/")[0]
        real = self._known[folder]
        for step in reversed(steps):
            try:
                real = real and stat.S_ISDIR(os.lstat(os.path.join(self._root, step)).st_mode)
            except OSError:
                real = False
            self._known[step] = real
        return real


def tracked(root: str) -> set[str]:
    """What git knows by name."""
    with git.looked_at(root) as repository:
        return set((repository.staged() or {}) if repository else ())


# -- the patch ---------------------------------------------------------------------------------------------------------


def _patch(
    repository: git.Git | None, before: Snapshot, after: Snapshot, kept: dict[str, bytes], told: Json
) -> tuple[bytes, list[str]]:
    """The text of it, and the files that it only names."""
    parts: list[bytes] = []
    unpatched: list[str] = []
    room = PATCH_BYTES_MAX
    for one in sorted((*told["created"], *told["changed"], *told["deleted"]), key=lambda c: order(c["path"])):
        path = one["path"]
        old, new = before.files.get(path), after.files.get(path)
        was = None if old is None else _before(repository, path, old, kept)
        now = None if new is None else _now(after.root, path, new)
        if (old is not None and was is None) or (new is not None and now is None):
            text = f"# {quoted(path)}: changed; its content was not kept\n"  # too large, or no text
            unpatched.append(path)
        else:
            text = file_patch(path, was, now, old.mode if old else 0, new.mode if new else 0)
            if "\nBinary files " in text:
                unpatched.append(path)
        raw = text.encode("utf-8", "surrogateescape")
        if len(raw) > room:
            raw = f"# {quoted(path)}: left out, the patch would be too long\n".encode("utf-8", "surrogateescape")
            unpatched.append(path)
        room -= len(raw)
        parts.append(raw)
    return b"".join(parts), unpatched


def _before(repository: git.Git | None, path: str, entry: Entry, kept: dict[str, bytes]) -> bytes | None:
    data = kept.get(path)
    if data is None and entry.blob and repository:
        data = repository.blob(entry.blob)
    same = data is not None and hashlib.sha256(data).hexdigest() == entry.sha256
    return data if same else None


def _now(root: str, path: str, entry: Entry) -> bytes | None:
    if entry.size > KEPT_FILE_BYTES_MAX:
        return None
    full = os.path.join(root, path)
    try:
        data = os.fsencode(os.readlink(full)) if stat.S_ISLNK(entry.mode) else read_file(full)
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == entry.sha256 else None


def _name(path: str) -> str:
    """A path as JSON can hold it: bytes that are not UTF-8 are shown as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
