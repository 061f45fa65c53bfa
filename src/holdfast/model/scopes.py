"""Whether two tasks may touch the same files: their scopes as globs, compared without looking at any file. Pure.

It errs on one side only: scopes that share a path are always told so; some that share none may be, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ANY = "**"


def overlap(one: Sequence[str], other: Sequence[str]) -> tuple[str, str] | None:
    """The first two globs, one of each, that a file could match both; None where no file can. None named is all."""
    for a in one or [_ANY]:
        for b in other or [_ANY]:
            if _meet(_parts(a), _parts(b)):
                return a, b
    return None


def _parts(glob: str) -> tuple[str, ...]:
    """The names between slashes. What could cross a slash (a bracket that ends behind one), or leave its folder, counts
    as any number of them."""
    names = (name for name in glob.split("/") if name not in ("", "."))
    return tuple(_ANY if _ANY in name or name == ".." or "[" in _letters(name) else name for name in names)


def _meet(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """A folder's name means all that is in it: so whichever ends first holds the rest of the other."""
    return _walk(a, b, _ANY, lambda x, y: x == y or _names_meet(_letters(x), _letters(y)), whole=False)


def _names_meet(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether one name could match both."""
    return _walk(a, b, "*", lambda x, y: x == y or "?" in (x, y), whole=True)


def _walk(
    a: tuple[str, ...], b: tuple[str, ...], many: str, same: Callable[[str, str], bool], *, whole: bool
) -> bool:
    """Through both at once, each pair of places once: `many` stands for any number of parts."""
    at, seen = [(0, 0)], {(0, 0)}
    while at:
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


def _letters(name: str) -> tuple[str, ...]:
    """A name as letters, `?` for any one of them and `*` for any number; a bracket is taken for any one."""
    out: list[str] = []
    i = 0
    while i < len(name):
        end = name.find("]", i + 2) if name[i] == "[" else -1
        out.append("?" if end > 0 else name[i])
        i = end + 1 if end > 0 else i + 1
    return tuple(out)
