"""What a measurement found: our number, the peers' numbers of the same run, and the target it is held to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Target:
    """A limit on one value of a result: `words` names the value, `better` says on which side of the limit to be."""

    words: str
    value: float
    limit: float
    better: str  # "lower" or "higher"
    unit: str = "x"

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.better == "lower" else self.value >= self.limit

    @property
    def margin(self) -> float | None:
        """How many times better than the limit; below 1 it is missed. None where the limit is nothing at all."""
        if not self.limit:
            return None
        if self.better == "higher":
            return self.value / self.limit
        return self.limit / self.value if self.value > 0 else None

    @property
    def text(self) -> str:
        sign = "≤" if self.better == "lower" else "≥"
        return f"{self.words} {sign} {number(self.limit)}{spaced(self.unit)}"

    @property
    def verdict(self) -> str:
        return f"{'met' if self.met else 'MISSED'}: {number(self.value)}{spaced(self.unit)}"


@dataclass(frozen=True)
class Result:
    """One row. `ratios` are ours ÷ the peer's, each taken inside a round where rounds were interleaved."""

    key: str
    name: str
    unit: str
    ours: float
    peers: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Result:
        targets = tuple(Target(**t) for t in value["targets"])
        return cls(**{**value, "targets": targets, "notes": tuple(value["notes"])})


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios round by round: what slowed the whole machine for a while slowed both."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def number(value: float) -> str:
    """Three significant digits, as people write them."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return text if "e" not in text else f"{value:.6f}".rstrip("0")


def spaced(unit: str) -> str:
    return unit if unit == "x" else f" {unit}" if unit else ""


def spread(values: Sequence[float]) -> str:
    """Median and the 10th and 90th percentile, for notes."""
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return f"median {number(statistics.median(ordered))} (p10 {number(low)}, p90 {number(high)})"
