"""The store and cache of this home: read when the host starts, written with the home and by `hold store use`."""

from __future__ import annotations

import os
import tomllib

from ...model import config_toml
from ...model.errors import HoldfastError
from ...model.home import Home
from ...model.limits import PROJECT_FILE_BYTES_MAX
from ...model.work import store_setting
from ...model.work.store_setting import VARIABLES, Stores
from ...system.atomic_files import read_json, sync_file, write_bytes, write_json
from ...system.owner_trust import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any


def begin(home: Home, environ: MutableMapping[str, str]) -> None:
    """Take the variables out of the host's environment; for a home that is new, they are its setting."""
    given = {name: environ.pop(variable, None) for name, variable in VARIABLES.items()}
    if os.path.exists(home.host_file) or not any(given.values()):
        return
    known = _parsed(home)._asdict()  # written by hand, or by a host that was killed before it had made the rest
    try:
        for name, url in given.items():
            if url and known[name] is None:
                keep(home, name, store_setting.checked(url) if name == "store" else url)
    except OSError as e:
        words = f"cannot write to {home.path}: {e.strerror}"
        raise HoldfastError("failed", words, "set HOLDFAST_HOME to a folder you may write") from None


def keep(home: Home, name: str, url: str | None) -> None:
    """Write it down: the URL in config.toml, its password beside it."""
    plain, password = (None, None) if url is None else store_setting.split(url)
    made = store_setting.written(_text(home), name, plain)
    secrets = {k: v for k, v in (read_json(home.store_secret) or {}).items() if k != name}
    if password is not None:
        secrets[name] = password
    if secrets or os.path.exists(home.store_secret):
        write_json(home.store_secret, secrets)  # first: a URL whose password is missing would be refused by its server
    path = os.path.join(home.path, config_toml.FILE)
    write_bytes(path, made.encode())
    sync_file(path)


def _text(home: Home) -> str:
    try:
        with open(open_regular(os.path.join(home.path, config_toml.FILE)), encoding="utf-8") as f:
            return f.read(PROJECT_FILE_BYTES_MAX)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as e:
        raise _unreadable(e) from None


def _parsed(home: Home) -> Stores:
    try:
        return store_setting.parse(tomllib.loads(_text(home)))
    except ValueError as e:
        raise _unreadable(e) from None


def _unreadable(e: Exception) -> HoldfastError:
    words = f"{config_toml.FILE} does not say which store this home uses: {e}"
    return HoldfastError("invalid", words, "mend it, then hold down")


class StoreSetting:
    """What the home uses. A file that cannot be understood is no setting: then no store is opened in its place."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.own = store_setting.of_file(home.work_db)
        self.read()

    def read(self) -> None:
        self.broken: HoldfastError | None = None
        self._now = Stores()
        try:
            self._now = _parsed(self._home)
        except HoldfastError as e:
            self.broken = e
        if any(self._now) and os.path.lexists(self._home.restored):
            told = "this home came from a backup, which names another store or cache than its own"
            self.broken = HoldfastError("not_allowed", told, "look at it, then hold restore --confirm")

    @property
    def url(self) -> str:
        """The store, with its password; raises where the setting is broken."""
        if self.broken is not None:
            raise self.broken
        return self.own if self._now.store is None else self._with_password("store", self._now.store)

    @property
    def cache(self) -> str | None:
        return None if self._now.cache is None else self._with_password("cache", self._now.cache)

    def _with_password(self, name: str, url: str) -> str:
        secret = (read_json(self._home.store_secret) or {}).get(name)
        return store_setting.joined(url, str(secret) if secret is not None else None)

    def about(self) -> dict[str, Any]:
        """As everyone may see it."""
        store = None if self.broken else store_setting.without_password(self._now.store or self.own)
        return {"store": store, "cache": self._now.cache and store_setting.without_password(self._now.cache)}

    def exact(self) -> dict[str, Any]:
        """For clients that compare: with its options, and without a password."""
        if self.broken is not None:
            raise self.broken
        url = self._now.store or self.own
        return {"store": url, "cache": self._now.cache, "server": store_setting.is_server(url)}
