"""Short-term memory of a run: the messages that fit a model's window, and scratch values that expire.

Both are entries of the run's log, so an acknowledged one is on disk, and every checkpoint carries them. The cache only
saves reading them again: emptied, or lost with its process, it is filled from the store, and the window is as it was.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.errors import invalid, not_found
from ...model.limits import SCRATCH_MAX, WINDOW_MESSAGES_MAX, WINDOW_TOKENS
from ...model.work.effects import check_word
from ...store import queries
from ...store.base import Query, Transaction
from ...store.memory_cache import Cache, Window
from ...wire import json_values
from ..checkpoints.checkpoints import Checkpoints
from ..runs import lease, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.base import Store

Json = dict[str, Any]
_FOREVER = 1 << 62  # past every log entry
_OVERHEAD_TOKENS = 4  # role and separators of one message, as common chat formats have them


# -- pure --------------------------------------------------------------------------------------------------------


def estimate(message: bytes) -> int:
    """Tokens of a message (its JSON text) without a tokenizer: a quarter of its ASCII characters, one for any other.

    English comes out about right, code and other scripts a little high.
    """
    text = message.decode()
    plain = len(text.encode("ascii", "ignore"))
    return _OVERHEAD_TOKENS + -(-plain // 4) + (len(text) - plain)


def choose(messages: list[bytes], pinned: list[bool], budget: int) -> tuple[list[int], int]:
    """Which messages fit, as indices in order, and their tokens: pinned ones, then from the newest back."""
    chosen, used = set(), 0
    for i, fixed in enumerate(pinned):
        cost = estimate(messages[i]) if fixed else 0
        if fixed and used + cost <= budget:
            chosen.add(i)
            used += cost
    for i in range(len(messages) - 1, -1, -1):
        if pinned[i]:
            continue
        cost = estimate(messages[i])
        if used + cost > budget:
            break
        chosen.add(i)
        used += cost
    return sorted(chosen), used


def is_pinned(message: Any) -> bool:
    """What the model must always see: instructions, and what its writer marked."""
    return isinstance(message, dict) and (message.get("pinned") is True or message.get("role") == "system")


def newest(messages: list[Any], most: int) -> tuple[list[Any], bool]:
    """The newest ones and every pinned one, in order; and whether that is all."""
    if len(messages) <= most:
        return messages, True
    return [m for m in messages[:-most] if is_pinned(m)] + messages[-most:], False


# -- with the store ----------------------------------------------------------------------------------------------


def _since(run: str, after: int) -> Transaction[tuple[int, int, list[tuple[str, str]]]]:
    """The database's time, the log's end, and the entries since that concern memory."""
    held = yield from queries.seen(run)
    rows = yield Query(
        "SELECT kind, body FROM log WHERE run = ? AND seq > ? AND kind IN ('message', 'scratch', 'checkpoint')"
        " ORDER BY seq",
        (run, after),
    )
    last = yield Query("SELECT COALESCE(MAX(seq), 0) FROM log WHERE run = ?", (run,))
    return held.now, int(last[0][0]), [(kind, body) for kind, body in rows]


def _set(
    run: str,
    name: str,
    value: Any,
    ttl_s: float | None,
    drop: list[str],
    epoch: int | None,
    by: str,
    request: str,
    why: str | None,
) -> Transaction[Json]:
    held = yield from queries.held(run)
    if epoch is not None:
        lease.check(held, epoch)
    until = None if ttl_s is None else held.now / 1e6 + ttl_s
    before = yield from queries.appended(run, request)
    if before is None:
        kept = {"name": name, "value": value, "until": until, "drop": drop}
        body = json_values.encode(log.with_why(kept, why), "the value")
        before = yield from queries.append(run, "scratch", body, at=held.now, epoch=epoch or 0, by=by, request=request)
    return {"run": run, "name": name, "seq": before, "until": until}


class Memory:
    def __init__(self, store: Store, cache: Cache, checkpoints: Checkpoints) -> None:
        self._store, self._cache, self._checkpoints = store, cache, checkpoints

    async def append(
        self, run: str, message: Any, *, epoch: int | None, why: str | None, by: str, request: str
    ) -> Json:
        body = json_values.encode(message, "the message")
        # Why it was said is no part of what was said: an entry of its own, which no model is shown as a message.
        seq = await self._store.write(
            lambda: log.explained(
                queries.decided(log.added(run, "message", body, epoch, by, None, request)),
                run,
                "append a message",
                why,
                epoch,
                by,
                request + ".why",
            )
        )
        return {"run": run, "seq": seq, "tokens": estimate(body.encode())}

    async def window(self, run: str, max_tokens: int = WINDOW_TOKENS) -> Json:
        """The messages that fit, oldest first."""
        if max_tokens < 1:
            raise invalid("a window has room for at least one token", f"not {max_tokens}")
        known, _ = await self._current(run)
        chosen, used = self._choose(known, max_tokens)
        if not known.whole and len(chosen) == len(known.messages):
            # The budget reaches further back than the cache does.
            state, upto, _ = await self._checkpoints.state_at(run)
            known = known._replace(upto=upto, messages=[_json(m) for m in state["messages"]], whole=True)
            chosen, used = self._choose(known, max_tokens)
        return {
            "run": run,
            "upto": known.upto,
            "tokens": used,
            "max_tokens": max_tokens,
            "messages": [msgspec.json.decode(known.messages[i]) for i in chosen],
            "omitted": len(known.messages) - len(chosen) if known.whole else None,
        }

    @staticmethod
    def _choose(known: Window, budget: int) -> tuple[list[int], int]:
        pinned = [is_pinned(msgspec.json.decode(m)) for m in known.messages]
        return choose(known.messages, pinned, budget)

    async def set(
        self,
        run: str,
        name: str,
        value: Any,
        *,
        ttl_s: float | None,
        epoch: int | None,
        why: str | None,
        by: str,
        request: str,
    ) -> Json:
        """Keep a value, for `ttl_s` seconds or as long as the run; None as a time to live of 0 forgets it."""
        check_word("a scratch value's name", name)
        if ttl_s is not None and not 0 <= ttl_s <= 10 * 365 * 86400:
            raise invalid(f"a value lives for 0 s or longer, not {ttl_s:g}", "0 forgets it")
        known, now = await self._current(run)
        kept: Json = msgspec.json.decode(known.scratch)
        drop = [n for n, v in kept.items() if _expired(v, now)]
        if len(kept) - len(drop) >= SCRATCH_MAX and name not in kept:
            raise invalid(f"a run keeps at most {SCRATCH_MAX} scratch values", "give them a time to live")
        if ttl_s == 0:
            drop = [*drop, name] if name not in drop else drop
        return await self._store.write(lambda: _set(run, name, value, ttl_s, drop, epoch, by, request, why))

    async def get(self, run: str, name: str) -> Json:
        known, now = await self._current(run)
        found = msgspec.json.decode(known.scratch).get(name)
        if found is None or _expired(found, now):
            raise not_found(f"run {run} keeps no value {name[:80]!r}", "it was not set, or has expired")
        return {"run": run, "name": name, "value": found["value"], "until": found["until"]}

    async def _current(self, run: str) -> tuple[Window, int]:
        """The cached window brought up to the log's end, and the database's time (µs)."""
        cached = await self._cache.get(run)
        after = cached.upto if cached is not None else _FOREVER
        now, end, added = await self._store.read(lambda: _since(run, after))
        if cached is None or any(kind == "checkpoint" for kind, _ in added):
            return await self._fill(run), now
        if end == cached.upto:
            return cached, now
        scratch: Json = msgspec.json.decode(cached.scratch)
        for kind, body in added:
            if kind == "scratch":
                _keep(scratch, msgspec.json.decode(body))
        fresh = [body.encode() for kind, body in added if kind == "message"]
        grown = Window(end, cached.whole, cached.messages + fresh, _json(scratch))
        if len(grown.messages) > 2 * WINDOW_MESSAGES_MAX:
            return await self._fill(run), now
        await self._cache.extend(run, cached.upto, grown._replace(messages=fresh))
        return grown, now

    async def _fill(self, run: str) -> Window:
        state, upto, _ = await self._checkpoints.state_at(run)
        messages, whole = newest(state.get("messages") or [], WINDOW_MESSAGES_MAX)
        window = Window(upto, whole, [_json(m) for m in messages], _json(state.get("scratch") or {}))
        await self._cache.put(run, window)
        return window

    async def close(self) -> None:
        await self._cache.close()


def _keep(scratch: Json, body: Json) -> None:
    from ...model.work.run_state import fold

    state = {"scratch": scratch}
    fold(state, {"kind": "scratch", "body": body, "seq": 0})


def _expired(kept: Json, now: int) -> bool:
    return kept["until"] is not None and kept["until"] * 1e6 <= now


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
