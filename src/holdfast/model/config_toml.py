"""HOME/config.toml: the host's own settings, checked. Pure: text in, settings out."""

from __future__ import annotations

import hashlib
import json

from .durations import duration_s
from .errors import HoldfastError, invalid
from .inbox import approval_rules, item
from .limits import TAKEOVER_S, TAKEOVER_S_MAX
from .work import store_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .patterns import Pattern

FILE = "config.toml"
_NOTIFY_KEYS = frozenset({"webhook", "command", "desktop", "kinds"})


class Notify:
    """`[notify]`: where notices of new inbox items go."""

    __slots__ = ("command", "desktop", "kinds", "webhook")

    def __init__(self) -> None:
        self.webhook: str | None = None
        self.command: list[str] | None = None
        self.desktop = False
        self.kinds: frozenset[str] = frozenset(item.KINDS)

    @property
    def wanted(self) -> bool:
        return bool(self.webhook or self.command or self.desktop)


class Settings:
    """The settings of the file. `broken` is the error in it: then all that a rule would have to allow is refused.
    `digest` identifies its approval and notification settings without revealing them."""

    __slots__ = ("broken", "digest", "notify", "rules", "takeover_s")

    def __init__(self) -> None:
        self.digest = _digest([], {}, None)
        self.takeover_s = TAKEOVER_S
        self.notify = Notify()
        self.rules: list[approval_rules.Rule] = []
        self.broken: HoldfastError | None = None


def parse(text: str, compile_pattern: Callable[[str], Pattern]) -> Settings:
    """Parse the file; never raises: an invalid file gives the strictest settings. Other tables are ignored."""
    settings = Settings()
    import tomllib  # most homes have no such file

    try:
        settings.digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()  # while it is broken
        table = tomllib.loads(text)
        settings.rules = approval_rules.parse(table.get("approve", []), compile_pattern)
        settings.notify = _notify(table.get("notify", {}))
        settings.takeover_s = _takeover(table.get("takeover_max"))
        settings.digest = _digest(
            table.get("approve", []), table.get("notify", {}), table.get("takeover_max"), store_setting.parse(table)
        )
    except tomllib.TOMLDecodeError as e:
        settings.broken = invalid(f"{FILE} is not TOML: {e}", "fix it")
    except HoldfastError as e:
        settings.broken = HoldfastError(e.code, f"{FILE}: {e.message}", e.hint)
    return settings


def _takeover(value: object) -> float:
    """`takeover_max`: how long a person who took over and is away keeps the controls."""
    if value is None:
        return TAKEOVER_S
    if not isinstance(value, str) or not 0 < duration_s(value) <= TAKEOVER_S_MAX:
        raise invalid(
            f"takeover_max must be a duration of at most {TAKEOVER_S_MAX / 86400:g} days", 'takeover_max = "12h"'
        )
    return duration_s(value)


def _digest(approve: object, notify: object, takeover: object, places: store_setting.Stores | None = None) -> str:
    about = {"approve": approve, "notify": notify} | ({} if takeover is None else {"takeover_max": takeover})
    if places is not None and any(places):  # homes without either keep their digest
        about |= places._asdict()
    told = json.dumps(about, sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _notify(table: object) -> Notify:
    if not isinstance(table, dict):
        raise invalid("notify must be a table", "write [notify]")
    unknown = sorted(set(table) - _NOTIFY_KEYS)
    if unknown:
        raise invalid(f"notify has an unknown key: {unknown[0]!r}", "it has " + ", ".join(sorted(_NOTIFY_KEYS)))
    made = Notify()
    webhook = table.get("webhook")
    if webhook is not None:
        if not isinstance(webhook, str) or not webhook.startswith(("http://", "https://")):
            raise invalid("notify: webhook must be an http or https address", 'webhook = "https://example.org/hook"')
        made.webhook = webhook
    command = table.get("command")
    if command is not None:
        words = [command] if isinstance(command, str) else command
        if not isinstance(words, list) or not words or not all(isinstance(w, str) and w for w in words):
            raise invalid(
                "notify: command must be a list: a program and its arguments", 'command = ["/usr/local/bin/tell", "me"]'
            )
        made.command = words
    desktop = table.get("desktop", False)
    if not isinstance(desktop, bool):
        raise invalid("notify: desktop must be true or false", "desktop = true")
    made.desktop = desktop
    kinds = table.get("kinds", list(item.KINDS))
    if not isinstance(kinds, list) or not all(k in item.KINDS for k in kinds):
        raise invalid(f"notify: kinds must be a list of {', '.join(item.KINDS)}", 'kinds = ["secret", "approval"]')
    made.kinds = frozenset(kinds)
    return made
