"""Notifications, against a real HTTP server and real programs: what is told, and what never is."""

from __future__ import annotations

import http.server
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.inbox import notifier as notify
from holdfast.host.inbox.notifier import Notifier, message, sentence
from holdfast.model.config_toml import Notify
from tests.support.home import until
from tests.support.serving import serving

ITEM: dict[str, Any] = {
    "id": "ask_1",
    "kind": "secret",
    "session": "ses_1",
    "session_name": "build",
    "text": "Password for hunter2:",
    "options": [],
    "detail": {"why": "hunter2"},
    "answer": None,
}


class Hook(http.server.ThreadingHTTPServer):
    """Keeps what is posted; answers with `codes` in turn, then with 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[tuple[str, bytes]] = []
        self.codes: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?token=t0ken"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.server.codes.pop(0) if self.server.codes else 204
        self.server.posts.append((self.path, body))  # before the answer: who has that may look at once
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815  (the server looks for this name)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving(Hook()) as server:
        yield server


@pytest.fixture
def notifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notifier]:
    monkeypatch.setattr(notify, "NOTIFY_PAUSE_S", 0.01)
    made = Notifier()
    yield made
    until(lambda: made._count == 0, 60)
    made.close()


def settings(**facts: Any) -> Notify:
    made = Notify()
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def test_what_leaves_the_host_is_kind_session_and_id() -> None:
    assert message(ITEM) == {"kind": "secret", "session": "build", "ask": "ask_1"}
    for kind in ("input", "secret", "question", "approval", "control_request"):
        said = sentence(message({**ITEM, "kind": kind}))
        assert "build" in said
        assert "hunter2" not in said
    assert sentence({"kind": "question", "session": "", "ask": "ask_1"}) == "a question (ask_1)"


def test_a_webhook_gets_one_post_without_content(hook: Hook, notifier: Notifier) -> None:
    notifier.tell(ITEM, settings(webhook=hook.url))
    (path, body), *more = until(lambda: hook.posts)
    assert (path, json.loads(body), more) == (
        "/hook?token=t0ken",
        {"kind": "secret", "session": "build", "ask": "ask_1"},
        [],
    )


def test_a_failing_webhook_is_tried_again_and_no_more_than_allowed(
    hook: Hook, notifier: Notifier, caplog: pytest.LogCaptureFixture
) -> None:
    hook.codes = [500, 503]
    notifier.tell(ITEM, settings(webhook=hook.url))
    until(lambda: len(hook.posts) == 3 and notifier._count == 0)
    hook.codes = [500] * 10
    with caplog.at_level(logging.WARNING):
        notifier.tell(ITEM, settings(webhook=hook.url))
        until(lambda: notifier._count == 0)
    assert len(hook.posts) == 6
    assert "webhook notification of ask_1 failed (3 of 3)" in caplog.text
    assert "t0ken" not in caplog.text


def test_a_redirect_is_not_followed(hook: Hook, notifier: Notifier) -> None:
    hook.codes = [302, 302, 302]
    notifier.tell(ITEM, settings(webhook=hook.url))
    until(lambda: len(hook.posts) == 3 and notifier._count == 0)
    assert {path for path, _ in hook.posts} == {"/hook?token=t0ken"}


def test_nobody_at_the_webhook_is_logged_and_stops_nothing(
    notifier: Notifier, caplog: pytest.LogCaptureFixture
) -> None:
    notifier.tell(ITEM, settings(webhook="http://127.0.0.1:9/x"))
    until(lambda: notifier._count == 0)
    assert "webhook notification of ask_1 failed" in caplog.text


def test_a_command_gets_the_facts_in_its_environment(tmp_path: Path, notifier: Notifier) -> None:
    out = tmp_path / "out"
    script = f'echo "$HOLDFAST_ASK_KIND $HOLDFAST_ASK_SESSION $HOLDFAST_ASK_ASK $#" > {out}.new; mv {out}.new {out}'
    notifier.tell(ITEM, settings(command=["/bin/sh", "-c", script]))
    until(out.exists)
    assert out.read_text() == "secret build ask_1 0\n"


def test_a_command_that_hangs_is_ended(
    tmp_path: Path, notifier: Notifier, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notify, "NOTIFY_TIMEOUT_S", 0.2)
    notifier.tell(ITEM, settings(command=["sleep", "1000"]))
    until(lambda: notifier._count == 0, 60)
    assert "timed out" in caplog.text


def test_the_desktop_is_told_by_notify_send(
    tmp_path: Path, notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    fake = tmp_path / "notify-send"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {out}.new\nmv {out}.new {out}\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    notifier.tell(ITEM, settings(desktop=True))
    until(out.exists)
    assert out.read_text().splitlines()[-1] == "build waits for a secret (ask_1)"


def test_kinds_that_nobody_wants_are_not_told(hook: Hook, notifier: Notifier) -> None:
    notifier.tell(ITEM, settings(webhook=hook.url, kinds=frozenset({"approval"})))
    notifier.tell({**ITEM, "kind": "approval"}, settings(webhook=hook.url, kinds=frozenset({"approval"})))
    until(lambda: notifier._count == 0 and hook.posts)
    assert [json.loads(body)["kind"] for _, body in hook.posts] == ["approval"]


def test_more_than_the_queue_holds_is_dropped_and_said(
    tmp_path: Path, notifier: Notifier, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notify, "NOTIFY_QUEUE_MAX", 2)
    go = tmp_path / "go"
    for _ in range(4):
        notifier.tell(ITEM, settings(command=["sh", "-c", f"until [ -e {go} ]; do sleep 0.01; done"]))
    assert caplog.text.count("dropped") == 2
    go.touch()
