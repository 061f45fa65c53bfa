"""Printing results, and keeping them: docs/benchmarks.json as measured, the page and the plot made from it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import plot
from .result import Result, number, spaced

_ROOT = Path(__file__).resolve().parent.parent
_DOCS = _ROOT / "docs"
_REASONS = Path(__file__).with_name("reasons.toml")
_TEMPLATE = Path(__file__).with_name("template.md")


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {_cpu_name()}, Linux {platform.release()}, Python {platform.python_version()}, "
        f"{_first_line('tmux', '-V')}, {_first_line('dtach', '--version').replace(' - version', '')}"
    )


def _first_line(*words: str) -> str:
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode().partition("\n")[0]


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.machine()


def show(result: Result) -> None:
    """One result in full, as it comes."""
    print(f"\n{result.name}")
    print(f"  ours {number(result.ours)} {result.unit}")
    for peer, value in result.peers.items():
        times = f"   ours ÷ {peer} = {number(result.ratios[peer])}" if peer in result.ratios else ""
        print(f"  {peer} {number(value)} {result.unit}{times}")
    for target in result.targets:
        print(f"  target {target.text}: {target.verdict}")
    for note in result.notes:
        print(f"    {note}")
    sys.stdout.flush()


def summary(results: Sequence[Result]) -> None:
    targets = [(r, t) for r in results for t in r.targets]
    missed = [(r, t) for r, t in targets if not t.met]
    print(f"\n{len(targets) - len(missed)} of {len(targets)} targets met on {machine()}")
    for result, target in missed:
        print(f"  MISSED  {result.name}: {target.text}, got {number(target.value)}{spaced(target.unit)}")


def keep(results: Sequence[Result]) -> None:
    """Write the documents. Results of measurements that were not run this time stay as they were."""
    path = _DOCS / "benchmarks.json"
    before: list[dict[str, Any]] = json.loads(path.read_text())["results"] if path.exists() else []
    fresh = {r.key: r for r in results}
    kept = [fresh.pop(row["key"]) if row["key"] in fresh else Result.from_dict(row) for row in before]
    everything = [*kept, *fresh.values()]
    where = machine()
    document = {"machine": where, "results": [r.as_dict() for r in everything]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (_DOCS / "benchmarks.md").write_text(page(everything, where))
    plot.draw(everything, _DOCS / "benchmarks.png")
    print(f"\nkept in {path.parent.name}/: benchmarks.md, benchmarks.json, benchmarks.png")


def page(results: Sequence[Result], where: str) -> str:
    reasons: dict[str, str] = tomllib.loads(_REASONS.read_text()) if _REASONS.exists() else {}
    met = sum(t.met for r in results for t in r.targets)
    total = sum(len(r.targets) for r in results)
    return _TEMPLATE.read_text().format(
        machine=where, met=met, total=total, table=_table(results), details=_details(results, reasons)
    )


def _table(results: Sequence[Result]) -> str:
    rows = ["| what | ours | peers | target | result |", "|---|---|---|---|---|"]
    for r in results:
        peers = "<br>".join(
            f"{peer} {number(value)}" + (f" ({number(r.ratios[peer])}x)" if peer in r.ratios else "")
            for peer, value in r.peers.items()
        )
        targets = "<br>".join(t.text for t in r.targets)
        verdicts = "<br>".join(t.verdict if t.met else f"**{t.verdict}**" for t in r.targets)
        rows.append(f"| {r.name} | {number(r.ours)} {r.unit} | {peers} | {targets} | {verdicts} |")
    return "\n".join(rows)


def _details(results: Sequence[Result], reasons: dict[str, str]) -> str:
    parts = []
    for r in results:
        lines = [f"### {r.name[0].upper()}{r.name[1:]}", ""]
        lines += [f"- {note}" for note in r.notes]
        if any(not t.met for t in r.targets) and r.key in reasons:
            lines += ["", f"Why it is missed: {' '.join(reasons[r.key].split())}"]
        if r.notes or lines[-1:] != [""]:
            parts.append("\n".join(lines).rstrip())
    return "\n\n".join(parts)
