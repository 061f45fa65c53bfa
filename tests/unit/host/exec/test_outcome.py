"""What a record says of a command, and what the absence of one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host.exec import outcome
from holdfast.host.exec.results_file import Results
from holdfast.model.errors import HoldfastError
from holdfast.model.limits import EXECS_KEPT


@pytest.mark.parametrize(
    ("record", "known"),
    [
        ({"state": "running"}, "running"),
        ({"state": "waiting_for_input"}, "running"),
        ({"state": "exited", "exit_code": 0}, "ended"),
        ({"state": "exited", "exit_code": 3, "void": False}, "ended"),
        ({"state": "shell_ended", "exit_code": 137}, "ended"),
        ({"state": "shell_ended", "exit_code": None}, "unknown"),
        ({"state": "exited", "exit_code": None}, "unknown"),
        ({"state": "shell_ended", "exit_code": None, "void": True}, "never"),
    ],
)
def test_a_record_tells_how_the_command_ended_or_that_nobody_knows(record: dict, known: str) -> None:
    assert outcome.known(record) == known


def test_a_command_nobody_has_heard_of_is_called_off_for_good(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    assert outcome.call_off(results, "exe_1", 1, 5.0, True)["known"] == "never"
    with pytest.raises(HoldfastError, match="called off"):
        outcome.refuse_called_off(Results(str(tmp_path)), "exe_1")
    outcome.refuse_called_off(results, "exe_2")
    assert outcome.known(results.all()["exe_1"]) == "never"


def test_where_records_may_be_missing_their_absence_says_nothing(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    assert outcome.call_off(results, "exe_1", 1, 5.0, False)["known"] == "unknown"
    for n in range(EXECS_KEPT):
        results.add({"exec_id": f"exe_a{n}", "token": "t", "state": "exited", "exit_code": 0})
    assert outcome.call_off(results, "exe_1", 1, 5.0, True)["known"] == "unknown"
    assert "exe_1" not in results.all()
