"""The plot: a bar for each target, how many times better than its limit we are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .result import Result, number, spaced

_MET, _MISSED = "#2a7f62", "#b3402e"
_WIDEST = 50.0  # bars end here; the number beside them goes on


def draw(results: Sequence[Result], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")  # no display is needed to write a file
    from matplotlib import pyplot

    rows = [(r, t, t.margin) for r in results for t in r.targets if t.margin is not None]
    figure, axes = pyplot.subplots(figsize=(10, 0.55 * len(rows) + 1.4))
    for y, (_, target, margin) in enumerate(rows):
        width = min(margin, _WIDEST)
        axes.barh(y, width - 1, left=1, color=_MET if target.met else _MISSED, height=0.6)
        words = f" {number(target.value)}{spaced(target.unit)}, target {target.text.removeprefix(target.words).strip()}"
        axes.text(max(width, 1.0), y, words, va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [f"{r.name}\n{t.words}" for r, t, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=min(0.5, *(m for _, _, m in rows)) * 0.8, right=_WIDEST * 8)
    ticks = [t for t in (0.1, 0.25, 0.5, 1, 2, 4, 10, 50) if t >= axes.get_xlim()[0]]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("times better than the target (left of the line: missed)")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)
