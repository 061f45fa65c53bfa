"""Why an attempt failed, for programs on the SDK: the work plane's own judgement (work/classify.py)."""

from __future__ import annotations

from ..work.changes import count, listed, shortened
from ..work.classify import Evidence, classify

__all__ = ["Evidence", "classify", "count", "listed", "shortened"]
