"""Operations on the host itself: its health, and that what a restored home runs may run."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ..api.host import Doctor, RestoreConfirm
from ..model.errors import HoldfastError
from ..model.home import Home
from .config import SettingsFile
from .journal.journal import Journal
from .journal.session_entries import why_of
from .operators.caller import Caller
from .work.store_setting import StoreSetting

Json = dict[str, Any]


class HostParts(NamedTuple):
    """What the handlers here use of the host."""

    home: Home
    journal: Journal
    stores: StoreSetting
    settings: SettingsFile
    confirmed: Callable[[], bool]
    about: Callable[[], Json]
    findings: Callable[[bool], Awaitable[list[Json]]]


@Doctor.answered
async def doctor(parts: HostParts, caller: Caller, request: Doctor) -> list[Json]:
    return await parts.findings(request.deep)


@RestoreConfirm.answered
async def restore_confirm(parts: HostParts, caller: Caller, request: RestoreConfirm) -> Json:
    caller.require_person("what a restored home may run")
    if parts.confirmed():
        raise HoldfastError("conflict", "there is nothing to confirm in this home", "hold restore FILE")
    parts.journal.note("restore_confirm", session=None, actor=caller.actor, why=why_of(request))
    await parts.journal.written()
    os.unlink(parts.home.restored)
    parts.stores.read()
    parts.settings.current()
    return parts.about()
