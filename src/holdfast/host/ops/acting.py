"""Operations that act on what runs in a session: typing, sizing, signals, and the controls themselves."""

from __future__ import annotations

import base64
import signal
from typing import Any

from ...model import limits
from ...model.errors import invalid
from .. import views
from .base import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..identity import Caller

Json = dict[str, Any]


class Acting(Base):
    """send, resize, kill, take and release."""

    async def op_send(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        data = base64.b64decode(str(request.get("data") or ""))
        for at in range(0, len(data), limits.INPUT_BYTES_MAX):
            await session.link.input(data[at : at + limits.INPUT_BYTES_MAX], caller.actor)
        if request.get("eof"):
            await session.link.act("end_input", **{"as": caller.actor})
        return {"session": session.id, "sent": len(data), "offset": session.link.end}

    async def op_resize(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        return await session.link.act("resize", size=request.get("size"), **{"as": caller.actor})

    async def op_kill(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        name = signal_name(str(request.get("signal") or "TERM"))
        assert session.link is not None
        done = await session.link.act("signal", signal=name, target=request.get("target"), **{"as": caller.actor})
        return {"session": session.id, "signal": name, **done}

    async def op_take(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        done = await session.link.act("take", force=True, **{"as": caller.actor})
        return {**done, "controls": views.controls_view(done["controls"])}

    async def op_release(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        done = await session.link.act("release", **{"as": caller.actor})
        return {**done, "controls": views.controls_view(done["controls"])}


def signal_name(text: str) -> str:
    """`KILL`, `SIGKILL`, `kill` or `9` -> `SIGKILL`."""
    if text.isdigit():
        try:
            return signal.Signals(int(text)).name
        except ValueError:
            raise invalid(f"there is no signal {text[:10]}", "kill -l lists them") from None
    name = text.upper() if text.upper().startswith("SIG") else "SIG" + text.upper()
    if name not in signal.Signals.__members__:
        raise invalid(f"there is no signal {text[:20]!r}", "kill -l lists them")
    return name
