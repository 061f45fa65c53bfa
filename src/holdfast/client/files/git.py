"""What git knows about a folder, asked so that nothing in the folder has a say in what runs.

A repository's own configuration names programs: filters, a file system monitor, hooks, helpers for remotes and
credentials. Whoever writes to the folder writes that configuration, and git runs them with the rights of the person who
looks. So git gets a repository folder of ours, empty but for what it insists on, and of theirs only data: the index,
the objects and the lists of ignored names. No configuration of theirs is read, nor the person's own, which may bind a
filter to a name that the folder's attributes choose. Contents are compared here, because git would filter them.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...model.limits import GIT_ANSWER_BYTES_MAX, GIT_ANSWER_S, GIT_FILE_BYTES_MAX

_FILE_MODES = ("100644", "100755")
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*\"?sha256\b", re.IGNORECASE | re.MULTILINE)
_FORMAT = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = %s\n"


class _Theirs(NamedTuple):
    """Where a repository keeps its data."""

    top: str
    folder: str  # its .git; a worktree has one of its own, with the index, and
    common: str  # one that it shares, with the objects


class Git:
    """Questions about the files below `root`; None for whatever git does not answer."""

    def __init__(self, root: str, theirs: _Theirs, own: str) -> None:
        self._root, self._theirs = root, theirs
        raw = _small(os.path.join(theirs.common, "config"))
        self._hash = "sha256" if _SHA256.search(raw) else "sha1"
        os.mkdir(os.path.join(own, "refs"))
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", _FORMAT % self._hash)):
            with open(os.path.join(own, name), "w", encoding="ascii") as file:
                file.write(text)
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_DIR": own,
            "GIT_WORK_TREE": theirs.top,
            "GIT_INDEX_FILE": os.path.join(theirs.folder, "index"),
            "GIT_OBJECT_DIRECTORY": os.path.join(theirs.common, "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }

    def staged(self) -> dict[str, str] | None:
        """Every path in the index, with the blob of those that are files without a conflict ('' for the others)."""
        lines = self._list("ls-files", "-z", "--stage")
        if lines is None:
            return None
        found: dict[str, str] = {}
        for line in lines:
            about, _, path = line.partition("\t")
            mode, blob, stage = about.split()
            found[path] = blob if mode in _FILE_MODES and stage == "0" else ""
        return found

    def others(self, *, ignored: bool = False) -> list[str] | None:
        """Paths that are not in the index: those that are not ignored, or those that are."""
        exclude = os.path.join(self._theirs.common, "info", "exclude")
        words = ["ls-files", "-z", "--others", "--exclude-standard", *(["--ignored"] if ignored else [])]
        return self._list(*words, *([f"--exclude-from={exclude}"] if os.path.isfile(exclude) else []))

    def blob(self, name: str) -> bytes | None:
        return self._ask("cat-file", "blob", name) if _OBJECT.fullmatch(name) else None

    def name_of(self, data: bytes) -> str:
        """What a blob with this very content is called."""
        return hashlib.new(self._hash, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def _list(self, *words: str) -> list[str] | None:
        raw = self._ask(*words)
        return None if raw is None else [one for one in os.fsdecode(raw).split("\0") if one]

    def _ask(self, *words: str) -> bytes | None:
        """Its answer; None without git, where it fails, and where it takes too long or says too much."""
        try:
            asked = subprocess.Popen(
                ["git", *words],
                cwd=self._root,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
        assert asked.stdout is not None
        late = threading.Timer(GIT_ANSWER_S, asked.kill)
        late.start()
        try:
            with asked.stdout as said:
                answer = said.read(GIT_ANSWER_BYTES_MAX + 1)
        finally:
            late.cancel()
        whole = len(answer) <= GIT_ANSWER_BYTES_MAX
        if not whole:
            asked.kill()
        return answer if asked.wait() == 0 and whole else None


@contextmanager
def looked_at(root: str) -> Iterator[Git | None]:
    """Git for the repository that a folder lies in; None where there is none."""
    theirs = _find(os.path.abspath(root))
    if theirs is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-git-") as own:
        yield Git(root, theirs, own)


def _find(root: str) -> _Theirs | None:
    top = root
    while True:
        found = os.path.join(top, ".git")
        if os.path.isfile(found):  # a worktree's or a submodule's: it says where
            named = _named(found, b"gitdir: ")
            found = os.path.join(top, named) if named else found
        if os.path.isfile(os.path.join(found, "HEAD")):
            common = _named(os.path.join(found, "commondir"))
            return _Theirs(top, found, os.path.join(found, common) if common else found)
        above = os.path.dirname(top)
        if above == top:
            return None
        top = above


def _named(path: str, before: bytes = b"") -> str:
    """The path that a small file of git's names; '' where it names none."""
    raw = _small(path)
    return os.fsdecode(raw[len(before) :].strip()) if raw.startswith(before) and b"\0" not in raw else ""


def _small(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe in its place is not waited for
        with open(fd, "rb") as file:
            return file.read(GIT_FILE_BYTES_MAX) or b""
    except OSError:
        return b""
