"""The brief: what a stranger needs to go on, within a number of tokens. Pure: the same facts, the same bytes.

The goal, the constraints and the next action are always there. The rest is taken in the order of SECTIONS while it
fits; what does not is counted, with the command that shows it. Both forms, Markdown for a model and JSON for a program,
stay within the budget by the project's own estimate.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ...model.errors import invalid
from ..memory.window import estimate
from . import markdown, next_action

Json = dict[str, Any]

# In this order: what must not be done twice, what is no longer true, then what happened, then what is there.
SECTIONS = (
    "in_doubt",
    "drifted",
    "stopped",
    "attempts",
    "decisions",
    "paths_not_taken",
    "questions",
    "sessions",
    "alive",
    "active",
    "blocked",
    "ready",
)
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


FORMS = ("markdown", "json")


def tokens(text: str) -> int:
    """The estimate of memory windows; of parts, the sum is never less than that of the whole."""
    return estimate(text.encode("utf-8", "replace"))


def part(text: str) -> int:
    """The same of a piece of something larger: the overhead of a message is counted once, for the whole."""
    return tokens(text) - tokens("")


def build(facts: Json, max_tokens: int, form: str = "markdown") -> Json:
    """The brief as a document, with its Markdown under `text`; `form` is the one that keeps to the budget."""
    if max_tokens < 1:
        raise invalid(f"a brief has room for at least one token, not {max_tokens}", "--max-tokens 2000")
    if form not in FORMS:
        raise invalid(f"a brief has one of the forms {', '.join(FORMS)}", f"not {form[:40]!r}")
    doc, sections = _frame(facts, max_tokens), markdown.sections(facts)
    left = max_tokens - tokens(markdown.frame(doc) if form == "markdown" else dumps(doc))
    chosen = _choose(sections, left, _lump(doc, sections), form)
    if chosen is None:
        # Nothing of what must not be dropped is; and nothing else is added to it.
        doc["over_budget"] = True
        doc["omitted"] = [_lump(doc, sections)] if any(s.total for s in sections) else []
    else:
        doc["sections"], doc["omitted"] = chosen
    doc["text"] = markdown.markdown(doc, sections)
    doc["tokens"] = tokens(doc["text"] if form == "markdown" else dumps({k: v for k, v in doc.items() if k != "text"}))
    return doc


def dumps(doc: Json) -> str:
    return json.dumps(doc)


def _frame(facts: Json, max_tokens: int) -> Json:
    task, run, project = facts.get("task"), facts.get("run"), facts.get("project")
    return {
        "brief": 1,
        "of": facts["of"],
        "project": project["name"] if project else None,
        "phase": task["phase"] if task else (project or {}).get("phase"),
        "task": task and {k: markdown.clean(task[k]) for k in ("id", "key", "title", "status")},
        "run": run["run"] if run else None,
        "run_state": run["state"] if run else None,
        "goal": markdown.clean(facts["goal"]) if facts["goal"] else None,
        "constraints": [markdown.clean(c) for c in facts["constraints"]],
        "acceptance": [markdown.clean(c) for c in facts["acceptance"]],
        "next_action": markdown.cleaned(facts.get("next_action") or next_action.decide(facts)),
        "counts": facts["counts"],
        "sections": {},
        "omitted": [],
        "over_budget": False,
        "max_tokens": max_tokens,
        "tokens": max_tokens,
        "observed_at": facts["observed_at"],
    }


def _omission(section: Section, count: int) -> Json:
    return {"section": section.name, "count": count, "fetch": section.fetch}


def _lump(doc: Json, sections: list[Section], shown: int = 0) -> Json:
    """All omissions in one, where there is no room for a line each."""
    what = doc["task"]["key"] if doc["task"] else doc["run"]
    fetch = " ".join(["hold resume", *([what] if what and doc["of"] in ("task", "run") else []), "--max-tokens 16000"])
    return {"section": "all", "count": sum(s.total for s in sections) - shown, "fetch": fetch}


def _choose(
    sections: list[Section], left: int, lump: Json, form: str
) -> tuple[dict[str, list[Json]], list[Json]] | None:
    """What fits, section by section, and what was left out; None where not even that can be said.

    Room for each section's omission is kept until it is known not to be needed.
    """
    sections = [s for s in sections if s.total]
    kept = {s.name: _said(_omission(s, max(s.total, 10**6)), form) for s in sections}
    left -= part(markdown.LEFT_OUT) if form == "markdown" and sections else 0
    lumped = sum(kept.values()) > left
    if lumped:
        left -= _said(lump, form)
        kept = dict.fromkeys(kept, 0)
    if left < 0:
        return None
    left -= sum(kept.values())
    found: dict[str, list[Json]] = {}
    omitted: list[Json] = []
    for section in sections:
        left += kept[section.name]
        chosen, left = _take(section, left, kept[section.name], form)
        if chosen:
            found[section.name] = chosen
        if len(chosen) < section.total:
            omitted.append(_omission(section, section.total - len(chosen)))
            left -= kept[section.name]
    if lumped and omitted:
        omitted = [{**lump, "count": sum(o["count"] for o in omitted)}]
    return found, omitted


def _said(omission: Json, form: str) -> int:
    return part(markdown.omission(omission)) if form == "markdown" else part(dumps(omission) + ", ")


def _take(section: Section, left: int, omission: int, form: str) -> tuple[list[Json], int]:
    """The first items that fit, each whole or in short; the rest of the section is left out."""
    chosen: list[Json] = []
    heading = part(markdown.heading(section.title)) if form == "markdown" else part(f'"{section.name}": [], ')
    for n, item in enumerate(section.items):
        last = n == len(section.items) - 1 and section.total == len(section.items)
        for data, text in ((item.data, item.text), *([item.short] if item.short else [])):
            cost = (part(text) if form == "markdown" else part(dumps(data) + ", ")) + (0 if chosen else heading)
            if cost + (0 if last else omission) <= left:
                chosen.append({**data, "_text": text})
                left -= cost
                break
        else:
            break
    return chosen, left
