"""From a command to the script that a shell sources and the one short line that is typed to make it do so. Pure.

What the caller does with it: write `script` to its path (mode 0600, in a folder of the session's own; the record's path
must be free or empty), make sure the shell is at its prompt, write `typed` to the PTY, watch the output for the two
marks, read the record when the second has come, and remove both files.

The typed line clears the line editor first (see `dialect.CLEAR`), which is enough for text that a program left there.
Where somebody else may have typed since the last prompt it is not: a quote may be open (PS2), a search or a menu under
way, the cursor in the middle in vi's insert mode. Then write `abandon(shell) + typed`, in one piece: bash may show its
new prompt only when more is typed. It is Ctrl-C, so `$?` becomes 130 and a trap on INT runs; that is why it is not part
of every line.

Ctrl-C makes the kernel throw away output that was not read yet, and a mark may be among it. So a shell that is back at
its prompt without a second mark is first asked for its record, and only where there is none for a probe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from ..marks import check_token
from . import bash, fish, sh, zsh
from .dialect import Job, Wrapped

_DIALECTS = {"bash": bash.wrapped, "zsh": zsh.wrapped, "fish": fish.wrapped, "sh": sh.wrapped}
SHELLS = frozenset(_DIALECTS)

_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_ENTRY_BYTES_MAX = 4096  # what somebody might still recall and edit; a longer source is a file, not a line
_EDITED_LINES = 32  # more than fits on most screens; what is longer is a script and was pasted
_NO_ENV: Mapping[bytes, bytes] = MappingProxyType({})


def wrap(
    shell: str, *, token: str, source: bytes, script: str, record: str, env: Mapping[bytes, bytes] = _NO_ENV
) -> Wrapped:
    """Run `source` in the shell, with `env` exported first. `script` and `record` are absolute paths."""
    if b"\0" in source:
        raise ValueError("a NUL byte cannot be part of a command")
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a variable's name")
        if b"\0" in value:
            raise ValueError(f"the value of {name!r} has a NUL byte")
    return _wrapped(
        shell,
        Job(check_token(token), source, _path(script), _path(record), dict(env), _history_entry(source)),
    )


def probe(shell: str, *, token: str, script: str, record: str) -> Wrapped:
    """Only ask: the `$?` of whatever ran last, and the directory."""
    return _wrapped(shell, Job(check_token(token), None, _path(script), _path(record)))


def abandon(shell: str) -> bytes:
    """What gives up whatever is being typed at the prompt.

    Ctrl-C does, but readline keeps the line that is being edited when more follows at once: Escape brings vi's insert
    mode to its command mode, where `S` changes the whole line; emacs mode knows no such key. So does fish, whose menus
    Escape leaves and whose edited text may have several lines: from the first, each takes two C-k.
    """
    return {"bash": b"\x03\x1bS", "fish": b"\x03\x1b\x1b<" + b"\x0b" * 2 * _EDITED_LINES}.get(shell, b"\x03")


def _wrapped(shell: str, job: Job) -> Wrapped:
    if shell not in _DIALECTS:
        raise ValueError(f"{shell!r} is not a shell we speak")
    return _DIALECTS[shell](job)


def _path(path: str) -> bytes:
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{path!r} is not an absolute path")
    return path.encode("utf-8", "surrogateescape")


def _history_entry(source: bytes) -> bytes | None:
    """The source as people would recall it, or None where its history is better off without it."""
    if len(source) > _ENTRY_BYTES_MAX:
        return None
    try:
        text = source.decode()
    except UnicodeDecodeError:
        return None
    if not text.strip() or not all(char.isprintable() or char in "\n\t" for char in text):
        return None
    return source.rstrip(b"\n")
