"""What does not fit an operation's class is refused, for every operation, in one line that quotes little."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from holdfast.api import checking, values
from holdfast.api.operation import Operation, load_all
from holdfast.model.errors import HoldfastError
from holdfast.wire import host_requests

KINDS = sorted(load_all().items())
EVERY = pytest.mark.parametrize("kind", [kind for _, kind in KINDS], ids=[op for op, _ in KINDS])
LONG = "x" * 10_000_000
DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]


def refused(message: dict[str, Any]) -> str:
    with pytest.raises(HoldfastError) as e:
        checking.request(message)
    line = e.value.line()
    assert (e.value.code, e.value.exit_status, line.count("\n")) == ("invalid", 2, 0)
    assert len(line) < 300
    assert line.startswith(f"{message['op']}: ")
    return line


def fitting(hint: Any) -> Any:
    """Some value that fits a type."""
    for value in ("", "x", 1, True, [], ["x"], {}, [1, 2], "0" * 64, *_choices(hint), {"conversation": "x"}):
        try:
            msgspec.convert(value, hint)
        except msgspec.ValidationError:
            continue
        return value
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return {field.name: fitting(field.type) for field in msgspec.structs.fields(hint) if field.required}
    raise AssertionError(f"no value fits {hint}")


def _choices(hint: Any) -> list[Any]:
    return list(getattr(hint, "__args__", ()))


def needed(kind: type[Operation[Any]]) -> dict[str, Any]:
    """A request with what it cannot do without."""
    hints = checking.types(kind)
    return {"op": kind.row.op, **{n: fitting(t) for n, t in hints.items() if not hasattr(kind, n)}}


@EVERY
def test_a_request_that_fits_becomes_its_operation(kind: type[Operation[Any]]) -> None:
    request = checking.request(needed(kind))
    assert type(request) is kind
    assert {"op": kind.row.op, **vars(request)} == needed(kind)


@EVERY
def test_an_unknown_field_is_refused(kind: type[Operation[Any]]) -> None:
    assert "contains unknown field `nosuch`" in refused({**needed(kind), "nosuch": 1})


@EVERY
def test_a_field_that_is_missing_is_named(kind: type[Operation[Any]]) -> None:
    for name in needed(kind).keys() - {"op"}:
        assert f"missing required field `{name}`" in refused({k: v for k, v in needed(kind).items() if k != name})


@EVERY
def test_a_field_of_another_type_is_refused(kind: type[Operation[Any]]) -> None:
    """A number that is none, and a deep list, in each field that is not the caller's own to fill."""
    for name, hint in checking.types(kind).items():
        if hint is object:
            checking.request({**needed(kind), name: DEEP})
            continue
        for odd in (math.nan, math.inf, -math.inf, DEEP, {"a": DEEP}, [{"a": 1}], -1.5):
            try:
                msgspec.convert(odd, hint)
            except msgspec.ValidationError:
                assert f" {name}" in refused({**needed(kind), name: odd})
            else:
                assert not isinstance(odd, float)  # a table of one's own may be of any depth


@EVERY
def test_a_text_is_bounded_or_belongs_to_the_caller(kind: type[Operation[Any]]) -> None:
    long = "x" * 5000
    for name, hint in checking.types(kind).items():
        if hint in (values.Word, values.Word | None, values.Path):
            assert f"{name}: expected `str" in refused({**needed(kind), name: long})


@pytest.mark.parametrize(
    ("op", "field"),
    [("stop", "session"), ("step_begin", "key"), ("ask", "ask"), ("token_check", "hash"), ("run_end", "state")],
)
def test_ten_megabytes_are_refused_and_not_quoted(op: str, field: str) -> None:
    assert field in refused({**needed(load_all()[op]), field: LONG})


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ({"op": "rename", "session": "web"}, "rename: missing required field `name`"),
        ({"op": "rename", "session": "web", "name": 3}, "rename: name: expected `str`, got `int`"),
        ({"op": "exec", "session": "web", "words": ["a", 1]}, "exec: words[1]: expected `str`, got `int`"),
        (
            {"op": "step_begin", "run": "r", "key": "k", "effect": "odd"},
            "step_begin: effect: expected one of none, idempotent, verifiable, unsafe",
        ),
        ({"op": "run", "isolate": {"reads": []}}, "run: isolate: contains unknown field `reads`"),
    ],
)
def test_a_refusal_says_what_and_where(message: dict[str, Any], line: str) -> None:
    assert refused(message).startswith(f"{line}; ")


@pytest.mark.parametrize("op", [None, 3, "", "rname", "__class__", ["ls"], "x" * 1000])
def test_an_operation_that_is_not_known_is_refused_as_such(op: object) -> None:
    with pytest.raises(HoldfastError, match="this host does not know") as e:
        checking.request({"op": op})
    assert e.value.code == "usage"
    assert len(e.value.line()) < 120


def test_bytes_that_are_no_text_pass_in_a_program_s_own_words() -> None:
    request = checking.request({"op": "exec", "session": "web", "words": ["\udcff"]})
    assert vars(request)["words"] == ["\udcff"]


def test_a_number_that_is_none_does_not_come_off_the_wire_at_all() -> None:
    for text in ("NaN", "1e999", "-Infinity", "[" * 100_000):
        with pytest.raises(ValueError):  # noqa: PT011 - in whatever words
            host_requests.parsed(f'{{"op":"wait","timeout":{text}}}'.encode())
