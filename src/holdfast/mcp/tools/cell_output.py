"""Fits a kernel cell's outputs into a token budget: text inline, everything else by address. Pure.

A large picture is only named, with type and size; an agent that needs it reads the resource. A text that is too long
keeps its head and its tail, as output does.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any
from urllib.parse import quote, unquote

Json = dict[str, Any]

PREFIX = "hold://cells/"
KEYS = (
    "outputs",
    "error",
    "execution_count",
    "outputs_omitted",
)  # fields that a kernel session adds to a command's result
_READABLE = ("text/plain", "text/markdown", "application/json", "text/latex", "text/html")  # the first of them is shown
_OUTPUTS_SHOWN = 40  # outputs of one cell: of more, the first and the last are shown
_HEAD = 0.4  # the head's share of a text: the end is more often informative
_LEAST = 80  # characters of a text that are always shown: enough to recognise it


def told(session: str, result: Json, room: int) -> Json:
    """The `outputs` and `error` of a result within about `room` characters; empty if it is not a kernel's."""
    if "outputs" not in result:
        return {}
    items: list[Json] = result["outputs"] or []
    shown, first, last = list(enumerate(items)), int(_OUTPUTS_SHOWN * _HEAD), 0
    if len(items) > _OUTPUTS_SHOWN:
        last = len(items) - (_OUTPUTS_SHOWN - first)
        shown = shown[:first] + shown[last:]
    error = result["error"]
    each = max(_LEAST, room // max(1, len(shown) + (error is not None)))
    about: Json = {
        "outputs": [_item(session, str(result["exec_id"]), n, item, each) for n, item in shown],
        "error": None if error is None else _error(error, each),
        "execution_count": result["execution_count"],
    }
    if last:
        about["outputs_left_out"] = last - first  # between the first ones and the last ones
    if result.get("outputs_omitted"):
        about["outputs_omitted"] = result["outputs_omitted"]
    return about


def _item(session: str, exec_id: str, n: int, item: Json, room: int) -> Json:
    kind = item["output_type"]
    if kind == "stream":
        return {"output_type": kind, "name": item["name"], "text": cut(str(item["text"]), room)}
    if kind == "error":  # whole in `error`
        return {"output_type": kind, "ename": item["ename"]}
    bundle: Json = item["data"]
    first = next((mime for mime in _READABLE if mime in bundle), None)
    made: Json = {"output_type": kind, "data": {}}
    if first is not None:
        made["data"][first] = _fitting(bundle[first], first, room)
    others = {mime: value for mime, value in bundle.items() if mime != first}
    if others:
        made["more"] = [
            {"type": mime, "bytes": len(content(value, mime)), "uri": address(session, exec_id, n, mime)}
            for mime, value in others.items()
        ]
    if item.get("omitted"):
        made["omitted"] = item["omitted"]
    return made


def _error(error: Json, room: int) -> Json:
    lines = "\n".join(str(line) for line in error["traceback"])
    return {"ename": error["ename"], "evalue": cut(str(error["evalue"]), room), "traceback": cut(lines, room)}


def _fitting(value: Any, mime: str, room: int) -> Any:
    """A value unchanged if it fits, else the two ends of its text."""
    text = _text(value, mime)
    return (value if mime.endswith("json") else text) if len(text) <= room else cut(text, room)


def cut(text: str, room: int) -> str:
    """The text, or its head and tail with the number of omitted characters."""
    if len(text) <= room:
        return text
    head = int(room * _HEAD)
    tail = room - head
    return f"{text[:head]}\n[… {len(text) - room} characters left out …]\n{text[len(text) - tail :]}"


def _text(value: Any, mime: str) -> str:
    """Text of a notebook value, which may be one string, lines or JSON."""
    if isinstance(value, list) and not mime.endswith("json"):
        return "".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- by address --------------------------------------------------------------------------------------------------------


def address(session: str, exec_id: str, n: int, mime: str) -> str:
    return f"{PREFIX}{quote(session, safe='')}/{exec_id}/{n}/{quote(mime, safe='')}"


def meant(uri: str) -> tuple[str, str, int, str] | None:
    """Parse an address into (session, exec id, number of the output, mime type), or None."""
    parts = uri.removeprefix(PREFIX).split("/")
    if not uri.startswith(PREFIX) or len(parts) != 4 or not parts[2].isdecimal() or len(parts[2]) > 6:
        return None
    return unquote(parts[0]), unquote(parts[1]), int(parts[2]), unquote(parts[3])


def found(result: Json, n: int, mime: str) -> Any:
    """The value of one type of one output, or None."""
    items = result.get("outputs") or []
    return (items[n].get("data") or {}).get(mime) if n < len(items) else None


def is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime.endswith(("json", "xml", "javascript"))


def content(value: Any, mime: str) -> bytes:
    """The bytes of a value; binary types are decoded from base64."""
    text = _text(value, mime)
    if not is_text(mime):
        try:
            return base64.b64decode(text, validate=False)
        except (binascii.Error, ValueError):
            pass  # not base64 after all: use it unchanged
    return text.encode("utf-8", "surrogatepass")
