"""What the MCP server decides without asking anybody: budgets, patience, arguments, addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.mcp import resources
from holdfast.mcp.tools import schemas, time_limits, token_budget
from holdfast.model.errors import HoldfastError


@given(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, 5000))
def test_ranges_keep_the_budget_and_both_ends(start: int, size: int, most: int) -> None:
    found = token_budget.ranges(start, start + size, most)
    assert sum(b - a for a, b in found) == min(size, most)
    if size:
        assert (found[0][0], found[-1][1]) == (start, start + size)


@given(st.text(alphabet="ab\né漢", max_size=1500), st.integers(1, 400))
def test_cut_edges_lose_nothing_that_the_omitted_range_does_not_name(text: str, most: int) -> None:
    data = text.encode()
    wanted = token_budget.ranges(0, len(data), most)
    if len(wanted) < 2:
        return
    (a, b), (c, d) = wanted
    head, tail = token_budget.cut_end(data[a:b]), token_budget.cut_start(data[c:d])
    at = d - len(tail)
    shown, omitted = token_budget.joined([(0, head), (at, tail)], len(data))
    covered = head + b"".join(data[gap["from"] : gap["to"]] for gap in omitted) + tail
    assert covered == data
    assert "�" not in shown, "no letter is cut in two"


def test_a_gap_at_the_end_is_named_too() -> None:
    assert token_budget.joined([(10, b"abc")], 20) == ("abc", [{"from": 13, "to": 20}])
    assert token_budget.joined([], 5) == ("", [])


def test_each_client_is_waited_for_as_long_as_it_bears() -> None:
    assert time_limits.limit(None, "") == time_limits.limit(None, "mcp") == time_limits.DEFAULT_S < 5
    assert time_limits.limit(None, "codex-mcp-client") == 50
    assert time_limits.limit(None, "claude-code") > time_limits.limit(None, "Claude Desktop") > time_limits.DEFAULT_S
    assert time_limits.limit(7.0, "claude-code") == 7.0
    assert time_limits.wanted(None, 4) == 4
    assert time_limits.wanted(100, 4) == 4
    assert time_limits.wanted(0, 4) == 0
    for wrong in (-1.0, float("nan")):
        with pytest.raises(HoldfastError):
            time_limits.wanted(wrong, 4)


def test_the_flag_goes_before_the_environment() -> None:
    assert time_limits.configured(None, {}) is None
    assert time_limits.configured(None, {time_limits.ENV: "30s"}) == 30
    assert time_limits.configured("1m", {time_limits.ENV: "30s"}) == 60
    for wrong in ("0", "1h", "soon"):
        with pytest.raises(HoldfastError) as refused:
            time_limits.configured(wrong, {})
        assert refused.value.exit_status == 2


def test_arguments_are_checked_against_the_schema() -> None:
    assert schemas.fault("exec", {"session": "a", "command": "b", "wait_s": 1}) is None
    assert schemas.fault("exec", {"session": "a", "command": "b", "wait_s": None}) is None
    for name, args in (
        ("exec", {"session": "a"}),
        ("exec", {"session": "a", "command": 7}),
        ("exec", {"session": "a", "command": "b", "x": 1}),
        ("read", {"session": "a", "from": True}),
        ("read", {"session": "a", "from": "0"}),
        ("task", {"do": "sing"}),
        ("send", {"session": "a", "keys": [1]}),
        ("checkpoint", {"run": "r", "state": []}),
    ):
        assert schemas.fault(name, args) is not None, (name, args)


def test_acting_tools_take_a_reason() -> None:
    for name in ("run", "exec", "send", "kill", "task", "step"):
        assert "why" in schemas.TOOLS[name]["inputSchema"]["properties"]


def test_an_address_means_one_session_or_none() -> None:
    for name in ("web", "a b", "x/y", "ü"):
        assert resources.session_of(resources.of_session(name, "log")) == (name, "log")
    for uri in ("hold://sessions/web", "hold://sessions/web/env", "file://sessions/web/log", "hold://tasks/1/log", ""):
        assert resources.session_of(uri) is None
