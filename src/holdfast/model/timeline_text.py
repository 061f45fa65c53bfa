"""The journal as a story: one sentence per entry, typing of one hand joined, what belongs together told once. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Json = dict[str, Any]

_IT = "\0"  # stands for the session in a sentence: its name, or "it" where only one is spoken of
_TEXT_SHOWN = 100  # characters of a command or a reason in a line; the data has all of it


class TimelineLine:
    """A day, a time of day, and what happened."""

    __slots__ = ("clock", "day", "text")

    def __init__(self, at: str, text: str) -> None:
        self.day, self.clock, self.text = at[:10], at[11:19], text


def tell(entries: Iterable[Json], *, names: bool) -> Iterator[TimelineLine]:
    """Sentences in order; with `names` each says in which session it was."""
    told: set[tuple[object, object]] = set()
    for entry in entries:
        if entry.get("kind") == "input" and entry.get("what") in ("send", "exec", "answer"):
            continue  # the host's own entry tells it, with the text
        key = (entry.get("session"), entry.get("exec_id"))
        if entry.get("exec_id") and key in told:
            continue
        told.add(key)
        yield TimelineLine(str(entry["at"]), sentence(entry, names=names))


def sentence(entry: Json, *, names: bool) -> str:
    """What one entry says."""
    who = str(entry.get("name") or entry.get("operator") or "someone")
    if entry.get("operator_kind") in ("agent", "service"):
        who += f" ({entry['operator_kind']})"
    words = _SENTENCES.get(str(entry.get("kind")), _other)(entry)
    session = str(entry.get("session_name") or entry["session"]) if names and entry.get("session") else ""
    where = f" in {session}" if session and _IT not in words else ""
    words = words.replace(_IT, session or "it")
    if entry.get("repeated") and entry.get("kind") != "refuse":
        words += f" ({entry['repeated']} times)"
    why = f": {_quoted(entry['why'])}" if entry.get("why") else ""
    if entry.get("reason"):  # of a refusal: the host's own words
        why = f": {entry['reason']}"
    if words.startswith("the ") or entry.get("operator") is None:
        who = ""
    return f"{who} {words}{where}{why}".strip()


def _quoted(text: object) -> str:
    flat = " ".join(str(text).split())
    return f"“{flat[:_TEXT_SHOWN]}{'…' if len(flat) > _TEXT_SHOWN else ''}”"


def _actor(value: object) -> str:
    if isinstance(value, dict):
        kind = f" ({value['kind']})" if value.get("kind") in ("agent", "service") else ""
        return f"{value.get('name') or value.get('operator')}{kind}"
    return str(value)


def _start(e: Json) -> str:
    again = " again" if e["kind"] == "restart" else ""
    host = "the host " if e.get("operator") is None else ""
    return f"{host}started {_IT}{again} with {_quoted(' '.join(map(str, e.get('command') or [])))}"


def _send(e: Json) -> str:
    return f"sent {_quoted(e['text'])}" if e.get("text") else "sent a secret" if e.get("secret") else "sent input"


def _signal(e: Json) -> str:
    target = {"tree": "everything", "foreground": "the foreground job", "main": "the main program"}
    return f"sent {e.get('signal')} to {target.get(str(e.get('target')), _IT)}"


def _take(e: Json) -> str:
    before = f" from {_actor(e['from'])}" if e.get("from") else ""
    flushed = f", {e['flushed']} unread bytes dropped" if e.get("flushed") else ""
    forced = " by force" if e.get("forced") else ""
    return f"took the controls{before}{forced} (epoch {e.get('epoch')}{flushed})"


def _away(e: Json) -> str:
    return f"is away and still holds the controls (epoch {e.get('epoch')})"


def _hand(e: Json) -> str:
    note = f", saying {_quoted(e['note'])}" if e.get("note") else ""
    return f"handed the controls to {_actor(e.get('to'))} (epoch {e.get('epoch')}){note}"


def _ended(e: Json) -> str:
    end = e.get("exit") or {}
    if not isinstance(end, dict) or not end.get("known", True):
        return "the program ended, nobody saw how"
    how = end.get("signal") or f"code {end.get('code')}"
    return f"the program ended: {how}"


def _grant(e: Json) -> str:
    g = e.get("grant") or {}
    verbs, sessions = ", ".join(g.get("verbs") or []), ", ".join(g.get("sessions") or [])
    return f"granted {_actor(e.get('whom') or g.get('operator'))} {verbs} on {sessions}"


def _revoke(e: Json) -> str:
    grant = f"grant {e['grant_id']} of " if e.get("grant_id") else ""
    return f"revoked {grant}{_actor(e.get('whom'))}"


def _for(e: Json) -> str:
    """Whose browser it is, where it is not one of who acts."""
    whom = e.get("whom")
    other = isinstance(whom, dict) and whom.get("operator") not in (None, e.get("operator"))
    return f" for {_actor(whom)}" if other else ""


def _refuse(e: Json) -> str:
    more = f" ({e['repeated']} times more)" if e.get("repeated") else ""
    what = f"was refused {e.get('op')}" if e.get("operator") else f"refused {e.get('op')} of an unknown caller"
    return f"{what}{more}"


def _attach(e: Json) -> str:
    via = f" by {e['via']}" if e.get("via") else ""
    return f"attached{via}, {'watching' if e.get('mode') == 'watch' else 'able to type'}"


def _size(e: Json) -> str:
    return f"resized {_IT} to {'x'.join(map(str, e.get('size') or []))}"


def _settings(e: Json) -> str:
    """Who wrote the file is not known: the sentence has no subject but the file."""
    if e.get("broken"):
        return "the settings changed, and cannot be read"
    rules = f"{e.get('rules') or 'no'} approval rule{'' if e.get('rules') == 1 else 's'}"
    word = ", ".join(map(str, e.get("notify") or [])) or "nobody"
    return f"the settings changed: {rules}, word goes to {word}"


def _down(e: Json) -> str:
    if e.get("operator") is None:
        return f"the host was stopped by {e.get('signal') or 'a signal'}"
    return "stopped the host" + (" and every session" if e.get("all") else "")


def _other(e: Json) -> str:
    return str(e.get("kind"))


_SENTENCES: dict[str, Callable[[Json], str]] = {
    "start": _start,
    "restart": _start,
    "stop": lambda e: f"stopped {_IT}",
    "ended": _ended,
    "send": _send,
    "input": lambda e: "typed",
    "exec": lambda e: f"ran {_quoted(e.get('text') or '')}",
    "resize": _size,
    "signal": _signal,
    "end_input": lambda e: "ended its input",
    "attach": _attach,
    "detach": lambda e: "detached",
    "take": _take,
    "preempt": _take,
    "release": lambda e: f"released the controls (epoch {e.get('epoch')} is over)",
    "away": _away,
    "hand": _hand,
    "expire": lambda e: f"lost the controls, their time was over (epoch {e.get('epoch')})",
    "ask": lambda e: f"asked {_quoted(e.get('text') or '')}",
    "answer": lambda e: "answered",
    "approve": lambda e: f"approved {e.get('ask') or 'it'}",
    "deny": lambda e: f"denied {e.get('ask') or 'it'}",
    "enrol": lambda e: f"enrolled {_actor(e.get('whom'))}",
    "grant": _grant,
    "revoke": _revoke,
    "refuse": _refuse,
    "rename": lambda e: f"renamed {e.get('before')} to {_IT}",
    "remove": lambda e: f"removed {_IT}",
    "reap": lambda e: f"the host ended {_IT} for being idle",
    "store": lambda e: f"set the store to {e.get('store')}, the cache to {e.get('cache') or 'none'}",
    "restore_confirm": lambda e: "confirmed what the restored home may run",
    "settings": _settings,
    "down": _down,
    "link": lambda e: f"made a link to the console{_for(e)}",
    "login": lambda e: f"logged a browser in{_for(e)}",
    "logout": lambda e: "logged browsers out",
    "policy": lambda e: f"the policy says: {e.get('text') or ''}",
}
