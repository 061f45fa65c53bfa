"""The inbox items of a conversation, kept from one hook event to the next."""

from __future__ import annotations

import hashlib
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ASKS_KEPT = 16  # items of one conversation that may still be answered


class OpenItems:
    """A small file in the home for one conversation. If it is lost, only late answers are lost."""

    def __init__(self, home: str, conversation: str) -> None:
        name = hashlib.sha256(conversation.encode("utf-8", "replace")).hexdigest()[:24]
        self._path = os.path.join(home, "hooks", f"{name}.json")

    def asks(self) -> list[str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return []
        return [a for a in found if isinstance(a, str)][-ASKS_KEPT:] if isinstance(found, list) else []

    def keep(self, asks: Sequence[str]) -> None:
        if not asks:
            self.forget()
            return
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        temporary = f"{self._path}.{os.getpid()}.tmp"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump(list(asks)[-ASKS_KEPT:], file)
        os.replace(temporary, self._path)

    def forget(self) -> None:
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass
