"""Messages from a browser: each is decoded and checked whole before it is handled."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ...model.limits import COLS_MAX, ROWS_MAX, WHY_MAX

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # the largest integer that JavaScript holds exactly


class Input(msgspec.Struct, frozen=True, tag_field="kind", tag="input"):
    """Type. `seq` only grows for one `client`: sent again with the same number, it is typed once."""

    seq: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
    data: bytes  # base64


class Resize(msgspec.Struct, frozen=True, tag_field="kind", tag="resize"):
    """This window's size; the terminal follows while this client holds its controls."""

    cols: Annotated[int, msgspec.Meta(ge=1, le=COLS_MAX)]
    rows: Annotated[int, msgspec.Meta(ge=1, le=ROWS_MAX)]


class Take(msgspec.Struct, frozen=True, tag_field="kind", tag="take"):
    """Take the controls. A person who holds them is asked first, except with `force`, which is recorded."""

    force: bool = False
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Release(msgspec.Struct, frozen=True, tag_field="kind", tag="release"):
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Seen(msgspec.Struct, frozen=True, tag_field="kind", tag="seen"):
    """The page shows the holder of this epoch: later input counts for it."""

    epoch: _Count


class Ack(msgspec.Struct, frozen=True, tag_field="kind", tag="ack"):
    """Everything up to this offset was shown."""

    offset: _Count


class Ping(msgspec.Struct, frozen=True, tag_field="kind", tag="ping"):
    pass


class Pong(msgspec.Struct, frozen=True, tag_field="kind", tag="pong"):
    pass


MESSAGES = (Input, Resize, Take, Release, Seen, Ack, Ping, Pong)
Message = Input | Resize | Take | Release | Seen | Ack | Ping | Pong
_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def parse(text: str | bytes | None) -> Message:
    """Decode a message; raises msgspec's DecodeError or ValidationError."""
    return _decoder.decode(text or b"")
