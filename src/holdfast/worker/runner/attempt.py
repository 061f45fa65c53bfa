"""One attempt at a task: its backend in a held session, its files, its verification, its end.

Each action is a step of the attempt's run, written down before it is done and after. A runner that takes over begins at
the beginning: what is done gives its result at once, and the session, started under a request id of the attempt's own,
is found running or ended, never started a second time. The course itself is a table in worker/runner/attempt_states.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ...client._async.host import AsyncHost, start_request
from ...client._async.work import AsyncRun
from ...client.files import snapshot
from ...model.errors import HoldfastError
from ...model.work.effects import Fenced, WorkerStopping
from ..telling import Telling
from . import attempt_states, backends
from .attempt_folder import Folder
from .attempt_states import Facts, next_action
from .backend_session import BackendSession, end_all, find, patiently, seconds, unseen
from .classify import Evidence, classify
from .file_evidence import BEFORE, BRIEF, keep_changes, late_changes
from .instructions import brief, worth_telling
from .verify import settle_outdated, verify, words

Json = dict[str, Any]
_KEPT_CHARS = 4096  # of it, kept with the step
_NOTES_MAX = 200  # of earlier runs, in the brief
_REFUSED = frozenset({"invalid", "not_allowed", "not_found", "no_program", "not_executable", "failed", "timeout"})


class Context(NamedTuple):
    """What all attempts of a runner share."""

    host: AsyncHost
    tell: Telling
    leaving: asyncio.Event
    environ: Mapping[str, str]
    sessions: dict[str, str]  # session id -> task, of what runs now
    acts_as: str | None = None


class Attempt:
    """`live()` until it is over, or no longer ours."""

    def __init__(self, context: Context, made: Json, run: AsyncRun) -> None:
        self.context, self.made, self.run = context, made, run
        self.host, self.work = context.host, context.host.work
        self.task = f"{made['project']}/{made['task_id']}"
        self.folder = Folder(self.host.home.path, run.id)
        self.facts = Facts(checks=len(made["checks"]))
        self.plan: Json = {}  # what `prepare` decided
        self.end: Json = {}  # how the backend ended
        self.results: list[Json] = []
        self.refused: str | None = None
        self.doubt: str | None = None
        self.lost: Fenced | None = None
        self.session: BackendSession | None = None
        self.timed_out = False
        self.verified: int | None = None  # the contract's version that was
        self.cleared_at: float | None = None

    async def live(self) -> None:
        action, event = "begin", "taken"
        while (action := next_action(action, event, self.facts)) != "end":
            act: Callable[[], Awaitable[str]] = getattr(self, f"_{action}")
            try:
                event = await act()
            except WorkerStopping:
                event = "leaving"
            except Fenced as e:
                self.lost = e
                event = await self._who_took_it()
            if self.context.leaving.is_set() and event not in attempt_states.ALWAYS:
                self.run.leaving = True  # no further step is begun

    # -- the actions, in their order ---------------------------------------------------------------------------------

    async def _prepare(self) -> str:
        self.plan = await self.run.step("attempt:prepare", self._decide, effect="idempotent")
        event = "taken_over" if self.run.resumed else "taken"
        self._tell(event, n=self.made["n"], backend=self.plan["backend"])
        return "missing" if self.plan["missing"] else "prepared"

    async def _decide(self) -> Json:
        """Which backend, and how the files are before it begins; the brief that it will be given."""
        shown = await patiently(lambda: self.work.call("task_show", task=self.task))
        earlier = [a for a in shown["attempts"] if a["n"] < self.made["n"]]
        rows = [r for r in await self.work.call("backend_ls") if not r.get("builtin")]
        name = self.made["backend"] or self._choose(
            attempt_states.counted(earlier, shown["events"], self.made["n"]), rows
        )
        backend = backends.find(name, rows, self.context.environ)
        await self.work.call("attempt_note", run=self.run.id, epoch=self.run.epoch, backend=name)
        root = self.made["root"]
        values = self._values()
        argv = backends.fill(backend.argv, values)
        plan: Json = {
            "host": await self._here(),
            "backend": name,
            "argv": argv,
            "env": dict(backend.env),
            "terminal": backend.terminal,
            "timeout_s": self.made["contract"]["timeout_s"] or backend.timeout_s or self.made["policy"]["timeout_s"],
            "written_by": sorted({*self.made["written_by"], *(r["by"] for r in rows if r["name"] == name)}),
            "missing": backends.missing(argv, {**self.context.environ, **backend.env}, root),
        }
        if not plan["missing"]:
            await self._photograph(shown, earlier)
        return plan

    def _choose(self, earlier: list[Json], rows: list[Json]) -> str:
        known = [
            *(r["name"] for r in rows),
            *(n for n in ("claude", "codex") if backends.missing([n], self.context.environ, "/") is None),
        ]
        order = self.made["backends"] or known or ["claude"]
        tried = [(a["backend"], (a["classification"] or {}).get("failure_type")) for a in earlier]
        return (
            attempt_states.choose(order, tried, int(self.made["policy"]["retry"].get("escalate_after", 1))) or order[0]
        )

    async def _photograph(self, shown: Json, earlier: list[Json]) -> None:
        contract = self.made["contract"]
        packed = await asyncio.to_thread(
            snapshot.take, self.made["root"], contract["scope"], contract["artifacts"], self.host.home.path
        )
        await self.run.put(BEFORE, packed, media="application/zstd")
        notes: list[Json] = []
        for one in [a["run_id"] for a in earlier if a["run_id"]] + [self.run.id]:
            notes += [e for e in await self.work.call("log_read", run=one) if worth_telling(e)]
        now = {**{k: self.made[k] for k in ("n", "root", "checks")}, "run": self.run.id}
        await self.run.put(BRIEF, brief(shown, earlier, notes[-_NOTES_MAX:], now), media="text/markdown")

    async def _start(self) -> str:
        self._leave_if_asked()
        if self.plan["host"] != await self._here() and await self._begun("attempt:start"):
            self.doubt = f"its session was started on another host, {self.plan['host']}: only that knows how it stands"
            return "elsewhere"
        if self.run.resumed:
            self.doubt = await unseen(
                self.host, attempt_states.request_of(self.run.id), self.task, self._session_name()
            )
            if self.doubt:
                return "elsewhere"
        made = await self.run.step("attempt:start", self._spawn, effect="idempotent")
        if made.get("refused"):
            self.refused = made["refused"]
            return "refused"
        self.session = BackendSession(self.host, made["session"], made["name"])
        self.context.sessions[self.session.id] = self.task
        await self.work.call(
            "run_session", run=self.run.id, session=self.session.id, generation=1, from_offset=0, epoch=self.run.epoch
        )
        pid = ((await self._status()) or {}).get("pid")
        self._tell("adopted" if self.run.resumed else "started", session=made["name"], pid=pid)
        return "started"

    async def _spawn(self) -> Json:
        """Start it once, however often this is asked: the request's id is the attempt's."""
        texts = await patiently(lambda: self.run.get(BRIEF))
        self.folder.write(self.made["contract"] | {"task": self.task, "version": self.made["contract_version"]}, texts)
        values, plan = self._values(), self.plan
        env = {
            **plan["env"],
            "HOLDFAST_TASK": self.task,
            "HOLDFAST_RUN": self.run.id,
            "HOLDFAST_CONTRACT": values["contract"],
            "HOLDFAST_BRIEF": values["brief"],
            "HOLDFAST_ATTEMPT": str(self.made["n"]),
            "HOLDFAST_PROJECT": self.made["project"],
            "HOLDFAST_PROJECT_ROOT": self.made["root"],
        }
        name = self._session_name()
        for called in (name, f"{name[:40]}.{self.run.id[-8:]}"):
            request = start_request(
                backends.command(plan["argv"], values["brief"], plan["terminal"]),
                name=called,
                cwd=self.made["root"],
                env=env,
                pipes=not plan["terminal"],
                size=None,
                restart="never",
                idle_ttl=None,
                acts_as=self.context.acts_as,
                why=f"attempt {self.made['n']} at task {self.task}",
                pids_max=None,
                memory_max=None,
                written_by=plan.get("written_by") or (),
            ) | {"request": attempt_states.request_of(self.run.id), "brief": True}
            try:
                made = await patiently(partial(self.host.call, "run", **request))
                return {"session": made["id"], "name": made["name"]}
            except HoldfastError as e:
                if e.code not in _REFUSED and not (e.code == "conflict" and called == name):
                    raise
                resumed = e.code in _REFUSED and self.run.resumed
                there = await find(self.host, attempt_states.request_of(self.run.id)) if resumed else None
                if there is not None:  # begun by a runner of another operator
                    return {"session": there.id, "name": there.name}
                if e.code in _REFUSED:
                    return {"refused": e.line()}
        raise AssertionError("unreachable")

    async def _wait(self) -> str:
        """Until it ends, its time is up, or this runner is to leave. Whoever takes over counts the same time."""
        found = await self._status()
        if found is None or found["state"] != "live" or found["exit"] is not None:
            return "exited"
        if await self._begun("attempt:stop"):
            return "time_up"
        assert self.session is not None
        left = float(self.plan["timeout_s"]) - (seconds(found["observed_at"]) - seconds(found["created_at"]))

        def still() -> None:
            self.run.check()  # whether the lease is ours; the heartbeat learns it first
            self._leave_if_asked()

        return await self.session.ended(max(0.0, left), self.context.leaving, still)

    async def _stop(self) -> str:
        self._tell("time_up", timeout_s=float(self.plan["timeout_s"]))
        await self.run.step("attempt:stop", self._out_of_time, effect="idempotent")
        self.timed_out = True
        await self._note_end()
        return "stopped"

    async def _clear(self) -> str:
        """What the program left running would go on changing files: an attempt's end is the end of its tree."""
        await self._note_end()
        found = await self._status()
        if found is not None and found["state"] in ("live", "lost"):
            left = len(found.get("processes") or [])
            if left:
                self._tell("ended_leftovers", left=left, backend=self.plan["backend"])
            await self._end_session("the backend has ended")
        return "cleared"

    async def _note_end(self) -> None:
        self.end = await self.run.step("attempt:end", self._ending, effect="none")
        code, signal, self.timed_out = self.end["exit_code"], self.end["signal"], self.end["timed_out"]
        self.facts = self.facts._replace(ok=code == 0 and not self.timed_out)
        how = signal or (f"exit code {code}" if code is not None else "nobody saw how")
        self._tell("exited", how=how, backend=self.plan["backend"])

    async def _ending(self) -> Json:
        found = await self._status() or {}
        seen = found.get("exit") or {}
        tail = "" if self.session is None or not found else await self.session.tail(found)
        return {
            "exit_code": seen.get("code"),
            "signal": seen.get("signal"),
            "timed_out": self.timed_out,
            "known": bool(seen.get("known")),
            "state": found.get("state", "gone"),
            "tail": tail[-_KEPT_CHARS:],
        }

    async def _compare(self) -> str:
        counts = dict(await self.run.step("attempt:compare", self._changes, effect="idempotent"))
        self.cleared_at = counts.pop("at", None)
        self.facts = self.facts._replace(changed=sum(counts.values()))
        self._tell("changes", **counts)
        return "compared"

    async def _changes(self) -> Json:
        """What is verified `at` that time or later is what the backend left: nothing of it runs any more."""
        artifacts = self.made["contract"]["artifacts"]
        return {"at": time.time(), **await keep_changes(self.host, self.run.id, artifacts, self.run.epoch)}

    async def _verify(self) -> str:
        """By the contract in force now, which may have been changed since the attempt began."""
        self._leave_if_asked()
        asked = await self.work.call("task_show", task=self.task)
        key = f"attempt:verify:{asked['contract_version']}"
        await settle_outdated(self.work, self.run.id, self.run.epoch, key)
        self._tell("verifying", commands=words(asked["checks"]))

        async def commands() -> list[Json]:
            return await verify(
                self.host,
                asked,
                n=self.made["n"],
                run=self.run.id,
                epoch=self.run.epoch,
                acts_as=self.context.acts_as,
                since=self.cleared_at,
                tell=self._tell,
            )

        self.results = await self.run.step(key, commands, effect="idempotent")
        self.verified = asked["contract_version"]
        record = await self.work.call(
            "task_verified",
            task=self.task,
            run=self.run.id,
            epoch=self.run.epoch,
            results=self.results,
            request=f"{self.run.id}:{key}",
        )
        self.facts = self.facts._replace(passed=bool(record["passed"]))
        self._tell("verified", result="passed" if record["passed"] else "failed")
        return "verified"

    # -- the ends ----------------------------------------------------------------------------------------------------

    async def _accept(self) -> str:
        outcome = {"backend": self.plan["backend"], "changed": self.facts.changed, "timed_out": self.timed_out}
        try:
            await self.work.call(
                "task_done",
                task=self.task,
                run=self.run.id,
                epoch=self.run.epoch,
                outcome=outcome,
                request=f"{self.run.id}:done",
            )
        except HoldfastError as e:
            if e.code == "in_doubt":
                self.doubt = e.message
                return "in_doubt"
            asked = await self.work.call("task_show", task=self.task)
            if e.code != "failed" or asked["contract_version"] == self.verified:
                raise
            self.facts = self.facts._replace(passed=None)
            return "outdated"
        self._over("done")
        self._tell("done", backend=self.plan["backend"])
        return "accepted"

    async def _reject(self) -> str:
        shown = await self.work.call("task_show", task=self.task)
        before = attempt_states.counted(shown["attempts"], shown["events"], self.made["n"])
        earlier = [a["classification"] for a in before if a["classification"]]
        found = classify(self._evidence(), earlier, int(self.made["policy"]["retry"]["stuck_after"]))
        if self.refused:
            found |= {"failure_detail": self.refused[:300], "suggested_focus": "make its start possible first"}
        told = await self.work.call(
            "task_fail",
            task=self.task,
            run=self.run.id,
            epoch=self.run.epoch,
            classification=found,
            request=f"{self.run.id}:failed",
        )
        self._over("failed")
        about = {k: found[k] for k in ("failure_type", "failure_detail", "suggested_focus", "convergence")}
        blocked = told["status"] == "blocked"
        self._tell("blocked" if blocked else "failed", **about, why=told.get("why") or "", backend=self.plan["backend"])
        return "rejected"

    def _evidence(self) -> Evidence:
        if self.refused:
            return Evidence(exit_code=1, tail=self.refused)
        end = self.end
        return Evidence(
            exit_code=end.get("exit_code"),
            signal=end.get("signal"),
            known=bool(end.get("known")),
            timed_out=self.timed_out,
            timeout_s=self.plan.get("timeout_s"),
            changed=self.facts.changed,
            tail=str(end.get("tail") or ""),
            verification=self.results,
            missing=self.plan.get("missing"),
        )

    async def _block(self) -> str:
        found = classify(Evidence(in_doubt=self.doubt or "unknown"))
        await self.work.call(
            "task_block",
            task=self.task,
            epoch=self.run.epoch,
            classification=found,
            why=self.doubt,
            request=f"{self.run.id}:blocked:{self.run.epoch}",
        )
        self._over("active")
        self._tell("blocked", failure_type="in_doubt", failure_detail=self.doubt, why="settle it", convergence="first")
        return "blocked"

    async def _leave(self) -> str:
        await self.run.close()
        self._tell("left")
        return "left"

    async def _abandon(self) -> str:
        """The task was cancelled: nothing of it goes on, and what it did is kept."""
        await self.run.close()
        # All of them, also one that was being started in that moment, and its verification's.
        await end_all(self.host, attempt_states.request_of(self.run.id), "its task was cancelled")
        await self._end_session("its task was cancelled")
        await late_changes(self.host, self.run.id, self.made["contract"]["artifacts"])
        self._over("cancelled")
        self._tell("cancelled")
        return "abandoned"

    async def _drop(self) -> str:
        await self.run.close()
        self._tell("dropped", message=self.lost.message if self.lost else "")
        return "dropped"

    # -- helpers -----------------------------------------------------------------------------------------------------

    async def _who_took_it(self) -> str:
        """Fenced: because the task was cancelled or begun anew, or because somebody else goes on with it."""
        shown = await patiently(lambda: self.work.call("task_show", task=self.task))
        mine = next((a for a in shown["attempts"] if a["run_id"] == self.run.id), None)
        return "cancelled" if mine is not None and mine["outcome"] == "cancelled" else "fenced"

    async def _out_of_time(self) -> Json:
        return await self._end_session("its time is up")

    async def _end_session(self, why: str) -> Json:
        return {} if self.session is None else await self.session.end(why)

    async def _here(self) -> str:
        return str((await patiently(partial(self.host.call, "ping")))["host"]["id"])

    async def _begun(self, key: str) -> bool:
        return await self.work.call("step_find", run=self.run.id, key=key) is not None

    async def _status(self) -> Json | None:
        """The session as it is now; None if there is none, or it was removed."""
        return None if self.session is None else await self.session.status()

    def _leave_if_asked(self) -> None:
        if self.context.leaving.is_set():
            raise WorkerStopping

    def _session_name(self) -> str:
        return attempt_states.session_name(self.made["project"], self.made["task_id"], self.made["n"])

    def _values(self) -> dict[str, str]:
        return {
            "contract": self.folder.contract,
            "brief": self.folder.brief,
            "task": self.task,
            "run": self.run.id,
            "attempt": str(self.made["n"]),
            "root": self.made["root"],
            "project": self.made["project"],
        }

    def _over(self, state: str) -> None:
        """The attempt has ended in the store: no lease is left to renew, no file to keep for its backend."""
        self.run.ended(state)
        self.folder.remove()
        if self.session is not None:
            self.context.sessions.pop(self.session.id, None)

    def _tell(self, event: str, **facts: Any) -> None:
        self.context.tell(event, task=self.task, run=self.run.id, attempt=self.made["n"], **facts)
