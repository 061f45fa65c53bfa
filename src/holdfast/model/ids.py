"""Ids and names: `ses_…`, `hst_…`, `op_…`, `exe_…`, `run_…`, `att_…` are created here; names are checked here."""

from __future__ import annotations

import os

from .errors import HoldfastError, invalid
from .limits import ID_PREFIX_MIN, NAME_MAX

_ALPHABET = b"0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to misread
_LETTERS = _ALPHABET * 8  # one for each value of a byte: a request id is made for every write
PREFIXES = ("ses_", "hst_", "op_", "exe_", "req_", "grt_", "ask_", "run_", "att_", "clm_")


_LENGTH = 16  # letters are 80 bits: two hosts never make the same one
_AHEAD = 64  # ids made at once: a system call per id yields to other threads, which took longer than all the rest
_made: list[str] = []
os.register_at_fork(after_in_child=_made.clear)  # a child makes its own


def new(prefix: str, length: int = _LENGTH) -> str:
    """A random id."""
    if length != _LENGTH:
        return prefix + _letters(length)
    try:
        return prefix + _made.pop()
    except IndexError:
        text = _letters(_LENGTH * _AHEAD)
        _made.extend(text[n : n + _LENGTH] for n in range(_LENGTH, len(text), _LENGTH))
        return prefix + text[:_LENGTH]


def _letters(count: int) -> str:
    return os.urandom(count).translate(_LETTERS).decode()


def check_name(name: str) -> str:
    """Return a session's name if it is valid; people type it, and tables show it."""
    if not name:
        raise invalid("a session's name cannot be empty", "leave -n out to get a default name")
    if len(name) > NAME_MAX:
        raise invalid(
            f"a session's name has at most {NAME_MAX} characters, this one has {len(name)}",
            "use a shorter one",
        )
    if name.startswith(PREFIXES):
        raise invalid(f"a session's name cannot look like an id ({name[:12]}…)", "choose another name")
    if not all(c.isalnum() or c in "._-+@" for c in name) or name[0] in ".-+":
        raise invalid(
            f"{name[:NAME_MAX]!r} cannot be a session's name",
            "letters, digits and . _ - + @ only, beginning with a letter, a digit, _ or @",
        )
    if not name.isascii():
        from .names import confusable, visible

        if confusable(name):
            raise HoldfastError(
                "not_allowed", f"{visible(name)} could be confused with another name", "use letters of one alphabet"
            )
    return name


def resolve(wanted: str, known: dict[str, str]) -> str:
    """Resolve a name, an id or an unambiguous id prefix to an id; `known` maps ids to names."""
    if not wanted:
        raise invalid("no session given", "give one; list them: hold ls")
    if wanted in known:
        return wanted
    by_name = [i for i, name in known.items() if name == wanted]
    if len(by_name) == 1:
        return by_name[0]
    # A prefix needs a letter of the random part, "ses_" alone names everything; and several where it could be a name as
    # well: `b` must not name a session only because its id begins with it.
    bare = not wanted.startswith("ses_")
    prefix = "ses_" + wanted if bare else wanted
    enough = len(prefix) >= len("ses_") + (ID_PREFIX_MIN if bare else 1)
    hits = [i for i in known if i.startswith(prefix)] if enough else []
    if len(hits) == 1:
        return hits[0]
    if len(hits) > 1:
        raise HoldfastError(
            "not_found",
            f"{wanted!r} is ambiguous: {len(hits)} session ids begin with it",
            "give more letters, or the name",
        )
    if wanted.startswith("run_"):  # runs have a history too
        hint = f"of a run: hold work status {wanted[:80]}, hold history {wanted[:80]}"
        raise HoldfastError("not_found", f"{wanted[:80]!r} is a run, not a session", hint)
    raise HoldfastError("not_found", f"no such session: {wanted[:80]!r}", "list them: hold ls -a")
