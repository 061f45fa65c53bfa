"""Real programs in real terminals: what Holdfast judges them to be doing, against what they are doing."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.activity_table import PROGRAMS, Program, observe, table

# Programs under observation at once. They mostly sleep; with more a small machine starves the busy ones.
_AT_ONCE = 4
_ACCURACY_MIN = 0.9  # of programs; the kernel cannot tell everything, and no rule should pretend it can
_LINE_READERS_MIN = 15  # fewer than this would prove little
_PROGRAMS_MIN = 30


# One test, because observing all programs takes about 20 s on two idle cores and the questions share it.
@pytest.mark.timeout(600)
def test_programs_are_judged_to_be_doing_what_they_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    present = [program for program in PROGRAMS if not program.missing()]
    folders = [tmp_path_factory.mktemp("program") for _ in present]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        verdicts = list(pool.map(observe, present, folders))
    accuracy = sum(verdict.correct for verdict in verdicts) / len(verdicts)
    sys.stdout.write(f"\n{table(verdicts)}\naccuracy {accuracy:.1%} of {len(verdicts)} programs\n")

    wrong = [(verdict.program.name, verdict.false_certain) for verdict in verdicts if verdict.false_certain]
    assert wrong == [], "what is called certain has to be true"

    readers = [verdict for verdict in verdicts if verdict.program.line_read]
    missed = [v for v in readers if v.correct < 1 or v.last.confidence != "certain"]
    assert missed == [], f"a program that reads a line has to be found:\n{table(missed)}"
    assert len(readers) >= _LINE_READERS_MIN

    assert accuracy >= _ACCURACY_MIN, table([v for v in verdicts if v.correct < 1])
    assert len(verdicts) >= _PROGRAMS_MIN


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_program_is_here_to_be_observed(program: Program) -> None:
    if program.missing():
        pytest.skip(f"needs {', '.join(program.missing())}")
