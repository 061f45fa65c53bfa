"""Word of a new inbox item to where its people are: a webhook, a command, the desktop. Never with content.

What is told is the kind, the session's name and the item's id: enough to go and look, nothing worth stealing.
Each is tried a few times within bounds on a thread of its own; a failure is logged and stops nobody.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ...model.config_toml import Notify
from ...model.limits import NOTIFY_PAUSE_S, NOTIFY_QUEUE_MAX, NOTIFY_TIMEOUT_S, NOTIFY_TRIES

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_WORDS = {
    "input": "{name} waits for input",
    "secret": "{name} waits for a secret",
    "menu": "{name} shows a menu",
    "question": "a question",
    "approval": "something waits for approval",
    "held_controls": "you still hold the controls of {name}",
    "control_request": "someone asks for the controls of {name}",
    "parked_run": "a run waits for a person",
}


def message(item: Json) -> dict[str, str]:
    """All that leaves the host about an item."""
    return {"kind": str(item["kind"]), "session": str(item.get("session_name") or ""), "ask": str(item["id"])}


def sentence(told: dict[str, str]) -> str:
    words = _WORDS[told["kind"]].format(name=told["session"] or "a session")
    if told["session"] and told["session"] not in words:
        words += f" in {told['session']}"
    return f"{words} ({told['ask']})"


class Notifier:
    """Sends in the background. `close` gives up what is still on its way."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._count = 0
        self._lock = threading.Lock()

    def tell(self, item: Json, notify: Notify) -> None:
        """Queue one item's notifications; returns at once."""
        if item["kind"] not in notify.kinds or not notify.wanted:
            return
        told = message(item)
        if notify.webhook:
            self._queue("webhook", told, partial(post, notify.webhook, told))
        if notify.command:
            self._queue("command", told, partial(run_hook, notify.command, told))
        if notify.desktop:
            self._queue("desktop", told, partial(show, told))

    def _queue(self, way: str, told: dict[str, str], send: Callable[[], None]) -> None:
        with self._lock:
            if self._count >= NOTIFY_QUEUE_MAX:
                log.warning("%s notification of %s dropped: %d are on their way", way, told["ask"], self._count)
                return
            self._count += 1
        # Daemon threads: a webhook that hangs does not keep a host that was told to stop.
        threading.Thread(target=self._try, args=(way, told, send), name="notify", daemon=True).start()

    def _try(self, way: str, told: dict[str, str], send: Callable[[], None]) -> None:
        try:
            for n in range(NOTIFY_TRIES):
                try:
                    send()
                    return
                except (OSError, ValueError, subprocess.SubprocessError) as e:
                    log.warning("%s notification of %s failed (%d of %d): %s", way, told["ask"], n + 1, NOTIFY_TRIES, e)
                if n + 1 < NOTIFY_TRIES and self._closing.wait(NOTIFY_PAUSE_S * 2**n):
                    return
        finally:
            with self._lock:
                self._count -= 1

    def close(self) -> None:
        self._closing.set()


def post(url: str, told: dict[str, str]) -> None:
    from .webhook import post_json  # HTTP takes a tenth of the host's own start to import, and few need it

    post_json(url, told, NOTIFY_TIMEOUT_S)


def run_hook(words: list[str], told: dict[str, str]) -> None:
    """The hook gets the facts in its environment, its arguments are the configuration's."""
    env = {**os.environ, **{f"HOLDFAST_ASK_{k.upper()}": v for k, v in told.items()}}
    done = subprocess.run(
        words,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=NOTIFY_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise OSError(f"{words[0]} ended with {done.returncode}")


def show(told: dict[str, str]) -> None:
    program = shutil.which("notify-send")
    if program is None:
        raise OSError("there is no notify-send on this machine")
    run_hook([program, "--app-name=Holdfast", "Holdfast", sentence(told)], told)
