"""Which shell is waited for before its first prompt, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.host.exec.shell_loading import FREE_S, READY_S, patience

FRESH: dict[str, Any] = {"typed": 0}


@pytest.mark.parametrize("command", [["bash"], ["/usr/bin/zsh", "-l"], ["bash", "--login", "-i"]])
def test_a_shell_that_loads_its_startup_files_is_waited_for_as_long_as_the_caller_wants(command: list[str]) -> None:
    assert patience(command, FRESH, "running", False, None) is None
    assert patience(command, FRESH, "running", False, 300.0) == 300.0
    assert patience(command, FRESH, "running", False, 1.0) == READY_S


@pytest.mark.parametrize(
    ("command", "sample", "activity"),
    [
        (["bash", "-c", "sleep 1000"], FRESH, "running"),  # it never prompts
        (["python3"], FRESH, "running"),
        (["bash"], {"typed": 3}, "running"),  # somebody's command
        (["bash"], {}, "running"),  # an older keeper does not tell
        (["bash"], FRESH, "waiting_for_secret"),  # its start-up files ask somebody
        (["bash"], FRESH, "exited"),  # they ended it, and left something running
    ],
)
def test_another_program_in_the_foreground_is_not_waited_for(
    command: list[str], sample: dict[str, Any], activity: str
) -> None:
    assert patience(command, sample, activity, False, None) == FREE_S
    assert patience(command, sample, activity, True, 300.0) == READY_S
