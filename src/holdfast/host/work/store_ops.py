"""What a person alone says of a home, outside of any session: which store it uses, and that a restored one may run."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ...model.errors import HoldfastError, invalid
from ...model.names import refused
from ...model.work import store_setting
from .. import doctor_checks
from ..base import Base, why_of
from . import store_setting as setting
from .store import WorkStore, open_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]


class StoreOps(Base):
    """store, store_use and restore_confirm."""

    work_store: WorkStore

    async def op_doctor(self, request: Json, caller: Caller) -> list[Json]:
        return await doctor_checks.check(self.daemon, bool(request.get("deep")))

    async def op_store(self, request: Json, caller: Caller) -> Json:
        """The setting, without passwords."""
        return self.daemon.stores.exact()

    async def op_store_use(self, request: Json, caller: Caller) -> Json:
        """Another store, cache, or both; with neither, whether a change would be let through now."""
        self._require_person(caller, "which store a home uses")
        named = {name: request[name] for name in store_setting.VARIABLES if name in request}
        return await asyncio.shield(self._use(named, request, caller))

    async def op_restore_confirm(self, request: Json, caller: Caller) -> Json:
        """What a restored backup has the host run may run from now on."""
        self._require_person(caller, "what a restored home may run")
        if self.daemon.confirmed:
            raise HoldfastError("conflict", "there is nothing to confirm in this home", "hold restore FILE")
        self.journal.note("restore_confirm", session=None, actor=caller.actor, why=why_of(request))
        await self.journal.written()
        os.unlink(self.daemon.home.restored)
        self.daemon.stores.read()
        self.desk.settings.current()
        return self.daemon.about()

    def _require_person(self, caller: Caller, what: str) -> None:
        if caller.session is not None or not self._is_person(caller):
            raise refused(f"{what} is for a person to say, outside of any session", "ask one")

    async def _use(self, named: Json, request: Json, caller: Caller) -> Json:
        before = self.daemon.stores
        async with self.work_store.alone():
            if not named:
                return before.exact()
            store, cache = before.url, before.cache
            if "store" in named:
                store = self._elsewhere(store_setting.checked(named["store"]))
            if "cache" in named:
                cache = None if named["cache"] is None else str(named["cache"])
            opening = asyncio.get_running_loop().create_task(open_work(store, cache))
            await opening  # one that cannot be opened is not written down
            shown = before.about()
            for name, url in (("store", None if store == before.own else store), ("cache", cache)):
                if name in named:
                    setting.keep(self.daemon.home, name, url)
            before.read()
            await self.work_store.swap(opening)
        facts = {"before": shown, **before.about()}
        self.journal.note("store", session=None, actor=caller.actor, why=why_of(request), **facts)
        await self.journal.written()
        return before.exact()

    def _elsewhere(self, url: str) -> str:
        """The host's own files are no store, but for the one that is meant to be."""
        if store_setting.is_server(url):
            return url
        home, path = os.path.realpath(self.daemon.home.path), os.path.realpath(store_setting.file_of(url))
        if path == os.path.join(home, os.path.basename(self.daemon.home.work_db)):
            return self.daemon.stores.own
        if os.path.commonpath([home, path]) == home:
            raise invalid("that file is the host's own", "name a file outside of the home")
        return url

    def _is_person(self, caller: Caller) -> bool:
        raise NotImplementedError
