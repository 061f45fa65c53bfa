"""From a JSON object to an operation. What does not fit its class is refused here, in one line."""

from __future__ import annotations

from inspect import get_annotations
from typing import Any, Literal, get_args, get_origin

import msgspec

from ..model.errors import HoldfastError, invalid
from . import values
from .operation import Operation, find

_SHAPES: dict[str, type[msgspec.Struct]] = {}
_SAID_MAX = 200  # characters of what is wrong: it may quote what came
_ENUM = "Invalid enum value "


def request(message: dict[str, Any]) -> Operation[Any]:
    """The operation that a message asks for."""
    given = dict(message)
    op = given.pop("op", None)
    kind = find(op) if isinstance(op, str) else None
    if kind is None:
        raise HoldfastError("usage", f"this host does not know {str(op)[:40]!a}", "upgrade: hold down, then again")
    check(kind, given)
    return kind(**given)


def check(kind: type[Operation[Any]], given: dict[str, Any]) -> None:
    """Refuse fields that the operation does not have, lacks, or has of another type."""
    try:
        msgspec.convert(given, shape(kind))
    except msgspec.ValidationError as e:
        raise invalid(f"{kind.row.op}: {_words(kind, str(e))}"[:_SAID_MAX], _hint(str(e))) from None


def shape(kind: type[Operation[Any]]) -> type[msgspec.Struct]:
    """An operation's fields as msgspec checks them; made when it is first asked for, in 0.15 ms."""
    known = _SHAPES.get(kind.row.op)
    if known is None:
        fields = [(n, t, getattr(kind, n)) if hasattr(kind, n) else (n, t) for n, t in types(kind).items()]
        known = _SHAPES[kind.row.op] = msgspec.defstruct(
            kind.__name__, fields, kw_only=True, forbid_unknown_fields=True
        )
    return known


def types(kind: type[Operation[Any]]) -> dict[str, Any]:
    """The type of each field. Annotations are texts: the rows import no types when they are run."""
    bases = [base for base in reversed(kind.__mro__) if issubclass(base, Operation) and base is not Operation]
    texts = {name: text for base in bases for name, text in get_annotations(base).items()}
    return {name: eval(text, vars(values)) for name, text in texts.items()}  # noqa: S307 - our own source


def _words(kind: type[Operation[Any]], said: str) -> str:
    """`Expected `str`, got `int` - at `$.name`` as `name: expected `str`, got `int``."""
    what, _, where = said.removeprefix("Object ").partition(" - at `$.")
    where = where.removesuffix("`")
    if what.startswith(_ENUM):
        what = f"expected one of {', '.join(_choices(types(kind).get(where)))}"
    return f"{where}: {what[0].lower()}{what[1:]}" if where else what


def _choices(hint: Any) -> list[str]:
    parts = [hint, *get_args(hint)]  # a choice, or null
    return [str(choice) for part in parts if get_origin(part) is Literal for choice in get_args(part)]


def _hint(said: str) -> str:
    if "unknown field" in said:
        return "is the host older than the client? hold up replaces it"
    return "see docs/protocol.md"
