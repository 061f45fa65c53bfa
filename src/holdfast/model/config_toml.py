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
    """`[notify]`: where word of a new inbox item goes."""

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
    """What the file says. `broken` is the mistake in it: then what needs a rule to allow it is refused. `digest` stands
    for what it says of approval and notification: it tells two files apart, and gives neither away."""

    __slots__ = ("broken", "digest", "notify", "rules", "takeover_s")

    def __init__(self) -> None:
        self.digest = _digest([], {}, None)
        self.takeover_s = TAKEOVER_S
        self.notify = Notify()
        self.rules: list[approval_rules.Rule] = []
        self.broken: HoldfastError | None = None


def parse(text: str, compile_pattern: Callable[[str], Pattern]) -> Settings:
    """Never raises: a broken file is a setting too, and the strict one. Other tables belong to others."""
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
        settings.broken = invalid(f"{FILE} is not TOML: {e}", "mend it")
    except HoldfastError as e:
        settings.broken = HoldfastError(e.code, f"{FILE}: {e.message}", e.hint)
    return settings


def _takeover(value: object) -> float:
    """`takeover_max`: how long a person who took over and is away keeps the controls."""
    if value is None:
        return TAKEOVER_S
    if not isinstance(value, str) or not 0 < duration_s(value) <= TAKEOVER_S_MAX:
        raise invalid(f"takeover_max is a time of at most {TAKEOVER_S_MAX / 86400:g} days", 'takeover_max = "12h"')
    return duration_s(value)


def _digest(approve: object, notify: object, takeover: object, places: store_setting.Stores | None = None) -> str:
    about = {"approve": approve, "notify": notify} | ({} if takeover is None else {"takeover_max": takeover})
    if places is not None and any(places):  # homes without either keep the digest that they have
        about |= places._asdict()
    told = json.dumps(about, sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _notify(table: object) -> Notify:
    if not isinstance(table, dict):
        raise invalid("notify is a table", "write [notify]")
    unknown = sorted(set(table) - _NOTIFY_KEYS)
    if unknown:
        raise invalid(f"notify does not know {unknown[0]!r}", "it has " + ", ".join(sorted(_NOTIFY_KEYS)))
    made = Notify()
    webhook = table.get("webhook")
    if webhook is not None:
        if not isinstance(webhook, str) or not webhook.startswith(("http://", "https://")):
            raise invalid("notify: webhook is an http or https address", 'webhook = "https://example.org/hook"')
        made.webhook = webhook
    command = table.get("command")
    if command is not None:
        words = [command] if isinstance(command, str) else command
        if not isinstance(words, list) or not words or not all(isinstance(w, str) and w for w in words):
            raise invalid("notify: command is a program and its arguments", 'command = ["/usr/local/bin/tell", "me"]')
        made.command = words
    desktop = table.get("desktop", False)
    if not isinstance(desktop, bool):
        raise invalid("notify: desktop is true or false", "desktop = true")
    made.desktop = desktop
    kinds = table.get("kinds", list(item.KINDS))
    if not isinstance(kinds, list) or not all(k in item.KINDS for k in kinds):
        raise invalid(f"notify: kinds are some of {', '.join(item.KINDS)}", 'kinds = ["secret", "approval"]')
    made.kinds = frozenset(kinds)
    return made
