"""Requests that were carried out: one that is asked for again, because its answer was lost, is not done again."""

from __future__ import annotations

from ...model.limits import OPERATORS_REMEMBERED, REQUESTS_REMEMBERED, REQUESTS_REMEMBERED_AFTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Applied:
    """The newest of each operator, with what was answered: nobody's requests push out another's."""

    __slots__ = ("_by_operator", "_last")

    def __init__(self) -> None:
        self._by_operator: dict[str, dict[str, Json]] = {}
        self._last: list[tuple[str, str]] = []

    def find(self, operator: str, request: str) -> Json | None:
        return self._by_operator.get(operator, {}).get(request)

    def keep(self, operator: str, request: str, answer: Json) -> None:
        own = self._by_operator.pop(operator, {})
        self._by_operator[operator] = own  # the one who acted last is forgotten last
        own[request] = answer
        if len(own) > REQUESTS_REMEMBERED:
            del own[next(iter(own))]
        if len(self._by_operator) > OPERATORS_REMEMBERED:
            del self._by_operator[next(iter(self._by_operator))]
        self._last = [*self._last[1 - REQUESTS_REMEMBERED_AFTER :], (operator, request)]

    def last(self) -> list[list[str]]:
        """The very last, for the record of the end: one of them may have been what ended the session."""
        return [[operator, request] for operator, request in self._last]
