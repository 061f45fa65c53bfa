"""Made from _async/checkpoints.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import base64
import copy
import hashlib
from itertools import takewhile

from ...model.errors import HoldfastError, invalid
from ...model.limits import PIECE_BYTES, REPLY_STATE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...delta.encode import Encoder

    Json = dict[str, Any]

_TRIES = 5  # reads whose records were made whole between two pieces


class SavedState:
    """The state as this process last knew it: true up to log entry `upto`, stored as checkpoint `seq`."""

    __slots__ = ("encoder", "hash", "seq", "state", "upto")

    def __init__(self, encoder: Encoder, state: Json, seq: int | None, hash: str, upto: int) -> None:
        self.encoder, self.state, self.seq, self.hash, self.upto = encoder, state, seq, hash, upto


class RunState:
    """A part of Run, which gives it `_call`, `_check` and `_once`."""

    id: str
    resumed: bool
    _held: SavedState | None = None
    _once: Callable[[], Json]
    _call: Callable[..., Any]
    _check: Callable[[], None]

    def checkpoint(self, *, label: str | None = None, **fields: object) -> Json:
        """Save the run's state with these fields set: goal, constraints, plan, current_step, context, messages,
        artifacts, sessions, open_paths, resume_point, or names of your own. The others keep their values; messages and
        notes of the log are in it already. On disk when this returns.
        """
        from ...model.work.run_state import owned

        self._check()
        once = self._once()
        if once and self.resumed and (before := self._call_read("checkpoint_made", **once)) is not None:
            found: Json = before
            return found
        if "sessions" in fields:
            fields["sessions"] = self._located(fields["sessions"])
        held = self._current()
        try:
            held.state.update(owned(fields))
            change = held.encoder.change(held.state)
        except RecursionError:
            raise invalid("the state is nested too deeply to be saved", "keep deep values as artifacts") from None
        try:
            saved: Json = self._call(
                "checkpoint_put",
                **self._record(change.record),
                hash=change.hash,
                size=change.size,
                log_upto=held.upto,
                base=None if change.whole else held.seq,
                base_hash=held.hash,
                label=label,
                **once,
            )
        except HoldfastError as e:
            if e.code != "conflict":
                raise
        else:
            self._held = SavedState(held.encoder, held.state, saved["seq"], saved["hash"], saved["log_upto"])
            return saved
        saved = self._call("checkpoint_save", **self._given(fields), label=label, locked=True, **once)
        self._follow(held, fields, saved)
        return saved

    def _given(self, fields: Json) -> Json:
        """Fields as a save names them: themselves, or, where they are large, their hash once their pieces are there."""
        import msgspec

        text = msgspec.json.Encoder(order="sorted").encode(fields)
        return {"state": msgspec.json.decode(text)} if len(text) <= PIECE_BYTES else self._in_parts(text)

    def _follow(self, held: SavedState, fields: Json, saved: Json) -> None:
        """Make what the store made under the lock, from the entries that came in between; their hashes tell."""
        from ...model.work.run_state import folded, owned

        since = [entry for entry in self._entries(held.upto) if entry["seq"] < saved["log_upto"]]
        if not any(entry["kind"] == "checkpoint" for entry in since):
            folded(held.state, since).update(owned(fields))
            if held.encoder.change(held.state).hash == saved["hash"]:
                self._held = SavedState(held.encoder, held.state, saved["seq"], saved["hash"], saved["log_upto"])

    def restore(self, seq: int | None = None) -> Json:
        """The state to go on from: the live one, or that of checkpoint `seq`, which is the run's state again."""
        if seq is None:
            found = self._call_read("state_at", at_most=REPLY_STATE_BYTES)
        else:
            self._held = None
            found = self._call("checkpoint_restore", seq=seq, at_most=REPLY_STATE_BYTES)
        state: Json | None = found["state"]
        if state is None:  # too large for one reply: in pieces; and a copy, since the next save is compared with ours
            self._held = self._current()
            state = copy.deepcopy(self._held.state)
        return state

    def checkpoints(self) -> list[Json]:
        """All of them, oldest first, without their states."""
        found: list[Json] = self._call_read("checkpoint_ls")
        return found

    def history(self, at: int | None = None) -> Json:
        """What was thought, done and seen, in order; with `at`, a position of the log, the state then too."""
        found: Json = self._call_read("history", at=at)
        page = found["entries"]
        while page:
            page = (self._call_read("history", after=page[-1]["seq"]))["entries"]
            found["entries"] += [entry for entry in page if at is None or entry["seq"] <= at]
        return found

    def message(self, message: object, *, why: str | None = None) -> int:
        """One more message of the conversation, in the log and in the window; its number."""
        return int((self._call("memory_append", message=message, why=why))["seq"])

    def window(self, max_tokens: int | None = None) -> list[Any]:
        """The newest messages that fit so many tokens (an estimate), and every instruction."""
        more = {} if max_tokens is None else {"max_tokens": max_tokens}
        found: list[Any] = (self._call_read("memory_window", **more))["messages"]
        return found

    def set(self, name: str, value: object, *, ttl: float | None = None) -> None:
        """Keep a scratch value, for `ttl` seconds or as long as the run."""
        self._call("memory_set", name=name, value=value, ttl_s=ttl)

    def recall(self, name: str, default: object = None) -> Any:
        """A scratch value, or `default` once it has expired."""
        try:
            return (self._call_read("memory_get", name=name))["value"]
        except HoldfastError as e:
            if e.code != "not_found":
                raise
            return default

    def _call_read(self, name: str, /, **args: Any) -> Any:
        raise NotImplementedError

    def _current(self) -> SavedState:
        """The live state: as held, with the log's entries since; from the store where somebody else saved meanwhile.

        It is the caller's from here on: a second save at the same time finds none, and loads its own. And an error
        leaves nothing half known.
        """
        from ...model.work.run_state import folded

        held: SavedState = vars(self).pop("_held", None) or self._load()
        entries = self._entries(held.upto)
        if any(entry["kind"] == "checkpoint" for entry in entries):
            held = self._load()
            entries = self._entries(held.upto)
        # One more may have come between those two looks. The state then ends before it, and the store, which compares
        # positions, refuses this save and makes it itself, under the lock.
        entries = list(takewhile(lambda entry: entry["kind"] != "checkpoint", entries))
        folded(held.state, entries)
        held.upto = entries[-1]["seq"] if entries else held.upto
        return held

    def _record(self, record: bytes) -> Json:
        """A record as a save names it: itself, or, where it is large, its hash once its pieces are there."""
        if len(record) <= PIECE_BYTES:
            return {"record": base64.b64encode(record).decode()}
        return self._in_parts(record)

    def _in_parts(self, content: bytes) -> Json:
        sha256 = hashlib.sha256(content).hexdigest()
        for n in range(-(-len(content) // PIECE_BYTES)):
            data = base64.b64encode(content[n * PIECE_BYTES : (n + 1) * PIECE_BYTES]).decode()
            self._send("artifact_piece", sha256=sha256, piece=n, data=data)
        return {"sent": sha256}

    def _in_pieces(self) -> Json:
        """The last checkpoint, with a state that is put together here."""
        from ...delta import encode

        for attempt in range(1, _TRIES + 1):
            found: Json = self._call_read("checkpoint_records")
            records: list[bytes] = []
            for record in found["records"]:
                parts = [
                    base64.b64decode((self._call_read("checkpoint_part", seq=record["seq"], piece=n))["data"])
                    for n in range(-(-record["length"] // PIECE_BYTES))
                ]
                records.append(b"".join(parts))
            try:
                return {**found, "state": encode.values(encode.restore(records, found["hash"]))}
            except HoldfastError:
                if attempt == _TRIES:
                    raise  # else: a record was made whole between two pieces of it
        raise AssertionError("unreachable")

    def _located(self, sessions: object) -> object:
        raise NotImplementedError

    def _send(self, name: str, /, **args: Any) -> Any:
        raise NotImplementedError

    def _entries(self, after: int) -> list[Json]:
        entries: list[Json] = []
        while page := self._call_read("log_read", after=entries[-1]["seq"] if entries else after):
            entries += page
        return entries

    def _load(self) -> SavedState:
        from ...delta.encode import Encoder
        from ...model.work.run_state import blank

        try:
            found = self._call_read("checkpoint_show", at_most=REPLY_STATE_BYTES)
        except HoldfastError as e:
            if e.code != "not_found":
                raise
            return SavedState(Encoder(), blank(), None, "", 0)
        if found["state"] is None:
            found = self._in_pieces()
        encoder = Encoder()
        # The same state has the same bytes everywhere, so what is stored need not travel to be known.
        known = encoder.change(found["state"]).hash == found["hash"]
        seq = found["seq"] if known else None
        return SavedState(encoder if known else Encoder(), found["state"], seq, found["hash"], found["log_upto"])
