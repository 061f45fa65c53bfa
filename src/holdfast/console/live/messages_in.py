"""What a browser says on its sockets: small messages, each checked whole before anything is done."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ...model.limits import COLS_MAX, ROWS_MAX, WHY_MAX

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # what a browser can count exactly


class Input(msgspec.Struct, frozen=True, tag_field="kind", tag="input"):
    """Type. `seq` only ever grows for one `client`: sent again with the same number, it is typed once."""

    seq: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
    data: bytes  # base64


class Resize(msgspec.Struct, frozen=True, tag_field="kind", tag="resize"):
    """How large this window is; the terminal follows while its controls are held from here."""

    cols: Annotated[int, msgspec.Meta(ge=1, le=COLS_MAX)]
    rows: Annotated[int, msgspec.Meta(ge=1, le=ROWS_MAX)]


class Take(msgspec.Struct, frozen=True, tag_field="kind", tag="take"):
    """Take over. A person who holds the controls is asked first, unless it is by force, which is recorded."""

    force: bool = False
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Release(msgspec.Struct, frozen=True, tag_field="kind", tag="release"):
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Seen(msgspec.Struct, frozen=True, tag_field="kind", tag="seen"):
    """The page shows who holds the controls since this epoch: what it sends from now on, it sends knowing that."""

    epoch: _Count


class Ack(msgspec.Struct, frozen=True, tag_field="kind", tag="ack"):
    """Everything up to this offset is shown."""

    offset: _Count


class Ping(msgspec.Struct, frozen=True, tag_field="kind", tag="ping"):
    pass


class Pong(msgspec.Struct, frozen=True, tag_field="kind", tag="pong"):
    pass


MESSAGES = (Input, Resize, Take, Release, Seen, Ack, Ping, Pong)
Message = Input | Resize | Take | Release | Seen | Ack | Ping | Pong
_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def parse(text: str | bytes | None) -> Message:
    """Raises msgspec's DecodeError, or its ValidationError, for what is none."""
    return _decoder.decode(text or b"")
