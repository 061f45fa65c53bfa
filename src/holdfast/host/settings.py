"""config.toml of the home as it is now: read again whenever the file has changed, at the moment it is used."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from ..model import settings
from ..model.errors import HoldfastError
from ..model.home import Home
from .waits import pattern

log = logging.getLogger("holdfast.host")

_BYTES_MAX = 1 << 20  # a file of rules, not a data set


class SettingsFile:
    """`on_change(settings)` hears of every change that `current` finds."""

    def __init__(self, home: Home, on_change: Callable[[settings.Settings], None]) -> None:
        self.path = os.path.join(home.path, settings.FILE)
        self._on_change = on_change
        self._seen: tuple[int, ...] | None = None
        self._current = settings.Settings()

    def current(self) -> settings.Settings:
        """One `stat` where nothing has changed."""
        try:
            found = os.stat(self.path)
            seen: tuple[int, ...] = (found.st_mtime_ns, found.st_size, found.st_ino)
        except FileNotFoundError:
            seen = ()
        except OSError:
            seen = (-1,)
        if seen != self._seen:
            self._seen = seen
            self._current = self._read() if seen else settings.Settings()
            if self._current.broken is not None:
                log.error("%s", self._current.broken.line())
            self._on_change(self._current)
        return self._current

    def _read(self) -> settings.Settings:
        try:
            with open(self.path, encoding="utf-8") as f:
                text = f.read(_BYTES_MAX + 1)
            if len(text) > _BYTES_MAX:
                raise ValueError("it is too large")
        except (OSError, ValueError) as e:
            unreadable = settings.Settings()
            unreadable.broken = HoldfastError("invalid", f"{self.path} cannot be read: {e}", "mend it")
            return unreadable
        return settings.parse(text, pattern)
