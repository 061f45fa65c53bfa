"""Made from _async/inbox.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import base64
import time

from ...model import ids
from ...model.errors import HoldfastError
from ..requests import typed
from .calls import Calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..types import Ask, WaitResult

    Json = dict[str, Any]


class Inbox(Calls):
    """A part of Host."""

    def ask(
        self,
        text: str,
        *,
        session: str | None = None,
        options: Sequence[str] = (),
        wait: float | None = None,
        why: str | None = None,
    ) -> Ask:
        """Ask the people of this host; with `wait` the item as it is once it was answered, or after so many seconds."""
        from ..types import Ask

        item = self.ask_raw(text, session=session, options=options, why=why)
        return typed(item if wait is None else self.asked_raw(item["id"], wait), Ask)

    def ask_raw(
        self,
        text: str,
        *,
        session: str | None,
        options: Sequence[str],
        why: str | None,
        kind: str = "question",
        dialog: Json | None = None,
    ) -> Json:
        answer: Json = self.call(
            "ask",
            ask=ids.new("ask_"),
            text=text,
            kind=kind,
            session=session,
            options=list(options),
            why=why,
            dialog=dialog,
        )
        return answer

    def ask_held(
        self,
        text: str,
        *,
        wait: float,
        kind: str = "question",
        session: str | None = None,
        options: Sequence[str] = (),
        why: str | None = None,
        dialog: Json | None = None,
    ) -> Json:
        """Ask (a question, or an approval) and wait: the item leaves the inbox with its asker, and after `wait` s. With
        `dialog` (conversation, agent, call) a hook asks for an agent: it ends with that, and when that goes on."""
        deadline, id = time.monotonic() + wait, ids.new("ask_")
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                item: Json = self.call(
                    "ask",
                    ask=id,
                    text=text,
                    kind=kind,
                    session=session,
                    options=list(options),
                    why=why,
                    held=left,
                    dialog=dialog,
                )
                return item
            except HoldfastError as e:
                if left == 0:
                    raise
                self.again(e, deadline)

    def asked(self, ask: str, timeout: float | None = 0.0) -> Ask:
        """An inbox item, once it is no longer open or the time is up (0: as it is now, None: however long it takes)."""
        from ..types import Ask

        return typed(self.asked_raw(ask, timeout), Ask)

    def asked_raw(self, ask: str, timeout: float | None) -> Json:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                answer: Json = self.call("asked", ask=ask, timeout=left)
                return answer
            except HoldfastError as e:
                self.again(e, deadline)

    def wait(self, *, answer: str, timeout: float | None = None) -> WaitResult:
        """Until a person has answered an inbox item, or it is over otherwise: `event` is `answer` then, else `timeout`.
        `detail` is the item, `offset` the number of its last change in the inbox."""
        from ..types import WaitResult

        return typed(self.wait_raw(answer, timeout), WaitResult)

    def wait_raw(self, ask: str, timeout: float | None) -> Json:
        item = self.asked_raw(ask, timeout)
        return {"event": "timeout" if item["state"] == "open" else "answer", "offset": item["changed"], "detail": item}

    def withdraw(self, ask: str) -> Json:
        """Take back an item of one's own that nobody need answer any more; one that is over stays as it is."""
        item: Json = self.call("withdraw", ask=ask)
        return item

    def inbox(self, *, all: bool = False) -> list[Ask]:
        """What waits for a person, looked at now; with `all` also what is over."""
        from ..types import Ask

        return typed((self.call("inbox", all=all))["items"], list[Ask])

    def follow_inbox(self) -> Iterator[Ask]:
        """What is open, then every item again as it changes."""
        from ..types import Ask

        for item in self.follow_inbox_raw():
            yield typed(item, Ask)

    def follow_inbox_raw(self) -> Iterator[Json]:
        after: int | None = None
        while True:
            try:
                page = self.call("inbox", follow=True, after=after)
            except HoldfastError as e:
                self.again(e)
                continue
            items, after = page["items"], page["last"]
            while items:
                yield items.pop(0)

    def answer(
        self, ask: str, text: str | bytes | None = None, *, approve: bool | None = None, why: str | None = None
    ) -> Ask:
        """Answer an item: with a text (typed where a program waits for it), or with yes or no."""
        from ..types import Ask

        return typed(self.answer_raw(ask, text, approve=approve, why=why), Ask)

    def answer_raw(
        self, ask: str, text: str | bytes | None = None, *, approve: bool | None = None, why: str | None = None
    ) -> Json:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        payload = None if data is None else base64.b64encode(data).decode()
        answer: Json = self.call("answer", ask=ask, data=payload, approve=approve, why=why, request=ids.new("req_"))
        return answer
