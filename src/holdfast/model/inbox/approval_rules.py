"""Approval rules of config.toml: which commands of agents a person must approve, and the text shown. Pure.

[[approve]]
pattern = 'git push|rm -rf'          # RE2, searched in the command; left out: every command
session = "deploy*"                  # glob over session names; left out: all
verbs = ["exec", "run", "send"]      # left out: these three; send is everything typed, and `contract` an edit of
                                     # a contract that a person wrote (the glob is over PROJECT/TASK)
kinds = ["agent", "service"]         # whose commands; left out: both
timeout = "5m"                       # no answer in time is a no
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata

from ..durations import duration_s
from ..errors import HoldfastError, invalid
from ..limits import APPROVAL_TEXT_MAX, APPROVAL_TIMEOUT_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..patterns import Pattern

    Json = dict[str, Any]

VERBS = ("exec", "run", "send")
_ALSO = ("contract",)  # without a rule it is refused, so a rule has to name it
KINDS = ("agent", "service")
_KEYS = frozenset({"pattern", "session", "verbs", "kinds", "timeout"})
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")  # controls, bidi and joiners, odd spaces, unassigned
_OURS = "⟨⏎"  # the signs used below: if the text itself has them, they are escaped
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


class Rule:
    """One `[[approve]]` table; `matcher` is its compiled pattern."""

    __slots__ = ("kinds", "matcher", "pattern", "session", "timeout_s", "verbs")

    def __init__(
        self,
        pattern: str,
        matcher: Pattern,
        session: str,
        verbs: frozenset[str],
        kinds: frozenset[str],
        timeout_s: float,
    ) -> None:
        self.pattern, self.matcher, self.session = pattern, matcher, session
        self.verbs, self.kinds, self.timeout_s = verbs, kinds, timeout_s

    def covers(self, verb: str, kind: str, session: str) -> bool:
        return verb in self.verbs and kind in self.kinds and fnmatch.fnmatchcase(session, self.session)

    def wants(self, command: bytes) -> bool:
        """Whether the rule matches; a command that is too long to search counts as a match."""
        return len(command) > self.matcher.window_bytes or self.matcher.search(command) is not None


def parse(tables: object, compile_pattern: Callable[[str], Pattern]) -> list[Rule]:
    """Parse the rules of a config file; a mistake is an error, never a rule that silently matches nothing."""
    if not isinstance(tables, list):
        raise invalid("approve must be a list of tables", "write [[approve]]")
    return [_rule(n, table, compile_pattern) for n, table in enumerate(tables, 1)]


def _rule(number: int, table: object, compile_pattern: Callable[[str], Pattern]) -> Rule:
    where = f"approve rule {number}"
    if not isinstance(table, dict):
        raise invalid(f"{where} is not a table", "write [[approve]]")
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise invalid(f"{where} has an unknown key: {unknown[0]!r}", "it has " + ", ".join(sorted(_KEYS)))
    pattern, session = table.get("pattern", ""), table.get("session", "*")
    if not isinstance(pattern, str) or not isinstance(session, str) or not session:
        raise invalid(f"{where}: pattern and session must be text", 'pattern = "git push", session = "deploy*"')
    timeout = table.get("timeout", APPROVAL_TIMEOUT_S)
    timeout_s = duration_s(timeout) if isinstance(timeout, str) else timeout
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < 1e7:
        raise invalid(f"{where}: {str(timeout)[:40]!r} is not a duration", 'timeout = "5m"')
    verbs = _words(where, "verbs", table.get("verbs", list(VERBS)), VERBS + _ALSO)
    kinds = _words(where, "kinds", table.get("kinds", list(KINDS)), KINDS)
    return Rule(pattern, compile_pattern(pattern), session, verbs, kinds, float(timeout_s))


def _words(where: str, key: str, value: object, known: Sequence[str]) -> frozenset[str]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(v in known for v in given):
        raise invalid(f"{where}: {key} must be a list of {', '.join(known)}", f'{key} = ["{known[0]}"]')
    return frozenset(given)


def needed(rules: Sequence[Rule], verb: str, kind: str, session: str, command: bytes) -> Rule | None:
    """The first rule that requires approval of this command, or None."""
    for rule in rules:
        if not rule.covers(verb, kind, session):
            continue
        if rule.wants(command) or (verb == "send" and not whole_lines(command)):
            return rule
    return None


def typing_refused(rules: Sequence[Rule], kind: str, session: str) -> bool:
    """Whether an operator of this kind may not type through a channel, where input cannot be checked first."""
    return any(rule.covers("send", kind, session) for rule in rules)


def whole_lines(typed: bytes) -> bool:
    """Whether typed bytes can be checked alone: whole lines, without keys that edit or recall other text."""
    return typed.endswith((b"\r", b"\n")) and all((b >= 0x20 and b != 0x7F) or b in b"\r\n" for b in typed)


def visible(text: str) -> str:
    """Text without hidden characters: invisible ones are escaped, with signs that the text cannot fake."""
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char == "\n":
        return "⏎\n"
    if char == " " or (char not in _OURS and unicodedata.category(char) not in _INVISIBLE):
        return char
    if "\udc80" <= char <= "\udcff":  # a byte that is not UTF-8, kept by surrogateescape
        return f"⟨x{ord(char) - 0xDC00:02X}⟩"
    return f"⟨U+{ord(char):04X}⟩"


def env_changes(env: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str | None]:
    """The differences from the host's environment (None: removed). Values of secrets are not shown."""
    changed: dict[str, str | None] = {
        k: visible(v) if not _SECRET_NAME.search(k) else f"(hidden, {len(v)} characters)"
        for k, v in sorted(env.items())
        if base.get(k) != v
    }
    return changed | dict.fromkeys(sorted(set(base) - set(env)))


def check_length(shown: str) -> str:
    if len(shown) > APPROVAL_TEXT_MAX:
        raise HoldfastError(
            "not_allowed",
            f"a command of {len(shown)} characters needs approval, and is too long to be shown",
            f"put it into a file, and run a command of at most {APPROVAL_TEXT_MAX} characters",
        )
    return shown
