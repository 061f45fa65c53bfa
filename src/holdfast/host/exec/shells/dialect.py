"""What every shell's dialect is given, and how its script is filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_PLACE = re.compile(rb"@([a-z]+)@")

# What clears the line a line editor is on, before ours is typed. `S` changes the whole line in a vi command mode and is
# a letter everywhere else; C-k kills what stands right of the cursor in emacs mode and is a letter in vi's insert mode;
# C-u then kills all of that and what stands left of it. On a tty in canonical mode C-u alone kills the line.
CLEAR = b"S\x0b\x15"


@dataclass(frozen=True, slots=True)
class Job:
    """One command for one shell. `source` is None for a probe; `entry` is what its history shall show, if anything."""

    token: bytes
    source: bytes | None
    script: bytes
    record: bytes
    env: Mapping[bytes, bytes] = field(default_factory=dict)
    entry: bytes | None = None


@dataclass(frozen=True, slots=True)
class Wrapped:
    """`script` is what the script file holds, `typed` what is written to the PTY once that file is there."""

    script: bytes
    typed: bytes


def fill(template: bytes, **values: bytes) -> bytes:
    """Put values in the places marked @name@, in one pass: a value that looks like a place stays what it is."""
    return _PLACE.sub(lambda match: values[match[1].decode()], template)
