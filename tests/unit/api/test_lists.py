"""Each list that says something of operations equals what their rows say. Differences are named one by one."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.api.operation import Row, load_all
from holdfast.client._async import calls as client_calls
from holdfast.client._async import work as client_work
from holdfast.host import admission
from holdfast.host.inbox import standing_requests
from holdfast.host.isolation import session_socket
from holdfast.host.work import contract_guard
from holdfast.host.work import ops as work_ops
from holdfast.work import blocking_calls, service
from holdfast.work.checkpoints import ops as checkpoint_ops

KINDS = load_all()
WORK = {op for op, kind in KINDS.items() if kind.__module__.startswith("holdfast.api.work.")}
HOST = KINDS.keys() - WORK


def rows(chosen: Callable[[Row], bool]) -> set[str]:
    return {op for op, kind in KINDS.items() if chosen(kind.row)}


def with_field(name: str) -> set[str]:
    return {op for op, kind in KINDS.items() if name in kind.fields}


def test_the_right_of_each_operation_and_what_it_is_on() -> None:
    derived = {op: (KINDS[op].row.right, KINDS[op].row.on) for op in HOST}
    before_a_caller_is_known = {"identify": ("", "connection"), "prove": ("", "connection")}
    assert derived == {k: v for k, v in admission.TABLE.items() if k != "work"} | before_a_caller_is_known
    assert {(KINDS[op].row.right, KINDS[op].row.on) for op in WORK} == {admission.TABLE["work"]}
    assert rows(lambda row: row.also != "") == {"work_prune"}  # checked by hand in host/work/ops.py


def test_what_is_refused_where_it_cannot_be_recorded() -> None:
    # A login that begins is as much to be recorded as the link that it uses.
    assert rows(lambda row: row.recorded) == admission.RECORDED | {"login_use"}


def test_what_a_client_asks_again() -> None:
    derived = rows(lambda row: row.repeat != "never") & HOST
    assert derived == client_calls._REPEATABLE - {"work"}
    assert all(KINDS[op].row.repeat != "never" for op in WORK)
    assert with_field("again") & HOST == client_calls._ONCE
    assert with_field("ancestor") == client_calls._HOLDS


def test_work_that_is_known_by_its_request() -> None:
    assert rows(lambda row: row.repeat == "request") & WORK == client_work._WITH_REQUEST


def test_what_an_isolated_program_may_ask() -> None:
    isolated = rows(lambda row: row.isolated)
    assert isolated == session_socket._PLAIN | session_socket._ON_SESSION
    # `asked` names an item: the session that it was given besides was never read.
    assert isolated & with_field("session") == session_socket._ON_SESSION - {"asked"}


def test_what_changes_tasks_and_what_lengthens_a_log() -> None:
    assert rows(lambda row: "tasks" in row.changes) == work_ops._TASKS_CHANGE
    assert rows(lambda row: "log" in row.changes) == checkpoint_ops._LOGGING


def test_what_a_person_is_asked_about() -> None:
    assert rows(lambda row: row.approve == "contract") == contract_guard.CALLS
    assert with_field("standing") == set(standing_requests.STANDING)


def test_what_a_step_thread_answers() -> None:
    assert rows(lambda row: row.thread_ok) == blocking_calls.NEAR


def test_the_calls_of_the_work_plane_and_their_arguments() -> None:
    assert WORK == service.CALLS
    taken = {op: (known - {"by"}, needed) for op, (known, needed) in service._ARGUMENTS.items()}
    derived = {
        op: (KINDS[op].fields, frozenset(n for n in KINDS[op].fields if not hasattr(KINDS[op], n))) for op in WORK
    }
    assert derived == taken
