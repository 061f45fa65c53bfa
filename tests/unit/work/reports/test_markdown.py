"""A report in its three forms: counted right, escaped whatever a title holds, complete in itself."""

from __future__ import annotations

import html.parser
import json
from typing import Any

from holdfast.work.reports import markdown
from holdfast.work.reports.html import page

Json = dict[str, Any]
AT, LATER = "2026-01-02T03:04:05.678Z", "2026-01-02T04:04:05.678Z"
HOSTILE = (
    """<script>alert(1)</script>"'><img src=x onerror=alert(2)>]]>--><svg onload=x>&amp;\x1b[2J\u202e javascript:x"""
)


def one(title: str = "Log in") -> Json:
    event = {"at": AT, "by": title, "event": "start", "status": "active", "why": title}
    attempt = {
        "n": 1,
        "worker": None,
        "backend": title,
        "outcome": "failed",
        "failure_type": "test_failure",
        "failure_detail": title,
        "convergence": "first",
        "verified": False,
        "begun_at": AT,
        "ended_at": LATER,
    }
    task = {
        "task_id": "1",
        "key": "demo/1",
        "project": "demo",
        "title": title,
        "phase": "main",
        "status": "failed",
        "events": [event],
        "attempts": [attempt, {**attempt, "n": 2, "outcome": None, "ended_at": None}],
    }
    run = {
        "run": "run_1",
        "task": title,
        "job": None,
        "state": "done",
        "worker": None,
        "by": title,
        "begun_at": AT,
        "ended_at": LATER,
        "steps": {"done": 2},
    }
    return {
        "since": AT,
        "until": LATER,
        "project": title,
        "task": None,
        "observed_at": LATER,
        "totals": {
            "tasks": 1,
            "events": {"start": 2},
            "attempts": {"begun": 2, "failed": 1},
            "runs": 1,
            "verifications": {"passed": 0, "failed": 1},
            "steps": {"done": 2},
        },
        "people": [{"name": title, "done": 0, "failed": 1, "events": 2, "entries": 3}],
        "tasks": [task],
        "runs": [run],
        "omitted": {"tasks": 0},
    }


def nothing() -> Json:
    totals = {
        "tasks": 0,
        "events": {},
        "attempts": {"begun": 0},
        "verifications": {"passed": 0, "failed": 0},
        "steps": {},
        "runs": 0,
    }
    return {**one(), "project": None, "totals": totals, "people": [], "tasks": [], "runs": []}


class Elements(html.parser.HTMLParser):
    """What a browser would make of the page: elements, attributes, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_hostile_title_is_text_and_nothing_else() -> None:
    text = page(one(HOSTILE))
    plain = Elements(page(one()))
    hostile = Elements(text)
    assert hostile.names == plain.names
    assert hostile.attributes == plain.attributes
    assert hostile.open == []
    assert not {"script", "img", "iframe", "object", "link"} & hostile.names
    assert not [name for name in hostile.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert not set("\x1b\u202e") & set(text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = page(one())
    assert "default-src 'none'" in text
    for word in ("http://", "https://", "url(", "@import"):
        assert word not in text


def test_the_picture_has_a_lane_for_each_and_a_bar_for_each_attempt() -> None:
    text = page(one())
    assert text.count("<rect") == 3  # two attempts and a run
    assert text.count("<circle") == 1
    assert text.count('class="failed"') == 1
    assert text.count('class="open"') == 1


def test_a_span_without_work_is_one_line() -> None:
    assert markdown.markdown(nothing()).count("\n") == 1
    assert "no work" in markdown.markdown(nothing())
    assert "<svg" not in page(nothing())


def test_markdown_keeps_somebodys_words_in_their_line() -> None:
    text = markdown.markdown(one("x\n# y\n```\n<b>[a](b)"))
    assert not [line for line in text.split("\n") if line.startswith(("# y", "```"))]
    assert "\\<b\\>\\[a\\](b)" in text
    assert "1 attempt" not in text.split("\n")[0]


def test_the_counts_are_told_in_words() -> None:
    lines = markdown.summary(one())
    assert lines == [
        "1 task: 2 started",
        "2 attempts begun: 1 failed",
        "1 verification: 1 failed",
        "2 steps ended: 2 done",
        "1 run outside of projects",
    ]
    assert json.loads(json.dumps(one())) == one()
