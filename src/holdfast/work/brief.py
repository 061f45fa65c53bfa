"""The brief: what a stranger needs to go on, within a number of tokens. Pure: the same facts, the same bytes.

The goal, the constraints and the next action are always there. The rest is taken in the order of SECTIONS while it fits;
what does not is counted, with the command that shows it. Both forms, Markdown for a model and JSON for a program, stay
within the budget by the project's own estimate.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..model.errors import invalid
from . import brief_next, brief_text
from .memory import estimate

Json = dict[str, Any]

# In this order: what must not be done twice, what is no longer true, then what happened, then what is there.
SECTIONS = (
    "in_doubt", "drifted", "stopped", "attempts", "decisions", "paths_not_taken", "questions", "sessions", "alive",
    "active", "blocked", "ready",
)  # fmt: skip
_LEFT_OUT_TOKENS = 40  # the one line that counts all omissions, where there is no room for a line each


class Item(NamedTuple):
    """Something said once as data and once in words; `short` is what is left of it where room is scarce."""

    data: Json
    text: str
    short: tuple[Json, str] | None = None


class Section(NamedTuple):
    name: str
    title: str
    items: list[Item]
    total: int  # with those that were not even gathered
    fetch: str  # the command that shows all of them


class Cost(NamedTuple):
    """Tokens of something in each of the two forms."""

    text: int
    json: int

    def __add__(self, other: object) -> Cost:
        assert isinstance(other, Cost)
        return Cost(self.text + other.text, self.json + other.json)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.text - other.text, self.json - other.json)

    @property
    def enough(self) -> bool:
        return self.text >= 0 and self.json >= 0


def tokens(text: str) -> int:
    """The estimate of memory windows; of parts, the sum is never less than that of the whole."""
    return estimate(text.encode("utf-8", "replace"))


def part(text: str) -> int:
    """The same of a piece of something larger: the overhead of a message is counted once, for the whole."""
    return tokens(text) - tokens("")


def build(facts: Json, max_tokens: int) -> Json:
    """The brief as a document; its Markdown is under `text`."""
    if max_tokens < 1:
        raise invalid(f"a brief has room for at least one token, not {max_tokens}", "--max-tokens 2000")
    doc = _frame(facts, max_tokens)
    sections = brief_text.sections(facts)
    room = Cost(max_tokens, max_tokens) - Cost(tokens(brief_text.frame(doc)), tokens(dumps(_shown(doc))))
    if not room.enough:
        # Nothing of what must not be dropped is; and nothing else is added to it.
        doc["over_budget"] = True
        doc["omitted"] = [_omission(s, s.total) for s in sections if s.total]
    else:
        _fill(doc, sections, room)
    doc["text"] = brief_text.markdown(doc, sections)
    doc["tokens"] = tokens(doc["text"])
    return doc


def dumps(doc: Json) -> str:
    return json.dumps(doc)


def _shown(doc: Json) -> Json:
    """The document as a program gets it: without the Markdown."""
    return {k: v for k, v in doc.items() if k != "text"}


def _frame(facts: Json, max_tokens: int) -> Json:
    task, run, project = facts.get("task"), facts.get("run"), facts.get("project")
    return {
        "brief": 1, "of": facts["of"], "project": project["name"] if project else None,
        "task": task and {k: task[k] for k in ("id", "key", "title", "status", "phase")},
        "run": run["run"] if run else None, "run_state": run["state"] if run else None,
        "goal": brief_text.clean(facts["goal"]) if facts["goal"] else None,
        "constraints": [brief_text.clean(c) for c in facts["constraints"]],
        "acceptance": [brief_text.clean(c) for c in facts["acceptance"]],
        "next_action": brief_text.cleaned(facts.get("next_action") or brief_next.decide(facts)),
        "counts": facts["counts"], "sections": {}, "omitted": [], "over_budget": False,
        "max_tokens": max_tokens, "tokens": max_tokens, "observed_at": facts["observed_at"],
    }  # fmt: skip


def _omission(section: Section, count: int) -> Json:
    return {"section": section.name, "count": count, "fetch": section.fetch}


def _fill(doc: Json, sections: list[Section], room: Cost) -> None:
    """Take what fits, section by section. Room for each one's omission is kept until it is known not to be needed."""
    kept = {s.name: _omission_cost(s) for s in sections if s.total}
    reserve = sum(kept.values(), Cost(0, 0))
    lumped = not (room - reserve).enough  # then all omissions share a line
    if lumped:
        kept = dict.fromkeys(kept, Cost(0, 0))
        reserve = Cost(_LEFT_OUT_TOKENS, _LEFT_OUT_TOKENS)
    room -= reserve + Cost(part("\nLeft out:\n"), 0)
    left_out = []
    for section in sections:
        if not section.total:
            continue
        room += kept[section.name]
        chosen, room = _take(section, room, kept[section.name])
        if chosen:
            doc["sections"][section.name] = chosen
        missing = section.total - len(chosen)
        if missing:
            left_out.append(_omission(section, missing))
            room -= kept[section.name]
    if lumped and left_out:
        count, fetch = sum(o["count"] for o in left_out), doc_fetch(doc)
        left_out = [{"section": "all", "count": count, "fetch": fetch}]
    doc["omitted"] = left_out


def _take(section: Section, room: Cost, omission: Cost) -> tuple[list[Json], Cost]:
    chosen: list[Json] = []
    heading = Cost(part(brief_text.heading(section.title)), part(f'"{section.name}": [], '))
    for n, item in enumerate(section.items):
        last = n == len(section.items) - 1 and section.total == len(section.items)
        spare = Cost(0, 0) if last else omission
        for data, text in ((item.data, item.text), *([item.short] if item.short else [])):
            cost = Cost(part(text), part(dumps(data) + ", ")) + (heading if not chosen else Cost(0, 0))
            if (room - cost - spare).enough:
                chosen.append({**data, "_text": text})
                room -= cost
                break
        else:
            return chosen, room
    return chosen, room


def _omission_cost(section: Section) -> Cost:
    worst = _omission(section, max(section.total, 10**6))
    return Cost(part(brief_text.omission(worst)), part(dumps(worst) + ", "))


def doc_fetch(doc: Json) -> str:
    what = doc["task"]["key"] if doc["task"] else doc["run"] or ""
    return f"hold resume {what} --max-tokens 16000".replace("  ", " ")
