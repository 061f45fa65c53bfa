"""Operations on the store that a home uses; which one that is, a person alone says, outside of every session."""

from __future__ import annotations

import asyncio
import os
from typing import Any, NamedTuple

from ...api.host import Store, StoreMigrate, StoreUse
from ...model.errors import invalid
from ...model.home import Home
from ...model.work import store_setting
from ..journal.journal import Journal
from ..journal.session_entries import why_of
from ..operators.caller import Caller
from . import store_setting as setting
from .store import WorkStore
from .store_setting import StoreSetting

Json = dict[str, Any]


class StoreParts(NamedTuple):
    """What the handlers here use of the host."""

    home: Home
    stores: StoreSetting
    work_store: WorkStore
    journal: Journal


@Store.answered
async def store(parts: StoreParts, caller: Caller, request: Store) -> Json:
    return parts.stores.exact()


@StoreUse.answered
async def store_use(parts: StoreParts, caller: Caller, request: StoreUse) -> Json:
    caller.require_person("which store a home uses")
    return await asyncio.shield(_use(parts, request, caller))


@StoreMigrate.answered
async def store_migrate(parts: StoreParts, caller: Caller, request: StoreMigrate) -> Json:
    caller.require_person("which store a home uses")
    if not store_setting.is_server(request.url):
        shown = store_setting.without_password(request.url)
        raise invalid(f"{shown!r} is no PostgreSQL server", "postgresql://USER@HOST/DATABASE")
    return await asyncio.shield(_migrate(parts, request.url))


async def _migrate(parts: StoreParts, url: str) -> Json:
    async with parts.work_store.alone():  # with the file's schema up to date, and no one writing
        from ...store.copy_to_postgres import copy

        used = parts.stores.exact()
        if used["server"]:
            raise invalid("this home's work is on a server already", "hold status shows which")
        path = store_setting.file_of(used["store"])
        tables = await asyncio.to_thread(copy, path, url)
    rows = sum(t["rows"] for t in tables)
    return {"from": path, "to": store_setting.without_password(url), "tables": tables, "rows": rows}


async def _use(parts: StoreParts, request: StoreUse, caller: Caller) -> Json:
    named = {name: value for name, value in vars(request).items() if name in store_setting.VARIABLES}
    before = parts.stores
    async with parts.work_store.alone():
        if not named:
            return before.exact()
        url, cache = before.url, before.cache
        if "store" in named:
            url = _elsewhere(parts, store_setting.checked(named["store"]))
        if "cache" in named:
            cache = named["cache"]
        opening = parts.work_store.opening(url, cache)
        await opening  # one that cannot be opened is not written down
        shown = before.about()
        for name, kept in (("store", None if url == before.own else url), ("cache", cache)):
            if name in named:
                setting.keep(parts.home, name, kept)
        before.read()
        await parts.work_store.swap(opening)
    facts = {"before": shown, **before.about()}
    parts.journal.note("store", session=None, actor=caller.actor, why=why_of(request), **facts)
    await parts.journal.written()
    return before.exact()


def _elsewhere(parts: StoreParts, url: str) -> str:
    """The host's own files are no store, but for the one that is meant to be."""
    if store_setting.is_server(url):
        return url
    home, path = os.path.realpath(parts.home.path), os.path.realpath(store_setting.file_of(url))
    if path == os.path.join(home, os.path.basename(parts.home.work_db)):
        return parts.stores.own
    if os.path.commonpath([home, path]) == home:
        raise invalid("that file is the host's own", "name a file outside of the home")
    return url
