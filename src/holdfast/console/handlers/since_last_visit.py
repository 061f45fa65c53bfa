"""While you were away: of each session and task that something happened to, three lines and where to look."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import msgspec

from ...client._async.host import AsyncHost
from ...model.durations import moment_s
from ...model.errors import HoldfastError
from ...model.times import rfc3339
from ..http.routes import HttpCall, Nothing, Route

Json = dict[str, Any]

_ENTRIES_MAX = 5000  # of the journal that are counted: some days of one person's agents
_SESSIONS_MAX = 100  # told of, the latest
_LINE_MAX = 200  # characters of a line
_DID = {
    "exec": "ran {n} command{s}",
    "send": "sent {n} text{s}",
    "input": "typed",
    "take": "took the controls",
    "preempt": "took the controls",
    "hand": "handed the controls on",
    "signal": "sent {n} signal{s}",
    "stop": "stopped it",
    "restart": "started it again",
    "start": "started it",
    "answer": "answered",
    "approve": "approved {n}",
    "deny": "denied {n}",
}


class Since(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A time (RFC 3339), or how long ago (2h)."""

    since: str


class Happened(msgspec.Struct, frozen=True):
    """`kind` is session, task or run; `offset` is where its output of that time begins."""

    kind: str
    id: str
    name: str
    lines: list[str]
    state: str
    offset: int | None = None
    project: str | None = None


class Away(msgspec.Struct, frozen=True):
    since: str | None
    items: list[Happened]


async def away(call: HttpCall[Since, Nothing]) -> Any:
    since = moment_s(call.query.since, time.time())
    items = [*await _sessions(call.host, since), *await _work(call.host, since)]
    return Away(rfc3339(since), items)


async def _sessions(host: AsyncHost, since: float) -> list[Happened]:
    acts = await _acts(host, since)
    found = []
    for session in (await host.call("ls", all=True, lines=True))[-_SESSIONS_MAX:]:
        where = await host.call("offset", session=session["id"], since=since)
        printed = where["end"] - where["at"]
        mine = acts.get(session["id"], [])
        ended = session["exit"] is not None and (session["exit"]["at"] or "") >= str(rfc3339(since))
        if mine or printed > 0 or ended:
            lines = [line[:_LINE_MAX] for line in three_lines(session, mine, printed)]
            found.append(Happened("session", session["id"], session["name"], lines, session["state"], where["at"]))
    return found


async def _acts(host: AsyncHost, since: float) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    before: int | None = None
    count = 0
    while count < _ENTRIES_MAX:
        page = await host.timeline(since=since, before=before)
        for entry in page["entries"]:
            found.setdefault(str(entry["session"]), []).append(entry)
        count, before = count + len(page["entries"]), page["next"]
        if before is None:
            break
    return found


def three_lines(session: Json, entries: list[Json], printed: int) -> list[str]:
    """Who did what; how it stands; what it said."""
    return [who_did(entries), stands(session), said(session, printed)]


def who_did(entries: list[Json]) -> str:
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        if entry["kind"] in _DID and not (entry["kind"] == "input" and entry.get("what") != "keys"):
            kind = f" ({entry['operator_kind']})" if entry["operator_kind"] in ("agent", "service") else ""
            counts.setdefault(f"{entry['name'] or 'the host'}{kind}", Counter())[_DID[entry["kind"]]] += 1
    parts = [
        f"{who} " + ", ".join(words.format(n=n, s="" if n == 1 else "s") for words, n in did.most_common(3))
        for who, did in counts.items()
    ]
    return "; ".join(parts) or "nobody touched it"


def stands(session: Json) -> str:
    ended, activity = session["exit"], session["activity"] or {}
    if ended is not None and session["state"] != "live":
        how = ended["signal"] or f"code {ended['code']}" if ended["known"] else "nobody saw how"
        return f"ended: {how}"
    words = {
        "waiting_for_input": "waits for input",
        "waiting_for_secret": "waits for a secret",
        "at_prompt": "is at its prompt",
        "menu": "shows a menu",
        "full_screen": "shows a full screen",
    }
    kind = str(activity.get("kind"))
    prompt = f": {activity['prompt']}" if activity.get("prompt") and kind.startswith("waiting") else ""
    return words.get(kind, kind if session["state"] == "live" else session["state"]) + prompt


def said(session: Json, printed: int) -> str:
    if printed <= 0:
        return "said nothing"
    small, middle = printed < 10_000, printed < 10_000_000
    size = f"{printed} bytes" if small else f"{printed / 1e3:.0f} kB" if middle else f"{printed / 1e6:.0f} MB"
    return f"said {size}" + (f", last: {session['last_line']}" if session.get("last_line") else "")


async def _work(host: AsyncHost, since: float) -> list[Happened]:
    try:
        report = await host.work.call("report", since=since, everything=True)
    except HoldfastError as e:
        if e.code == "not_allowed":
            return []  # an operator of a few sessions
        raise
    tasks = [
        Happened(
            "task",
            t["key"],
            t["title"],
            [line[:_LINE_MAX] for line in task_lines(t)],
            t["status"],
            project=t["project"],
        )
        for t in report["tasks"]
    ]
    return [*tasks, *(_run(run) for run in report["runs"])]


def task_lines(task: Json) -> list[str]:
    events = ", ".join(f"{e['event']} by {e['by']}" for e in task["events"][-3:])
    attempts = task["attempts"]
    last = attempts[-1] if attempts else None
    tried = "no attempt yet" if last is None else f"attempt {last['n']}: {last['outcome'] or 'under way'}"
    if last is not None and last["failure_type"]:
        tried += f" ({last['failure_type']})"
    return [f"is {task['status']}, phase {task['phase']}", events or "nothing was decided", tried]


def _run(run: Json) -> Happened:
    steps = ", ".join(f"{n} {state}" for state, n in run["steps"].items()) or "no steps"
    lines = [f"is {run['state']}", f"steps: {steps}", f"by {run['worker'] or run['by'] or 'nobody'}"]
    return Happened("run", run["run"], run["task"] or run["job"] or run["run"], lines, run["state"])


ROUTES = [Route("GET", "/api/away", "What happened since a time.", Away, away, query=Since)]
