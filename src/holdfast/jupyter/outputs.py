"""Collects a cell's outputs in notebook format, within limits; what does not fit is counted. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from ..model import limits

Json = dict[str, Any]

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # colours and cursor moves in a traceback


class Outputs:
    """The outputs of one cell in order. `fits` decides; streams may use only a part, so that a result still fits."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.error: Json | None = None
        self._left = limits.CELL_OUTPUT_BYTES
        self._stream_left = limits.CELL_STREAM_CHARS
        self._omitted_items = self._omitted_chars = 0
        self._clear_next = False
        self._shown: dict[str, list[Json]] = {}  # by display id, for later updates

    @property
    def omitted(self) -> Json | None:
        if not self._omitted_items and not self._omitted_chars:
            return None
        return {"outputs": self._omitted_items, "chars": self._omitted_chars}

    def stream(self, name: str, text: str) -> None:
        self._clear_if_asked()
        kept = text[: self._stream_left]
        self._stream_left -= len(kept)
        self._omitted_chars += len(text) - len(kept)
        if not kept:
            return
        last = self.items[-1] if self.items else None
        if last is not None and last["output_type"] == "stream" and last["name"] == name:
            last["text"] += kept
        elif self._counted():
            self.items.append({"output_type": "stream", "name": name, "text": kept})

    def data(self, kind: str, content: Json) -> None:
        """`execute_result` or `display_data`."""
        self._clear_if_asked()
        bundle, dropped = self._fitting(content.get("data") or {})
        item: Json = {"output_type": kind, "data": bundle, "metadata": content.get("metadata") or {}}
        if dropped:
            item["omitted"] = dropped
        if kind == "execute_result":
            item["execution_count"] = content.get("execution_count")
        if not self._counted():
            return
        self.items.append(item)
        shown_as = (content.get("transient") or {}).get("display_id")
        if shown_as:
            self._shown.setdefault(str(shown_as), []).append(item)

    def update(self, content: Json) -> None:
        """Update a display in place."""
        shown_as = str((content.get("transient") or {}).get("display_id") or "")
        for item in self._shown.get(shown_as, []):
            self._left += _size(item["data"])
            item["data"], dropped = self._fitting(content.get("data") or {})
            if dropped:
                item["omitted"] = dropped

    def clear(self, wait: bool) -> None:
        self._clear_next = True
        if not wait:
            self._clear_if_asked()

    def failed(self, content: Json) -> None:
        """Record the exception, as plain text; the terminal shows the colours."""
        lines = [_ESCAPES.sub("", str(line)) for line in content.get("traceback") or []]
        text = "\n".join(lines)
        if len(text) > limits.CELL_TRACEBACK_CHARS:  # a deep recursion: its two ends show where and what
            half = limits.CELL_TRACEBACK_CHARS // 2
            lines = [text[:half], f"… {len(text) - 2 * half} characters left out …", text[-half:]]
        value = str(content.get("evalue") or "")[: limits.CELL_TRACEBACK_CHARS]
        self.error = {"ename": str(content.get("ename") or "")[:200], "evalue": value, "traceback": lines}
        if self._counted():
            self.items.append({"output_type": "error", **self.error})

    def lost(self, name: str, value: str) -> None:
        """Record a cell's end that the kernel did not report; reported outputs stay."""
        self.error = self.error or {"ename": name, "evalue": value, "traceback": []}

    def _clear_if_asked(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self.items, self._shown = [], {}
            self._left, self._stream_left = limits.CELL_OUTPUT_BYTES, limits.CELL_STREAM_CHARS

    def _counted(self) -> bool:
        if len(self.items) < limits.CELL_OUTPUTS_MAX:
            return True
        self._omitted_items += 1
        return False

    def _fitting(self, bundle: Json) -> tuple[Json, Json]:
        """The parts of a bundle that fit, smallest first, and the sizes of the others by type."""
        kept, dropped = {}, {}
        for size, mime in sorted((_size(value), mime) for mime, value in bundle.items()):
            if size <= self._left:
                self._left -= size
                kept[mime] = bundle[mime]
            else:
                dropped[mime] = size
        return {mime: kept[mime] for mime in bundle if mime in kept}, dropped


def _size(value: object) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def plain(content: Json) -> str | None:
    """The text of a bundle, as a terminal shows it."""
    text = (content.get("data") or {}).get("text/plain")
    return "".join(text) if isinstance(text, list) else text if isinstance(text, str) else None
