"""A report as one page that needs nothing else: no script, nothing from elsewhere, everything escaped. Pure."""

from __future__ import annotations

import datetime
import html
from typing import Any

from ...model.limits import REPORT_LANES
from ..briefs.markdown import clean
from . import markdown as words

Json = dict[str, Any]
_WIDTH, _LABEL, _LANE, _TOP = 960, 220, 22, 30  # of the picture, in pixels
_TICKS = 6  # times along its top
_LABEL_MAX = 30  # characters that fit beside a lane
_CLASS = {"done": "done", "failed": "failed", "cancelled": "cancelled", None: "open"}

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #667085; --line: #d5dae1; --paper: #fff; --done: #2e7d4f;
  --failed: #c0392b; --open: #2f6fb3; --cancelled: #98a2b3; --blocked: #b7791f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --dim: #98a2b3; --line: #344054; --paper: #12161c;
  --done: #57b47f; --failed: #ef6f61; --open: #6aa5e6; --blocked: #e0a94b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th, [class^=s-] { white-space: nowrap; } td:first-child { min-width: 5rem; }
th { color: var(--dim); font-weight: 500; } .dim { color: var(--dim); }
.s-done { color: var(--done); } .s-failed, .s-blocked { color: var(--failed); } .s-active { color: var(--open); }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px; fill: var(--ink); }
svg .tick { fill: var(--dim); } svg line { stroke: var(--line); } svg .done { fill: var(--done); }
svg .failed { fill: var(--failed); } svg .open { fill: var(--open); } svg .cancelled { fill: var(--cancelled); }
svg .mark { fill: var(--paper); stroke: var(--ink); stroke-width: 1.2; } svg .mark.block { fill: var(--blocked); }
"""


def page(report: Json) -> str:
    title = _safe(words.heading(report))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Nothing is loaded and nothing runs, whatever a title holds.
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">""",
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
    ]
    if words.empty(report):
        parts.append(f"<p>{_safe(words.nothing(report))}</p>")
    else:
        parts.append("<ul>" + "".join(f"<li>{_safe(each)}</li>" for each in words.summary(report)) + "</ul>")
        parts += [_picture(report), _people(report), _tasks(report), _runs(report)]
    parts.append(f'<p class="dim">Observed {_safe(report["observed_at"])}.</p></body></html>')
    return "\n".join(part for part in parts if part) + "\n"


def _safe(text: object) -> str:
    return html.escape(clean("" if text is None else text))


def _table(headers: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{_safe(h)}</th>" for h in headers)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _people(report: Json) -> str:
    if not report["people"]:
        return ""
    rows = [
        [_safe(p["name"]), str(p["done"]), str(p["failed"]), str(p["events"]), str(p["entries"])]
        for p in report["people"]
    ]
    return "<h2>By whom</h2>" + _table(["Operator", "Done", "Failed", "Changes", "Log entries"], rows)


def _tasks(report: Json) -> str:
    if not report["tasks"]:
        return ""
    rows = []
    for task in report["tasks"]:
        attempts = "<br>".join(
            f"{a['n']}{_who(a)}: {_safe(words.result(a))}"
            + (f" <span class=dim>{_safe(a['failure_detail'])}</span>" if a.get("failure_detail") else "")
            for a in task["attempts"]
        )
        last = task["events"][-1] if task["events"] else None
        why = _safe(last["why"]) if last and last["why"] else ""
        status = f'<span class="s-{_safe(task["status"])}">{_safe(task["status"])}</span>'
        rows.append([_safe(task["key"]), _safe(task["title"]), status, attempts, why])
    more = report["omitted"]["tasks"]
    note = f'<p class="dim">{more} more; choose a shorter span.</p>' if more else ""
    return "<h2>Tasks</h2>" + _table(["Task", "Title", "Status", "Attempts", "Why"], rows) + note


def _who(attempt: Json) -> str:
    who = attempt["backend"] or attempt["worker"]
    return f" by {_safe(who)}" if who else ""


def _runs(report: Json) -> str:
    if not report["runs"]:
        return ""
    rows = []
    for run in report["runs"]:
        steps = ", ".join(f"{n} {state}" for state, n in run["steps"].items()) or "none"
        rows.append(
            [_safe(run["run"]), _safe(run["task"] or run["job"]), _safe(run["state"]), _safe(steps), _safe(run["by"])]
        )
    return "<h2>Runs outside of projects</h2>" + _table(["Run", "Task or job", "State", "Steps", "Begun by"], rows)


# -- the picture -------------------------------------------------------------------------------------------------------


def _picture(report: Json) -> str:
    """A lane for each task or run, a bar for each attempt, a mark for what happened in between."""
    lanes = [(f"{t['task_id']} {t['title']}", t["attempts"], t["events"]) for t in report["tasks"]]
    for run in report["runs"]:
        bar = {**run, "outcome": None if run["state"] == "active" else run["state"]}
        lanes.append((str(run["task"] or run["job"] or run["run"]), [bar], []))
    shown = lanes[:REPORT_LANES]
    first, last = _extent(report, shown)
    height = _TOP + _LANE * len(shown) + 8
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Timeline">']
    for n in range(_TICKS + 1):
        x = _LABEL + (_WIDTH - _LABEL - 60) * n / _TICKS
        at = datetime.datetime.fromtimestamp(first + (last - first) * n / _TICKS, datetime.UTC)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{height - 4}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="14" text-anchor="middle">{_tick(at, last - first)}</text>')
    for n, (label, attempts, events) in enumerate(shown):
        parts += _lane(n, label, attempts, events, first, last)
    parts.append("</svg>")
    more = len(lanes) - len(shown)
    note = f'<p class="dim">{more} more are not in the picture.</p>' if more else ""
    return "<h2>Timeline</h2>" + "".join(parts) + note


def _lane(n: int, label: str, attempts: list[Json], events: list[Json], first: float, last: float) -> list[str]:
    y = _TOP + _LANE * n

    def x(seconds: float) -> float:
        part = (min(max(seconds, first), last) - first) / max(last - first, 1e-6)
        return _LABEL + (_WIDTH - _LABEL - 60) * part

    short = label if len(label) <= _LABEL_MAX else label[: _LABEL_MAX - 1] + "…"
    parts = [f'<text x="0" y="{y + 15}">{_safe(short)}<title>{_safe(label)}</title></text>']
    for attempt in attempts:
        begin, end = x(_seconds(attempt["begun_at"])), x(_seconds(attempt["ended_at"]) if attempt["ended_at"] else last)
        about = f"{attempt.get('n') or ''} {words.result(attempt)}, {attempt['begun_at']}"
        about += f" to {attempt['ended_at'] or 'now'}"
        kind = _CLASS.get(attempt["outcome"], "cancelled")
        parts.append(
            f'<rect class="{kind}" x="{begin:.1f}" y="{y + 4}" width="{max(2.0, end - begin):.1f}" height="14"'
            f' rx="2"><title>{_safe(about.strip())}</title></rect>'
        )
    for event in events:
        kind = "block" if event["event"] in ("block", "give_up") else "other"
        about = f"{event['at']} {event['event']} by {event['by']}" + (f": {event['why']}" if event["why"] else "")
        parts.append(
            f'<circle class="mark {kind}" cx="{x(_seconds(event["at"])):.1f}" cy="{y + 11}" r="3.5">'
            f"<title>{_safe(about)}</title></circle>"
        )
    return parts


def _extent(report: Json, lanes: list[tuple[str, list[Json], list[Json]]]) -> tuple[float, float]:
    """The stretch of the span in which something happened, so that an hour of work in a week is not a dot."""
    since, until = _seconds(report["since"]), _seconds(report["until"])
    times = [_seconds(e["at"]) for _, _, events in lanes for e in events]
    times += [_seconds(a[k]) for _, attempts, _ in lanes for a in attempts for k in ("begun_at", "ended_at") if a[k]]
    if any(a["ended_at"] is None for _, attempts, _ in lanes for a in attempts):
        times.append(until)
    inside = [t for t in times if since <= t <= until] or [since, until]
    first, last = min(inside), max(inside)
    return first, last if last - first >= 1 else first + 1


def _seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def _tick(at: datetime.datetime, length: float) -> str:
    if length < 86400:
        return at.strftime("%H:%M:%S" if length < 600 else "%H:%M")
    return at.strftime("%d %b %H:%M" if length < 7 * 86400 else "%d %b")
