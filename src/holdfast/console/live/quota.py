"""Room for so many at once, of which nobody takes what others need. Pure."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator


class Quota:
    """One person has at most as many as are left for everybody else: the first half of it all, the next half of the
    rest, and whoever comes then still finds room."""

    def __init__(self, whole: int) -> None:
        self._whole, self._taken = whole, Counter[str]()

    def has(self, person: str) -> bool:
        return self._taken[person] < self._whole - self._taken.total()

    def of(self, person: str) -> int:
        return self._taken[person]

    @contextlib.contextmanager
    def take(self, person: str) -> Iterator[None]:
        self._taken[person] += 1
        try:
            yield
        finally:
            self._taken[person] -= 1
            self._taken += Counter()  # forgets those who have none
