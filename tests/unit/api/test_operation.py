"""What an operation's class refuses, what a client loads of it, and that its values are the model's."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from holdfast.api import values
from holdfast.api.operation import OPERATIONS, ROOMS, Act, Operation, find, load_all
from holdfast.host.sessions.manifest import RESTART
from holdfast.model.inbox.item import ASKED
from holdfast.model.operators.grants import KINDS, VERBS
from holdfast.model.work.effects import EFFECTS, LOG_KINDS, OUTCOMES, RUN_STATES

_LOADED = """
import sys
from holdfast.api.operation import load_all
before = set(sys.modules)
load_all()
print(*sorted({"typing", "msgspec", "inspect", "dataclasses"} & set(sys.modules)))
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("holdfast.api")))
"""


@pytest.mark.process
def test_rows_load_neither_typing_nor_msgspec_nor_anything_else() -> None:
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(_LOADED)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.process
def test_a_common_command_loads_the_first_room_alone() -> None:
    program = 'from holdfast.api.operation import OPERATIONS, find\nfind("ls")\nprint(len(OPERATIONS))'
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(program)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 15


def _with_path(program: str) -> str:
    return f"import sys\nsys.path[:0] = {[path for path in sys.path if path]!r}\n{program}"


def test_an_operation_is_found_by_its_name_and_an_unknown_one_is_not() -> None:
    kind = find("task_ls")
    assert kind is not None
    assert kind.row.op == "task_ls"
    assert find("__class__") is None


def test_two_operations_of_one_name_do_not_load() -> None:
    load_all()
    with pytest.raises(TypeError, match="two operations are called ls"):

        class Again(Operation[None], op="ls"):
            pass


def test_a_repeat_is_known_by_a_field_that_the_operation_has() -> None:
    with pytest.raises(TypeError, match="has no field hash"):

        class Odd(Act[None], op="odd", repeat="hash"):
            pass

    assert "odd" not in OPERATIONS


def test_each_operation_says_what_it_is_for() -> None:
    assert [op for op, kind in load_all().items() if not (kind.__doc__ or "").endswith(".")] == []


def test_every_room_has_rows() -> None:
    load_all()
    rooms = {kind.__module__.removeprefix("holdfast.api.") for kind in OPERATIONS.values()}
    assert rooms == set(ROOMS)


def test_rights_are_verbs_of_grants() -> None:
    assert {kind.row.right for kind in load_all().values()} - {""} <= set(VERBS)


def test_choices_are_those_of_the_model() -> None:
    assert get_args(values.Effect) == EFFECTS
    assert get_args(values.Outcome) == OUTCOMES
    assert get_args(values.EndState) == RUN_STATES[1:]
    assert get_args(values.LogKind) == LOG_KINDS[4:]
    assert get_args(values.AskKind) == ASKED
    assert get_args(values.OperatorKind) == KINDS
    assert get_args(values.Restart) == RESTART
