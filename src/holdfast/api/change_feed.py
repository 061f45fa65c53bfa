"""What changed after a mark."""

from __future__ import annotations

from .operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Ends, Json, NewsOf, Seconds


class News(Operation["Json"], op="news", right="view", on="each", repeat="always"):
    """Answered when something happened after `after`, the mark of an earlier answer, or the time is up."""

    of: NewsOf
    after: str = ""
    ends: Ends | None = None
    timeout: Seconds | None = None
