"""A signal's name says which one it was, whichever the kernel has."""

from __future__ import annotations

import signal

import pytest

from holdfast.model import signals


@pytest.mark.parametrize("number", range(1, int(signal.SIGRTMAX) + 1))
def test_every_signal_has_a_name_and_is_found_by_it(number: int) -> None:
    assert signals.number(signals.name(number)) == number


def test_names_are_those_of_kill() -> None:
    assert [signals.name(int(signal.SIGRTMIN) + n) for n in (-1, 0, 1)] == ["SIG33", "SIGRTMIN", "SIGRTMIN+1"]
    assert signals.name(15) == "SIGTERM"
