"""Whether two tasks may change the same files: compares their scopes' globs, without reading files. Pure.

It errs on one side only: scopes that share a path always overlap; some that share none may be reported too.
"""

from __future__ import annotations

from ..limits import SCOPE_STEPS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Name = tuple[str, ...]  # its letters

_ANY = ("**",)


class _TooLong(Exception):
    """The limit of comparisons is reached."""


def overlap(one: Sequence[str], other: Sequence[str]) -> tuple[str, str] | None:
    """The first two globs, one of each, that a file could match both; None where no file can. An empty scope is all.

    A contract's author chooses its globs, so the comparison is bounded: at the limit the scopes count as overlapping.
    """
    walk, theirs = _Walk(), [(glob, _parts(glob)) for glob in other or ["**"]]
    for a in one or ["**"]:
        names = _parts(a)
        for b, others in theirs:
            try:
                if walk.paths_meet(names, others):
                    return a, b
            except _TooLong:
                return a, b
    return None


def _parts(glob: str) -> tuple[Name, ...]:
    """The names between slashes. What could cross one (a bracket may stand for it) counts as any number of names, and
    so does all of a path that leaves its folder."""
    names = [name for name in glob.split("/") if name not in ("", ".")]
    if glob.startswith("/") or ".." in names:
        return (_ANY,)
    return tuple(_ANY if "**" in name or "[" in name else tuple(name) for name in names)


class _Walk:
    """Compares two sequences, each pair of positions once, with a limit of steps over all pairs of globs."""

    def __init__(self) -> None:
        self._left = SCOPE_STEPS_MAX

    def paths_meet(self, a: tuple[Name, ...], b: tuple[Name, ...]) -> bool:
        """A folder's name means all that is in it: so whichever ends first holds the rest of the other."""
        return self._meet(a, b, _ANY, lambda x, y: x == y or self._names_meet(x, y), whole=False)

    def _names_meet(self, a: Name, b: Name) -> bool:
        """Whether one name could match both: `?` is any letter, and `*` any number of them."""
        return self._meet(a, b, "*", lambda x, y: x == y or "?" in (x, y), whole=True)

    def _meet(
        self, a: tuple[Any, ...], b: tuple[Any, ...], many: object, same: Callable[[Any, Any], bool], *, whole: bool
    ) -> bool:
        """`many` stands for any number of parts."""
        at, seen = [(0, 0)], {(0, 0)}
        while at:
            self._left -= 1
            if self._left < 0:
                raise _TooLong
            i, j = at.pop()
            if (i == len(a) and j == len(b)) or (not whole and (i == len(a) or j == len(b))):
                return True
            x, y = a[i] if i < len(a) else None, b[j] if j < len(b) else None
            ahead = [(i + 1, j), (i, j + 1)] if many in (x, y) else []  # it ends here, or takes a part of the other
            if x is not None and y is not None and not ahead and same(x, y):
                ahead = [(i + 1, j + 1)]
            for step in ahead:
                if step not in seen and step[0] <= len(a) and step[1] <= len(b):
                    seen.add(step)
                    at.append(step)
        return False
