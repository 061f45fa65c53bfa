"""Where a job stands, so that what it notes on the way is written once, however often it begins at its beginning.

A place is the step that was finished last and how many notes and checkpoints came since. A job that is run again comes
by the same places, and what it writes there carries the same request id: the store knows it already.
"""

from __future__ import annotations

import hashlib
from itertools import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Place:
    """One per run that a worker holds. The key and its count are replaced together: threads see both or neither."""

    __slots__ = ("_after",)

    def __init__(self) -> None:
        self._after = "", count(1)

    def once(self) -> Json:
        """The argument that makes a call the one of this place; the next call is the next place's."""
        key, ordinal = self._after
        place = f"{next(ordinal)}\0{key}"
        return {"request": "at_" + hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:32]}

    def finished(self, key: str) -> None:
        self._after = key, count(1)

    def heard(self, name: str, args: Json, answer: Json) -> None:
        """A step's call was answered: whether one is finished now, or was before."""
        if name == "step_end":
            self.finished(args["key"])
        if name == "step_next":
            self.finished(args["ended"]["key"])
        if answer.get("decision") == "reuse":
            self.finished(args["key"])
