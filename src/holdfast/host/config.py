"""config.toml of the home as it is now: read again whenever the file has changed, at the moment it is used.

A change of what it says is an entry of the journal. Which settings the journal knows is kept beside it, so that a
change that was made while no host ran is one too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from ..model import config_toml
from ..model.errors import HoldfastError
from ..model.home import Home
from ..model.limits import PROJECT_FILE_BYTES_MAX
from ..model.patterns import pattern
from ..system.atomic_files import read_json, write_json

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")


class SettingsFile:
    """`on_change(settings)` hears of every change that `current` finds, `note(facts)` of those that matter."""

    def __init__(
        self,
        home: Home,
        on_change: Callable[[config_toml.Settings], None],
        note: Callable[[Json], None] = lambda _: None,
    ) -> None:
        self.path = os.path.join(home.path, config_toml.FILE)
        self._known, self._restored = home.settings_known, home.restored
        self._noted: str | None = None  # the digest of what the journal was told last
        self._on_change, self._note = on_change, note
        self._seen: tuple[int, ...] | None = None
        self._current = config_toml.Settings()

    def current(self) -> config_toml.Settings:
        """Two looks at the disk where nothing has changed."""
        found = None
        try:
            found = os.stat(self.path)
            seen: tuple[int, ...] = (found.st_mtime_ns, found.st_size, found.st_ino)
        except FileNotFoundError:
            seen = ()
        except OSError:
            seen = (-1,)
        restored = os.path.lexists(self._restored)
        seen += (restored,)
        if seen != self._seen:
            self._current = self._read() if len(seen) > 1 else config_toml.Settings()
            self._compare(self._current, None if found is None else found.st_uid)
            if restored:
                self._current.notify = config_toml.Notify()  # it may run a command that no person here has confirmed
            self._seen = seen  # once it is noted: where that is not possible, it is tried again
            if self._current.broken is not None:
                log.error("%s", self._current.broken.line())
            self._on_change(self._current)
        return self._current

    def _compare(self, now: config_toml.Settings, owner: int | None) -> None:
        """Who wrote a file the kernel does not tell: its owner is all that is known. Its content is not kept."""
        if self._noted is None:
            self._noted = str((read_json(self._known) or {}).get("digest") or config_toml.Settings().digest)
        if now.digest == self._noted:
            return
        word = [way for way in ("webhook", "command", "desktop") if getattr(now.notify, way)]
        self._note(
            {
                "before": self._noted,
                "after": now.digest,
                "rules": len(now.rules),
                "notify": word,
                "uid": owner,
                "broken": now.broken is not None or None,
            }
        )
        self._noted = now.digest

    def remember(self, digest: str) -> None:
        """The journal has these settings, durably: the next host compares with them."""
        write_json(self._known, {"digest": digest}, durable=False)

    def _read(self) -> config_toml.Settings:
        try:
            with open(self.path, encoding="utf-8") as f:
                text = f.read(PROJECT_FILE_BYTES_MAX + 1)
            if len(text) > PROJECT_FILE_BYTES_MAX:
                raise ValueError("it is too large")
        except (OSError, ValueError) as e:
            unreadable = config_toml.Settings()
            unreadable.broken = HoldfastError("invalid", f"{self.path} cannot be read: {e}", "mend it")
            return unreadable
        return config_toml.parse(text, pattern)
