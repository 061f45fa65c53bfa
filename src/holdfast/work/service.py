"""The work plane as calls by name with plain arguments: they also travel over the host's socket and MCP.

Every call that changes something takes `request`: the same id means the same call, and is applied once. `by` is who
asks; the host fills it in from whom it knows to be calling. A worker passes its `epoch`, and is fenced by it; a person
or an agent without one works by hand, under a lease that lasts while a step of theirs is open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..model import ids
from ..model.errors import HoldfastError, invalid
from ..model.limits import (
    ARTIFACT_BYTES_MAX,
    KEY_MAX,
    PIECE_BYTES,
    RUN_LEASE_MAX_S,
    RUN_LEASE_S,
    UPLOAD_S,
    VALUE_BYTES_MAX,
)
from ..model.work.effects import LOG_KINDS, RUN_STATES, check_word
from ..store.base import Change, Store
from ..wire import json_values
from .artifacts import rows as artifacts
from .briefs.facts import BriefCalls
from .checkpoints.ops import CheckpointCalls
from .claims.ops import ClaimCalls
from .runs import lease, log
from .runs import rows as runs
from .runs.ops import JobCalls
from .runs.session_ops import SessionCalls
from .runs.worker_process import check_process
from .steps import rows as steps
from .steps.intent import Intent, intended
from .steps.rule import Failure, Settlement
from .tasks import attempts
from .tasks import run_end as task_runs
from .tasks.change_ops import ChangeCalls
from .tasks.ops import TaskCalls
from .tasks.rows import Asked

Json = dict[str, Any]
_text = json_values.said
T = TypeVar("T")
_LISTED_MAX = 1000  # runs or log entries in one answer; a following call goes on from there


class Work(CheckpointCalls, JobCalls, TaskCalls, ChangeCalls, ClaimCalls, BriefCalls, SessionCalls):
    """`await work.call("step_begin", run=…, key=…)`, or the method of the same name."""

    def __init__(self, store: Store, by: str = "op_unknown", cache: str | None = None) -> None:
        """`cache` is the URL of the cache for short-term memory; without one it is this process's."""
        self.store, self.cache = store, cache
        self.by = by

    async def call(self, name: str, /, **args: Any) -> Any:
        method = getattr(self, name, None) if name in CALLS else None
        if method is None:
            raise HoldfastError("usage", f"there is no work call {str(name)[:60]!r}", "upgrade: hold down, then again")
        known, needed = _ARGUMENTS[name]
        if not needed <= args.keys() <= known:
            try:
                inspect.signature(method).bind(**args)  # slow, and says in words what is wrong
            except TypeError as e:
                raise invalid(f"{name}: {e}", "see docs/durable.md") from None
        answer = await method(**args)
        self._logged(name, args)
        return answer

    # -- runs ------------------------------------------------------------------------------------------------------

    async def begin_run(
        self,
        *,
        params: Json | None = None,
        items: list[str] | None = None,
        task: str | None = None,
        run: str | None = None,
        worker: str | None = None,
        ttl_s: float = RUN_LEASE_S,
        again: bool = False,
        parent: str | None = None,
        job: str | None = None,
        project: str | None = None,
        cwd: str | None = None,
        process: Json | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A new run; or, of a task or by its id, the one that is there, taken over if its lease is free."""
        if params is not None and not isinstance(params, dict):
            raise invalid("a run's params are a mapping of names to values", f"got {type(params).__name__}")
        wanted = runs.Wanted(
            request=request or ids.new("req_"),
            task=None if task is None else check_word("a task", task),
            run=None if run is None else await self._run(run),
            params=None if params is None else json_values.encode(params, "the run's params"),
            items=None if items is None else json_values.encode(runs.check_items(items), "the run's items"),
            worker=None if worker is None else check_word("a worker", worker),
            ttl=lease.check_ttl(ttl_s),
            again=again,
            parent=parent,
            by=by or self.by,
            job=None if job is None else check_word("a job", job),
            why=_text(why, "the reason"),
            process=check_process(process),
        )
        key = None if wanted.task is None else await self._managed(wanted.task, project, cwd)
        if key is None or wanted.run is not None:
            return await self.store.write(lambda: runs.begin(wanted))
        asked = self._asked(by, wanted.request, why)
        return await self.store.write(lambda: attempts.start(key, wanted, None, False, asked))

    async def lease_renew(self, *, run: str, epoch: int, ttl_s: float = RUN_LEASE_S, by: str | None = None) -> Json:
        ttl = lease.check_ttl(ttl_s)
        until = await self.store.write(lambda: lease.renew(run, epoch, ttl))
        return {"epoch": epoch, "lease_until": runs._time(until)}

    async def lease_release(self, *, run: str, epoch: int, by: str | None = None) -> Json:
        return {"released": await self.store.write(lambda: lease.release(run, epoch))}

    async def run_end(
        self,
        *,
        run: str,
        epoch: int | None = None,
        state: str = "done",
        outcome: Any = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        if state not in RUN_STATES[1:]:
            raise invalid(f"a run ends as one of {', '.join(RUN_STATES[1:])}", f"not {str(state)[:40]!r}")
        text, asked, run = (
            json_values.encode(outcome, "the run's outcome"),
            request or ids.new("req_"),
            await self._run(run),
        )
        reason = _text(why, "the reason")
        return await self.store.write(
            lambda: task_runs.end_run(run, epoch, state, text, Asked(by or self.by, asked, reason))
        )

    async def run_status(self, *, run: str, by: str | None = None) -> Json:
        """Where it stands: which items are done, in doubt, pending; who holds it; what is to be settled."""
        run = await self._run(run)
        return await self.store.read(lambda: runs.status(run))

    async def run_ls(
        self,
        *,
        task: str | None = None,
        state: str | None = None,
        job: str | None = None,
        limit: int = 100,
        project: str | None = None,
        cwd: str | None = None,
        by: str | None = None,
    ) -> list[Json]:
        most = max(1, min(int(limit), _LISTED_MAX))
        task = task and (await self._managed(task, project, cwd) or task)
        return await self.store.read(lambda: runs.listing(task, state, most, job))

    async def run_session(
        self,
        *,
        run: str,
        session: str,
        generation: int,
        from_offset: int,
        epoch: int | None = None,
        by: str | None = None,
    ) -> Json:
        """Note that this run uses a session, from this output offset on."""
        run = await self._run(run)
        check_word("a session", session)
        return await self.store.write(lambda: log.use_session(run, session, generation, from_offset, epoch))

    # -- steps -----------------------------------------------------------------------------------------------------

    async def step_begin(
        self,
        *,
        run: str,
        key: str,
        epoch: int | None = None,
        effect: str = "unsafe",
        args: Any = None,
        action: str | None = None,
        idem_key: str | None = None,
        why: str | None = None,
        session: str | None = None,
        exec_id: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """The intent, on disk before its effect: `execute` it, `reuse` what is known, or it is `in_doubt`."""
        intent = await self._intent(run, key, effect, args, action, idem_key, why, session, exec_id, by, request)
        if effect == "none":
            return await self.store.read(lambda: steps.look(intent, epoch))
        return await self._decide(intent, epoch, lambda held: steps.begin(intent, held), ends=False)

    async def step_end(
        self,
        *,
        run: str,
        key: str,
        epoch: int | None = None,
        result: Any = None,
        effect: str | None = None,
        args: Any = None,
        action: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """The outcome. A step without effect passes what it was (`effect`, `args`, `action`) here: one write in all."""
        text = json_values.encode(result, f"the result of step {key!r}")
        intent = await self._intent(run, key, effect or "unsafe", args, action, None, why, None, None, by, request)
        return await self._decide(intent, epoch, lambda held: steps.end(intent, held, effect, text))

    async def step_next(
        self,
        *,
        run: str,
        ended: Json,
        key: str,
        epoch: int,
        effect: str = "unsafe",
        args: Any = None,
        action: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """The outcome of one step (`ended`: its key, result and request) and the intent of the next, in one write."""
        if type(ended) is not dict or not {"key", "request"} <= ended.keys() or effect == "none":
            raise invalid("step_next takes what ended (key, result, request) and a step with effect", "see the docs")
        text = json_values.encode(ended.get("result"), f"the result of step {ended['key']!r}")
        done = await self._intent(run, ended["key"], "unsafe", None, None, None, None, None, None, by, ended["request"])
        coming = await self._intent(run, key, effect, args, action, None, why, None, None, by, request)
        return await self.store.decide(steps.following(done, text, coming, epoch))

    async def step_fail(
        self,
        *,
        run: str,
        key: str,
        epoch: int | None = None,
        error: str = "",
        known: bool = True,
        running: bool = False,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """It failed. `known`: nothing happened; else a verifiable or unsafe step is in doubt. `running`: its body has
        not ended, and it is in doubt whatever its effect."""
        run, asked = await self._run(run), request or ids.new("req_")
        error, reason = _text(error, "the error") or "failed", _text(why, "the reason")
        failure = Failure(run, key, error, bool(known), bool(running), reason, by or self.by, asked)
        return await self._decide(failure, epoch, lambda held: steps.fail(failure, held))

    async def step_settle(
        self,
        *,
        run: str,
        key: str,
        outcome: str,
        result: Any = None,
        evidence: str | None = None,
        epoch: int | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Say what happened to a step in doubt: `done` (with its result), `not_done` or `failed` (it may run again)."""
        run, asked = await self._run(run), request or ids.new("req_")
        text, proof = json_values.encode(result, "the result"), _text(evidence, "the evidence")
        who = check_word("who settles", by or self.by)
        said = Settlement(run, key, str(outcome), text, proof, who, asked)
        if epoch is None:
            return await self.store.write(lambda: steps.settle_by_hand(said))
        return await self.store.decide(steps.settle(said, epoch))

    async def step_assign(
        self, *, run: str, key: str, owner: str | None = None, within_s: float | None = None, by: str | None = None
    ) -> Json:
        """Name who is to settle a step in doubt, and how soon by the database's clock."""
        run = await self._run(run)
        who = None if owner is None else check_word("an owner", owner)
        if within_s is not None and not 0 < within_s <= RUN_LEASE_MAX_S * 52:
            raise invalid("a step is to be settled within a year", f"not {within_s:g} s")
        return await self.store.decide(steps.assign(run, key, who, within_s, by or self.by))

    async def step_find(self, *, run: str, key: str, by: str | None = None) -> Json | None:
        """One step, or null."""
        run = await self._run(run)
        return await self.store.read(lambda: log.one_step(run, check_word("a step's key", key)))

    async def step_ls(self, *, run: str, state: str | None = None, by: str | None = None) -> list[Json]:
        run = await self._run(run)
        return await self.store.read(lambda: log.all_steps(run, state))

    # -- the log ---------------------------------------------------------------------------------------------------

    async def log_append(
        self,
        *,
        run: str,
        body: Any,
        kind: str = "note",
        epoch: int | None = None,
        step: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """One more entry of the run's log. With an epoch it is the worker's; without, an operator's remark."""
        body = log.with_why(body, _text(why, "the reason"))
        if kind not in LOG_KINDS[4:]:
            raise invalid(f"a log entry is one of {', '.join(LOG_KINDS[4:])}", f"not {str(kind)[:40]!r}")
        run, text, asked = await self._run(run), json_values.encode(body, f"the {kind}"), request or ids.new("req_")
        seq = await self.store.decide(log.added(run, kind, text, epoch, by or self.by, step, asked))
        return {"seq": seq}

    async def log_read(
        self, *, run: str, after: int = 0, upto: int | None = None, limit: int = _LISTED_MAX, by: str | None = None
    ) -> list[Json]:
        run, most = await self._run(run), max(1, min(int(limit), _LISTED_MAX))
        return await self.store.read(lambda: log.entries(run, after, upto, most))

    # -- artifacts -------------------------------------------------------------------------------------------------

    async def artifact_piece(self, *, sha256: str, piece: int, data: str, by: str | None = None) -> Json:
        """A part of a large content, base64; `artifact_put` names the whole once all have come."""
        artifacts.check_hash(sha256)
        raw = _bytes(data)
        if len(raw) > PIECE_BYTES or not raw:
            raise invalid(f"a piece has 1 to {PIECE_BYTES:,} bytes", f"this one has {len(raw):,}")
        if not 0 <= piece < ARTIFACT_BYTES_MAX // PIECE_BYTES:
            raise invalid(f"an artifact has at most {ARTIFACT_BYTES_MAX:,} bytes", "keep it elsewhere, and note where")
        return await self.store.write(lambda: artifacts.piece(sha256, piece, raw))

    async def artifact_put(
        self,
        *,
        run: str,
        name: str,
        sha256: str | None = None,
        data: str | None = None,
        media: str | None = None,
        sources: list[str] | None = None,
        epoch: int | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Name a content: given here (base64), or by its hash after its pieces."""
        run = await self._run(run)
        check_word("an artifact's name", name, KEY_MAX)
        raw = None if data is None else _bytes(data)
        if raw is not None:
            if len(raw) > VALUE_BYTES_MAX:
                raise invalid(f"at most {VALUE_BYTES_MAX:,} bytes come in one call", "send pieces, then put the hash")
            actual = hashlib.sha256(raw).hexdigest()
            if sha256 is not None and sha256 != actual:
                raise HoldfastError("conflict", "the content does not have that hash", "it was changed on the way")
            sha256 = actual
        if sha256 is None:
            raise invalid("an artifact needs its content or its hash", "pass data, or send pieces and pass sha256")
        content = artifacts.check_hash(sha256)
        origin = json_values.encode(sources or [], "the sources")
        who, asked, reason = by or self.by, request or ids.new("req_"), _text(why, "the reason")
        return await self.store.write(
            lambda: log.explained(
                artifacts.put(run, name, content, raw, media=media, made_by=who, sources=origin, epoch=epoch),
                run,
                f"put artifact {name}",
                reason,
                epoch,
                who,
                asked,
            )
        )

    async def artifact_find(self, *, run: str, name: str, by: str | None = None) -> Json:
        run = await self._run(run)
        return await self.store.read(lambda: artifacts.find(run, name))

    async def artifact_read(self, *, sha256: str, piece: int = 0, by: str | None = None) -> Json:
        """A piece of a content, base64; `data` is null past its end."""
        content = artifacts.check_hash(sha256)
        raw = await self.store.read(lambda: artifacts.read(content, piece))
        return {"data": None if raw is None else base64.b64encode(raw).decode()}

    async def artifact_rm(
        self,
        *,
        run: str,
        name: str,
        epoch: int | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        run, who, asked = await self._run(run), by or self.by, request or ids.new("req_")
        reason = _text(why, "the reason")
        return await self.store.write(
            lambda: log.explained(
                artifacts.remove(run, name, epoch), run, f"remove artifact {name}", reason, epoch, who, asked
            )
        )

    async def artifact_ls(self, *, run: str | None = None, by: str | None = None) -> list[Json]:
        owner = None if run is None else await self._run(run)
        return await self.store.read(lambda: artifacts.listing(owner))

    async def artifact_orphans(self, *, by: str | None = None) -> list[Json]:
        return await self.store.read(artifacts.orphans)

    async def artifact_gc(self, *, older_s: float = UPLOAD_S, by: str | None = None) -> Json:
        older = int(max(0.0, older_s) * 1e6)
        return await self.store.write(lambda: artifacts.collect(older))

    # -- helpers ---------------------------------------------------------------------------------------------------

    async def _decide(
        self, call: Intent | Failure, epoch: int | None, change: Callable[[int], Change[Json]], *, ends: bool = True
    ) -> Json:
        """A change of a step: by the worker that has this epoch, or by hand."""
        if epoch is not None:
            return await self.store.decide(change(epoch))
        return await self.store.write(lambda: steps.by_hand(call, change, ends=ends))

    async def _run(self, run: str) -> str:
        """A run's id; the beginning of one is looked up, as people type it."""
        if runs.whole(run):
            return run
        return await self.store.read(lambda: runs.resolve(run))

    async def _intent(
        self,
        run: str,
        key: str,
        effect: str,
        args: Any,
        action: str | None,
        idem_key: str | None,
        why: str | None,
        session: str | None,
        exec_id: str | None,
        by: str | None,
        request: str | None,
    ) -> Intent:
        return intended(
            await self._run(run),
            key,
            effect,
            args,
            action,
            idem_key,
            why,
            session,
            exec_id,
            by or self.by,
            request or ids.new("req_"),
        )


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise invalid("content comes as base64", "encode it first") from None


def _calls(kind: type) -> frozenset[str]:
    names: Callable[[object], bool] = inspect.iscoroutinefunction
    found = {n: f for part in reversed(kind.__mro__) for n, f in vars(part).items()}
    return frozenset(n for n, f in found.items() if names(f) and not n.startswith("_") and n not in ("call", "aclose"))


CALLS = _calls(Work)


def _arguments(call: Callable[..., Any]) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a call takes, and those of them that it cannot do without."""
    taken = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
    return frozenset(p.name for p in taken), frozenset(p.name for p in taken if p.default is p.empty)


_ARGUMENTS = {name: _arguments(getattr(Work, name)) for name in CALLS}
