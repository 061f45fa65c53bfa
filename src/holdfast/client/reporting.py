"""A report's forms for surfaces, which do not know the work plane."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def markdown(report: dict[str, Any]) -> str:
    from ..work.reports import markdown as words

    return words.markdown(report)


def html_page(report: dict[str, Any]) -> str:
    from ..work.reports.html import page

    return page(report)
