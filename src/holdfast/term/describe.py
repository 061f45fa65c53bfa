"""A terminal state as JSON values, in one canonical form: equal descriptions are equal screens, cell by cell."""

from __future__ import annotations

from typing import Any

from holdfast.term import modes
from holdfast.term.cells import Pen, Row, Run
from holdfast.term.restore import flows
from holdfast.term.sgr import sgr
from holdfast.term.snapshot import Cursor, Grid, State


def dump(state: State, primary_rows: list[Row], modify_other_keys: int) -> dict[str, Any]:
    """Everything of `state`: both screens where both are in use, cursors, modes, title."""
    described = modes.describe(state, modify_other_keys)
    history = len(primary_rows) - state.rows
    active = state.active
    result: dict[str, Any] = {
        "size": [state.cols, state.rows],
        "alternate_active": state.alternate,
        "title": described.pop("title"),
        "modes": described,
        "cursor": _cursor(active.cursor) | {"visible": described["cursor_visible"]},
        "primary": _grid(state.screens[0], primary_rows[history:]),
        "history": _rows(primary_rows)[:history],
        "unfinished": state.unfinished.hex(),
    }
    if state.alternate:
        result["alternate"] = _grid(active, active.rows()[-state.rows :])
    return result


def _grid(grid: Grid, rows: list[Row]) -> dict[str, Any]:
    return {
        "rows": _rows(rows),
        "cursor": _cursor(grid.cursor),
        "saved_cursor": None if grid.saved is None else _cursor(grid.saved) | {"origin": grid.saved.origin},
        "keyboard": list(grid.keyboard),
    }


def _cursor(cursor: Cursor) -> dict[str, Any]:
    return {
        "x": cursor.x,
        "y": cursor.y,
        "pending_wrap": cursor.pending_wrap,
        "pen": _pen(cursor.pen),
        "charset": modes.charset(cursor.charset._replace(single_shift=0)),  # pending only where the modes say so
    }


def _rows(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        {"cells": _cells(row.runs()), "wraps": index + 1 < len(rows) and flows(row, rows[index + 1])}
        for index, row in enumerate(rows)
    ]


def _cells(runs: list[Run]) -> list[list[Any]]:
    """Runs as [text, columns, look]; blank cells have no text. Neighbours that look the same are one."""
    cells: list[list[Any]] = []
    for run in runs:
        look = _pen(run.pen)
        if cells and cells[-1][2] == look and bool(cells[-1][0]) == bool(run.text):
            cells[-1][0] += run.text
            cells[-1][1] += run.cols
        else:
            cells.append([run.text, run.cols, look])
    return cells


def _pen(pen: Pen) -> dict[str, Any]:
    look: dict[str, Any] = {"sgr": sgr(pen.style)} if sgr(pen.style) else {}
    if pen.link is not None:
        look["link"] = [modes.text(pen.link.id), modes.text(pen.link.uri)]
    if pen.protected:
        look["protected"] = True
    return look
