"""Loops that are short in `make test` and long in `make soak`, and the report that a long run leaves in docs/soak.md.

A test that repeats a fault takes `rounds`: `rounds.count(5)` is five rounds in `make test` and five times `--soak` in a
soak run, `rounds.random` is seeded by `--seed`. A property gives its number of examples as `examples(200)`.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

_EXAMPLES = 100  # hypothesis's own default
_HANGS_S = 3600  # the longest loop takes minutes at a factor of 20
_factor = 1  # set once, before any test module is imported


class Rounds:
    """How often one test repeats its fault, and by which random numbers."""

    def __init__(self, factor: int, seed: int, name: str) -> None:
        self.seed, self.counted = seed, 0
        self.random = random.Random(f"{seed} {name}")
        self.factor = factor

    def count(self, short: int) -> int:
        self.counted = short * self.factor
        return self.counted


def examples(short: int = _EXAMPLES) -> int:
    return short * _factor


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("soak")
    group.addoption("--soak", type=int, default=1, metavar="N", help="only loops and properties, N times as long")
    group.addoption("--seed", type=int, default=None, metavar="N", help="the seed of loops (a new one in each run)")
    group.addoption("--soak-report", type=Path, default=None, metavar="PATH", help="write what a soak run found here")


def configure(config: pytest.Config) -> None:
    global _factor
    _factor = config.option.soak
    if config.option.seed is None:  # workers are given the options as they are now: all of them have one seed
        config.option.seed = random.SystemRandom().randrange(1 << 32)
    if _factor > 1:
        config.pluginmanager.register(_Selection(), "holdfast-soak")
    if config.option.soak_report is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(config), "holdfast-soak-report")


class _Selection:
    """In a soak run only what can be made longer."""

    @pytest.hookimpl(trylast=True)  # hypothesis has marked its own by then
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept, other = list[pytest.Item](), list[pytest.Item]()
        for item in items:
            longer = item.get_closest_marker("hypothesis") or "rounds" in getattr(item, "fixturenames", ())
            (kept if longer else other).append(item)
        config.hook.pytest_deselected(items=other)
        items[:] = kept
        for item in items:  # the rounds are what bounds it; this is a guard against a hang
            item.add_marker(pytest.mark.timeout(_HANGS_S), append=False)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Any:
    option = request.config.option
    made = Rounds(option.soak, option.seed, request.node.name)
    print(f"--seed={option.seed}")  # noqa: T201 - pytest shows it with a failure
    yield made
    request.node.user_properties.append(("rounds", made.counted))


class _Report:
    """A table of what ran; without dates and durations, so that the same run gives the same file."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._rows = config, dict[str, tuple[str, str]]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (report.when == "teardown" and report.nodeid not in self._rows) or report.outcome != "passed":
            count = dict(report.user_properties).get("rounds")
            how_many = f"{self._config.option.soak} times the examples" if count is None else f"{count} rounds"
            self._rows[report.nodeid] = (how_many, report.outcome)

    def pytest_sessionfinish(self) -> None:
        option = self._config.option
        lines = [
            "# The last soak run",
            "",
            f"`make soak FACTOR={option.soak} SEED={option.seed}` wrote this page: each loop and each property of the test",
            f"suite, {option.soak} times as long as in `make test`. A failure is repeated with the same seed.",
            "",
            f"{sum(r[1] == 'passed' for r in self._rows.values())} of {len(self._rows)} passed.",
            "",
            "| test | how much | result |",
            "|---|---|---|",
        ]
        lines += [f"| `{name}` | {much} | {found} |" for name, (much, found) in sorted(self._rows.items())]
        option.soak_report.write_text("\n".join(lines) + "\n")
