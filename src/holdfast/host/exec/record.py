"""The out-of-band record of a command that ended: what its shell wrote beside the source, and how to read it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The directory's bytes may hold anything, newlines too, so nothing about it is parsed: it is what stands between a
# head of digits and a last line with the token, and the shell writes that line last.
_RECORD = re.compile(rb"holdfast-exec 1 ([0-9]{1,3}) ([0-9]{1,10})\n(.*)\nend ([0-9a-f]{32})\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Record:
    """How a command ended, in its shell's own words. `cwd` is None where the shell could not say."""

    token: str
    exit_code: int
    pid: int
    cwd: bytes | None


def parse_record(data: bytes) -> Record | None:
    """None while the shell has not written all of it."""
    match = _RECORD.fullmatch(data)
    if match is None:
        return None
    return Record(match[4].decode(), int(match[1]), int(match[2]), match[3] or None)
