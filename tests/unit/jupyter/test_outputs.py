"""What is kept of a cell: in order, as notebooks keep it, and never more than its bounds."""

from __future__ import annotations

import json

from holdfast.jupyter.outputs import Outputs, plain
from holdfast.model import limits


def data(text: str, **more: object) -> dict[str, object]:
    return {"data": {"text/plain": text}, "metadata": {}, **more}


def test_text_of_one_stream_is_one_output_until_something_comes_between() -> None:
    o = Outputs()
    o.stream("stdout", "a")
    o.stream("stdout", "b")
    o.stream("stderr", "c")
    o.stream("stdout", "d")
    assert [(i["name"], i["text"]) for i in o.items] == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]
    assert o.omitted is None


def test_streams_leave_room_for_results_and_what_is_left_out_is_counted() -> None:
    o = Outputs()
    o.stream("stdout", "x" * (limits.CELL_STREAM_CHARS + 5))
    o.stream("stdout", "y" * 7)
    o.data("execute_result", data("42", execution_count=3))
    assert len(o.items[0]["text"]) == limits.CELL_STREAM_CHARS
    assert o.items[1]["data"] == {"text/plain": "42"}
    assert o.omitted == {"outputs": 0, "chars": 12}


def test_of_a_bundle_that_is_too_large_the_small_part_is_kept() -> None:
    o = Outputs()
    o.data("display_data", {"data": {"image/png": "A" * (limits.CELL_OUTPUT_BYTES + 1), "text/plain": "fig"}})
    assert o.items[0]["data"] == {"text/plain": "fig"}
    assert o.items[0]["omitted"] == {"image/png": limits.CELL_OUTPUT_BYTES + 1}


def test_the_number_of_outputs_is_bounded() -> None:
    o = Outputs()
    for n in range(limits.CELL_OUTPUTS_MAX + 3):
        o.data("display_data", data(str(n)))
    assert len(o.items) == limits.CELL_OUTPUTS_MAX
    assert o.omitted == {"outputs": 3, "chars": 0}


def test_clearing_waits_for_the_next_output_where_it_is_asked_to() -> None:
    o = Outputs()
    o.stream("stdout", "one")
    o.clear(wait=True)
    assert len(o.items) == 1
    o.stream("stdout", "two")
    assert [i["text"] for i in o.items] == ["two"]
    o.clear(wait=False)
    assert o.items == []


def test_a_display_is_updated_in_place() -> None:
    o = Outputs()
    o.data("display_data", data("0%", transient={"display_id": "bar"}))
    o.update(data("100%", transient={"display_id": "bar"}))
    o.update(data("other", transient={"display_id": "unknown"}))
    assert [i["data"]["text/plain"] for i in o.items] == ["100%"]


def test_a_traceback_is_plain_text_and_keeps_its_two_ends() -> None:
    o = Outputs()
    o.failed({"ename": "E", "evalue": "v", "traceback": ["\x1b[31mfirst\x1b[0m", "x" * 200_000, "last"]})
    assert o.error is not None
    assert (o.error["ename"], o.error["evalue"]) == ("E", "v")
    assert o.error["traceback"][0].startswith("first\n")
    assert o.error["traceback"][-1].endswith("last")
    assert len("".join(o.error["traceback"])) < limits.CELL_TRACEBACK_CHARS + 100


def test_everything_at_its_bound_still_fits_the_file_that_is_read() -> None:
    o = Outputs()
    o.stream("stdout", "\u2028" * limits.CELL_STREAM_CHARS)
    o.data("display_data", {"data": {"text/plain": "\u2028" * limits.CELL_OUTPUT_BYTES}})
    o.failed({"ename": "\u2028" * 300, "evalue": "\u2028" * 100_000, "traceback": ["\u2028" * 100_000]})
    assert len(json.dumps({"outputs": o.items, "error": o.error})) < limits.CELL_FILE_BYTES_MAX


def test_text_of_a_bundle_may_come_in_lines() -> None:
    assert plain({"data": {"text/plain": ["a\n", "b"]}}) == "a\nb"
    assert plain({"data": {"image/png": "x"}}) is None
