"""What the addresses of the two sockets say, checked."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.websockets import WebSocket

from ...model import ids
from ...model.limits import COLS_MAX, ROWS_MAX
from ..handlers.sessions import All
from ..http.endpoint import parse_query
from .terminal_socket import AttachQuery


class Attach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to go on from; who types (the same client after a reconnect); this window's size."""

    from_: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] | None = msgspec.field(default=None, name="from")
    client: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    cols: Annotated[int, msgspec.Meta(ge=1, le=COLS_MAX)] | None = None
    rows: Annotated[int, msgspec.Meta(ge=1, le=ROWS_MAX)] | None = None
    read_only: bool = False


def wanted(socket: WebSocket) -> AttachQuery:
    asked: Attach = parse_query(Attach, socket.query_params.multi_items())
    size = None if asked.cols is None or asked.rows is None else (asked.cols, asked.rows)
    client = asked.client or ids.new("")
    return AttachQuery(str(socket.path_params["session"]), asked.from_, client, asked.read_only, size)


def live_query(socket: WebSocket) -> All:
    found: All = parse_query(All, socket.query_params.multi_items())
    return found
