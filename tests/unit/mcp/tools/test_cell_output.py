"""A kernel's outputs within a budget: text in place, the rest by an address that leads back to it."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.mcp.tools import cell_output

PICTURE = base64.b64encode(b"\x89PNG" + bytes(1000)).decode()


def result(*outputs: dict[str, Any], error: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"exec_id": "exe_1", "outputs": list(outputs), "error": error, "execution_count": 3, "outputs_omitted": None}


def test_a_command_of_a_shell_has_no_outputs() -> None:
    assert cell_output.told("sh", {"exec_id": "exe_1", "output": "x"}, 100) == {}


def test_a_picture_is_an_address_that_leads_back_to_its_bytes() -> None:
    made = result({"output_type": "display_data", "data": {"image/png": PICTURE, "text/plain": "<Figure>"}})
    (item,) = cell_output.told("my calc", made, 1000)["outputs"]
    assert item["data"] == {"text/plain": "<Figure>"}
    (more,) = item["more"]
    assert (more["type"], more["bytes"]) == ("image/png", 1004)
    assert PICTURE[:40] not in json.dumps(item)
    wanted = cell_output.meant(more["uri"])
    assert wanted == ("my calc", "exe_1", 0, "image/png")
    assert cell_output.content(cell_output.found(made, 0, "image/png"), "image/png").startswith(b"\x89PNG")
    assert cell_output.found(made, 7, "image/png") is None
    for wrong in (
        "hold://cells/a/b/c/d",
        "hold://cells/a/b/1",
        "hold://tasks/1",
        f"{cell_output.PREFIX}a/b/{'9' * 30}/c",
    ):
        assert cell_output.meant(wrong) is None


def test_what_has_no_plain_text_shows_its_most_readable_type() -> None:
    made = result({"output_type": "execute_result", "data": {"application/json": {"a": [1]}, "text/html": "<b>"}})
    (item,) = cell_output.told("c", made, 1000)["outputs"]
    assert item["data"] == {"application/json": {"a": [1]}}
    assert [m["type"] for m in item["more"]] == ["text/html"]


def test_a_list_is_lines_of_a_text_and_data_where_it_is_json() -> None:
    data = {"application/json": [{"a": 1}, "b", 2], "text/html": ["<b>\n", "</b>"]}
    made = result({"output_type": "display_data", "data": data})
    (item,) = cell_output.told("c", made, 1000)["outputs"]
    assert item["data"] == {"application/json": [{"a": 1}, "b", 2]}
    assert (
        json.loads(cell_output.content(cell_output.found(made, 0, "application/json"), "application/json"))
        == data["application/json"]
    )
    assert cell_output.content(cell_output.found(made, 0, "text/html"), "text/html") == b"<b>\n</b>"
    (short,) = cell_output.told(
        "c", result({"output_type": "display_data", "data": {"application/json": [1] * 500}}), 100
    )["outputs"]
    assert short["data"]["application/json"].startswith("[1, 1")


@given(st.integers(0, 400), st.integers(0, 5000), st.integers(0, 8000))
def test_the_budget_holds_and_both_ends_are_kept(count: int, length: int, room: int) -> None:
    streams = [{"output_type": "stream", "name": "stdout", "text": f"<{n}{'x' * length}{n}>"} for n in range(count)]
    error = {"ename": "E", "evalue": "v" * length, "traceback": ["t" * length]}
    told = cell_output.told("c", result(*streams, error=error), room)
    shown = told["outputs"]
    assert len(shown) == min(count, 40)
    assert len(shown) + told.get("outputs_left_out", 0) == count
    said = sum(len(o["text"]) for o in shown) + len(told["error"]["evalue"]) + len(told["error"]["traceback"])
    assert said <= 2 * room + (len(shown) + 2) * 150  # a word about what is missing, and the least of each
    if shown:
        assert shown[0]["text"].startswith("<0")
        assert shown[-1]["text"].endswith(f"{count - 1}>")
