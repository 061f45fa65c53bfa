"""Real programs in real terminals: what Holdfast judges them to be doing, against what they are doing."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.activity_table import PROGRAMS, Program, Verdict, observe, table

# Programs under observation at once. They mostly sleep; with more a small machine starves the busy ones.
_AT_ONCE = 4
_ACCURACY_MIN = 0.9  # of programs; the kernel cannot tell everything, and no rule should pretend it can

# The first test pays for observing all programs, about 25 s on two idle cores.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("activity")]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    """Every program that this machine has, observed once for all the tests below."""

    def look(program: Program) -> Verdict:
        folder = tmp_path_factory.mktemp("program")
        if program.uid is not None:
            for parent in list(folder.parents)[:3]:
                parent.chmod(parent.stat().st_mode | 0o111)  # the other user has to get there
        return observe(program, folder)

    present = [program for program in PROGRAMS if not program.missing()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(look, present))
    sys.stdout.write(f"\n{table(found)}\naccuracy {_accuracy(found):.1%} of {len(found)} programs\n")
    return found


def _accuracy(verdicts: list[Verdict]) -> float:
    return sum(verdict.correct for verdict in verdicts) / len(verdicts)


def test_what_is_called_certain_is_true(verdicts: list[Verdict]) -> None:
    wrong = [(verdict.program.name, verdict.false_certain) for verdict in verdicts if verdict.false_certain]
    assert wrong == []


def test_every_program_that_reads_a_line_is_found_for_certain(verdicts: list[Verdict]) -> None:
    readers = [verdict for verdict in verdicts if verdict.program.line_read]
    assert len(readers) >= 15
    missed = [v for v in readers if v.correct < 1 or v.last.confidence != "certain"]
    assert missed == [], table(missed)


def test_nine_of_ten_programs_are_judged_right(verdicts: list[Verdict]) -> None:
    assert len(verdicts) >= 30
    assert _accuracy(verdicts) >= _ACCURACY_MIN, table([v for v in verdicts if v.correct < 1])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_program_is_here_to_be_observed(program: Program) -> None:
    if program.missing():
        pytest.skip(f"needs {', '.join(program.missing())}")
