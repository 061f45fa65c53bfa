"""Made from _async/exec_step.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import time

from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.times import rfc3339
from ...model.work.effects import StepInDoubt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .host import Host, Session

    Json = dict[str, Any]

_TAIL_BYTES = 4096  # of the output, kept with the step: what a person looks at first; the session's log has all of it
_ACTION_MAX = 2000  # characters of a command, for whoever has to settle it; its hash tells it apart
_KEPT = ("exec_id", "exit_code", "start", "end", "duration_ms", "cwd")


class ExecSteps:
    """A part of Work, which gives it `call` and `_host`."""

    _host: Host
    call: Callable[..., Any]

    def exec(
        self,
        run: str,
        key: str,
        session: Session | str,
        *command: str,
        effect: str = "unsafe",
        timeout: float | None = None,
        why: str | None = None,
        epoch: int | None = None,
    ) -> Json:
        """Run a command as a step, or give what it gave before. One that was begun and still runs is waited for."""
        where = session if isinstance(session, str) else session.id
        plan = self.exec_begin(run, key, where, list(command), effect=effect, why=why, epoch=epoch)
        if plan["decision"] == "reuse":
            return {**plan["result"], "state": "exited", "decision": "reuse"}
        result = self.exec_done(plan, list(command), timeout=timeout, why=why)
        return {**self.exec_end(plan, result), "decision": plan["decision"]}

    def exec_begin(
        self,
        run: str,
        key: str,
        session: str,
        words: list[str],
        *,
        effect: str = "unsafe",
        why: str | None = None,
        epoch: int | None = None,
    ) -> Json:
        """The intent. `decision`: `execute` it under `exec_id`, `adopt` the one that runs, or `reuse` the result."""
        if not words:
            raise invalid("no command to run", "give the command's words")
        plan: Json = {"run": run, "key": key, "session": session, "effect": effect, "epoch": epoch, "args": words}
        before = self._unfinished(run, key, epoch)
        if before is not None and before["args"] not in (None, words):
            raise HoldfastError("conflict", f"step {key!r} was begun with another command", "use another key")
        if before is not None and self._settle(before, epoch) == "running":
            plan |= {"session": before["session"], "exec_id": before["exec_id"]}
            return {**plan, "decision": "adopt"}
        seen = self._host.call("status", session=session)
        action = f"exec in {seen['name']}: {' '.join(words)}"[:_ACTION_MAX]
        plan |= {"session": seen["id"], "exec_id": ids.new("exe_"), "action": action}
        begun = self.call(
            "step_begin",
            run=run,
            key=key,
            effect=effect,
            args=words,
            epoch=epoch,
            why=why,
            action=action,
            session=seen["id"],
            exec_id=plan["exec_id"],
        )
        if begun["decision"] == "in_doubt":
            raise doubt(begun["step"])
        if begun["decision"] == "execute":
            self.call(
                "run_session",
                run=run,
                session=seen["id"],
                generation=seen["generation"],
                from_offset=seen["output"]["end"],
                epoch=epoch,
            )
        return {**plan, "decision": begun["decision"], "result": begun["result"]}

    def exec_done(
        self,
        plan: Json,
        words: list[str],
        *,
        timeout: float | None = None,
        why: str | None = None,
        start_only: bool = False,
    ) -> Json:
        """The command's result, as the host tells it; a daemon that dies meanwhile is not noticed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        known: Json = {"session": plan["session"], "exec_id": plan["exec_id"]}
        typed = plan["decision"] == "adopt"
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                if typed:
                    wait = 0.0 if start_only else left
                    result: Json = self._host.call("exec_result", wait=True, timeout=wait, **known)
                else:
                    result = self._host.call(
                        "exec",
                        words=words,
                        why=why,
                        step=True,
                        timeout=left,
                        start_only=start_only,
                        standing=timeout is not None,
                        **known,
                    )
                return result
            except HoldfastError as e:
                if e.code == "host_gone":
                    typed = True
                elif typed and e.code == "not_found" and plan["decision"] == "execute":
                    typed = False  # it had not been typed yet
                else:
                    self.exec_refused(plan, e)
                    raise

    def exec_end(self, plan: Json, result: Json) -> Json:
        """The outcome; a command that goes on leaves the step open, to be adopted by whoever asks next."""
        told = {**{k: result[k] for k in _KEPT}, "session": plan["session"], "output": self._tail(plan, result)}
        if result["state"] in ("exited", "shell_ended"):
            self._conclude(plan, result, told)
        return {**told, "state": result["state"], "prompt": result["prompt"]}

    def _conclude(self, plan: Json, result: Json, told: Json) -> None:
        step: Json = {"run": plan["run"], "key": plan["key"], "epoch": plan["epoch"]}
        if plan["decision"] == "adopt":
            # Begun by another worker, or under a lease that is over: the host's record is the evidence.
            before = self._unfinished(plan["run"], plan["key"], plan["epoch"])
            if before is not None and self._settle(before, plan["epoch"], told) == "unknown":
                raise doubt(before)
        elif result["exit_code"] == 0:
            about = {k: plan[k] for k in ("effect", "args", "action")} if plan["effect"] == "none" else {}
            self.call("step_end", **step, **about, result=told)
        elif plan["effect"] != "none":
            known = result["exit_code"] is not None
            self.call("step_fail", **step, error=_ending(result), known=known)

    def exec_refused(self, plan: Json, error: HoldfastError) -> None:
        """The host did not run it: said so in the step, if the host is sure that it never will."""
        if plan["decision"] != "execute" or plan["effect"] == "none":
            return
        try:
            now = str(rfc3339(time.time()))
            if (self._outcome(plan["session"], plan["exec_id"], now))["known"] == "never":
                step = {"run": plan["run"], "key": plan["key"], "epoch": plan["epoch"]}
                self.call("step_fail", **step, error=f"not begun: {error.message}"[:2000], known=True)
        except HoldfastError:
            pass  # the step stays open, and is asked about again by whoever comes next

    def located(self, sessions: Any) -> Any:
        """Sessions as a checkpoint keeps them: what is missing of generation and offset is asked of the host, now.

        Each is a name or id, or an object with a `session`. One that the host does not know stays as it was given.
        """
        if not isinstance(sessions, (list, tuple)):
            return sessions
        found: list[Any] = []
        for given in sessions:
            told: Any = {"session": given} if isinstance(given, str) else given
            if not isinstance(told, dict) or not isinstance(told.get("session"), str):
                found.append(given)
                continue
            if told.get("generation") is None or told.get("offset") is None:
                try:
                    seen = self._host.call("status", session=told["session"])
                except HoldfastError:
                    found.append(given)
                    continue
                known = {"session": seen["id"], "generation": seen["generation"], "offset": seen["output"]["end"]}
                said = {k: v for k, v in told.items() if v is not None and k != "session"}
                told = {**known, **said}
            found.append(told)
        return found

    def settle_execs(self, run: str, epoch: int | None = None) -> list[str]:
        """Settle what is in doubt and was a command in a session; the keys that stay in doubt."""
        doubts = self.call("step_ls", run=run, state="in_doubt")
        unknown = ("running", "unknown")
        return [s["key"] for s in doubts if not s["exec_id"] or self._settle(s, epoch) in unknown]

    def settle_exec(self, run: str, key: str, epoch: int | None = None) -> str:
        """Settle one step by the record of its session's host: `done`, `failed`, `not_done`; else it raises."""
        step = self._unfinished(run, key, epoch)
        if step is None:
            raise HoldfastError("conflict", f"step {key!r} is no command whose end is open", "hold step ls RUN")
        outcome = self._settle(step, epoch)
        if outcome == "running":
            raise HoldfastError(
                "busy",
                f"the command of step {key!r} still runs as {step['exec_id']}",
                f"hold wait {step['session']} --for done={step['exec_id']}",
            )
        if outcome == "unknown":
            raise doubt(step)
        return outcome

    def _unfinished(self, run: str, key: str, epoch: int | None) -> Json | None:
        """The step, if it is a command whose end is open, and ours to ask about: not while a worker is at it."""
        step: Json | None = self.call("step_find", run=run, key=key)
        if step is None or not step["exec_id"] or step["state"] not in ("in_doubt", "open"):
            return None
        if step["state"] == "open" and step["epoch"] != epoch:
            held = self.call("run_status", run=run)
            if epoch is not None or (held["leased"] and not held["worker"].startswith("hand:")):
                return None
        return step

    def _settle(self, step: Json, epoch: int | None, told: Json | None = None) -> str:
        """done | failed | not_done, written; running or unknown, and nothing is."""
        try:
            found = self._outcome(step["session"], step["exec_id"], step["begun_at"])
        except HoldfastError:
            return "unknown"  # the session is gone, or on another host
        if found["known"] in ("running", "unknown"):
            return str(found["known"])
        outcome = "not_done" if found["known"] == "never" else "done" if found["exit_code"] == 0 else "failed"
        if told is None and outcome == "done":
            told = {**{k: found[k] for k in _KEPT}, "session": step["session"], "output": self._tail(step, found)}
        said = "it was never begun" if outcome == "not_done" else _ending(found)
        self.call(
            "step_settle",
            run=step["run"],
            key=step["key"],
            outcome=outcome,
            epoch=epoch,
            result=told if outcome == "done" else None,
            evidence=f"{said}, by the record of {step['exec_id']} in {step['session']}",
        )
        return outcome

    def _outcome(self, session: str, exec_id: str, since: str) -> Json:
        found: Json = self._host.call("exec_outcome", session=session, exec_id=exec_id, since=since)
        return found

    def _tail(self, plan: Json, result: Json) -> str:
        """The end of its output, as far as the session still has it."""
        from .host import Session, plain_text

        start, end = result["start"], result["end"]
        if start is None:
            return ""
        session = Session(self._host, plan["session"], plan["session"])
        parts = [chunk.data for chunk in session.output(max(start, end - _TAIL_BYTES), end=end)]
        return plain_text(b"".join(parts))


def _ending(result: Json) -> str:
    code = result["exit_code"]
    return "its exit code is unknown" if code is None else f"exit code {code}"


def doubt(report: Json) -> StepInDoubt:
    """What is known of a step in doubt, and how to settle it."""
    return StepInDoubt(
        f"step {report['key']!r} ({report['effect']}) was begun under epoch {report['epoch']}"
        " and its outcome is unknown",
        f"find out what happened, then: hold step settle {report['run']} {report['key']} --done|--not-done"
        " --evidence TEXT",
        report,
    )
