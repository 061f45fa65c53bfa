"""What is foreseen of a call is what the call would do; whatever is out of the ordinary is left to it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.work.foreseen import foreseen

RUN = "run_0123456789abcdef"
BEGIN: dict[str, Any] = {"run": RUN, "key": "k", "epoch": 1, "args": [1], "action": "do", "request": "req_1"}
END: dict[str, Any] = {"run": RUN, "key": "k", "epoch": 1, "result": 1, "request": "req_1"}
NEXT: dict[str, Any] = {**BEGIN, "ended": {"key": "j", "result": 1, "request": "req_0"}}
CALLS = {"step_begin": BEGIN, "step_end": END, "step_next": NEXT}
ODD: dict[str, list[dict[str, Any]]] = {
    "all": [
        {"epoch": None},
        {"epoch": "1"},
        {"epoch": True},
        {"epoch": 1.0},
        {"run": "run_0123"},
        {"run": 5},
        {"key": ""},
        {"key": 5},
        {"key": "x\0"},
        {"key": "\udc80"},
        {"key": "k" * 5000},
        {"request": 7},
        {"request": ["r"]},
        {"why": 5},
        {"unknown": 1},
    ],
    "step_begin": [
        {"effect": "none"},
        {"effect": "other"},
        {"session": 5},
        {"session": "\udc80"},
        {"exec_id": 2**70},
        {"exec_id": []},
        {"idem_key": ""},
        {"args": object()},
        {"args": "\udc80"},
        {"action": 5},
    ],
    "step_end": [
        {"effect": "unsafe"},
        {"effect": "other"},
        {"args": [1]},
        {"action": "do"},
        {"result": object()},
        {"effect": "none", "action": 5},
    ],
    "step_next": [
        {"effect": "none"},
        {"ended": None},
        {"ended": []},
        {"ended": {"key": "j"}},
        {"ended": {"request": "r"}},
        {"ended": {"key": "j", "request": ""}},
        {"ended": {"key": "j", "request": 5}},
        {"ended": {"key": 5, "request": "r"}},
        {"ended": {"key": "j", "request": "r", "result": object()}},
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_a_worker_is_foreseen(name: str) -> None:
    quick = foreseen(name, dict(CALLS[name]), "op")
    assert quick is not None
    assert quick.args[:4] == (RUN, "k", 1, "op")


@pytest.mark.parametrize("name", CALLS)
def test_what_is_out_of_the_ordinary_is_left_to_the_call_itself(name: str) -> None:
    taken = [odd for odd in ODD["all"] + ODD[name] if foreseen(name, {**CALLS[name], **odd}, "op") is not None]
    assert taken == []


@pytest.mark.parametrize("given", [{}, {"request": None}, {"request": ""}])
def test_a_call_without_a_request_id_gets_one_for_all_its_tries(given: dict[str, Any]) -> None:
    args = {**{k: v for k, v in BEGIN.items() if k != "request"}, **given}
    quick = foreseen("step_begin", args, "op")
    assert quick is not None
    assert args["request"].startswith("req_")
    assert args["request"] in quick.args


def test_other_calls_are_not_foreseen() -> None:
    args: dict[str, Any] = {"run": RUN, "epoch": 1}
    assert foreseen("lease_renew", args, "op") is None
    assert args == {"run": RUN, "epoch": 1}
