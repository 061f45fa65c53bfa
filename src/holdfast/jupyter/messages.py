"""The Jupyter messaging protocol as far as a front end needs it: messages to frames and back, signed. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

VERSION = "5.3"  # of the protocol; kernels answer newer and older ones alike
_DELIMITER = b"<IDS|MSG>"  # stands between routing frames and the message


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `parent` is the header of the request that it belongs to."""

    kind: str
    header: Json
    parent: Json
    content: Json

    @property
    def parent_id(self) -> str:
        return str(self.parent.get("msg_id") or "")


class MessageCodec:
    """Packs and unpacks with the key of one connection. What is not signed with it does not count."""

    def __init__(self, key: bytes, session: str) -> None:
        self._key, self.session, self._count = key, session, 0

    def _signature(self, parts: list[bytes]) -> bytes:
        return hmac.new(self._key, b"".join(parts), hashlib.sha256).hexdigest().encode()

    def pack(self, kind: str, content: Json, date: str, parent: Json | None = None) -> tuple[str, list[bytes]]:
        """The message's id and its frames."""
        self._count += 1
        id = f"{self.session}_{self._count}"
        header = {
            "msg_id": id,
            "msg_type": kind,
            "session": self.session,
            "username": "hold",
            "date": date,
            "version": VERSION,
        }
        parts = [json.dumps(part).encode() for part in (header, parent or {}, {}, content)]
        return id, [_DELIMITER, self._signature(parts), *parts]

    def unpack(self, frames: list[bytes]) -> Message | None:
        """None for what is no message, or not one of this kernel's."""
        try:
            at = frames.index(_DELIMITER)
            signature, parts = frames[at + 1], frames[at + 2 : at + 6]
            if len(parts) != 4 or not hmac.compare_digest(signature, self._signature(parts)):
                return None
            header, parent, _, content = (json.loads(part) for part in parts)
            if not isinstance(content, dict) or not isinstance(parent or {}, dict):
                return None
            return Message(str(header["msg_type"]), header, parent or {}, content)
        except (ValueError, KeyError, IndexError, TypeError):
            return None
