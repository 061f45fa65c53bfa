"""Made from _async/resume.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import os

from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import (
    BRIEF_SESSIONS,
    BRIEF_TAIL_BYTES,
    BRIEF_TOKENS,
    CHECK_TIMEOUT_MAX_S,
    CLAIM_TAIL_BYTES,
    CLAIM_TAIL_LINES,
    CLAIM_TIMEOUT_S,
)
from .. import claim_files
from ..current_project import context
from .exec_step import ExecSteps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Briefs(ExecSteps):
    """A part of Work, which gives it `call` and `_host`."""

    # -- claims ------------------------------------------------------------------------------------------------------

    def add_claim(
        self,
        *,
        task: str | None = None,
        run: str | None = None,
        port: int | None = None,
        file: str | None = None,
        pid: int | None = None,
        command: str | None = None,
        session: str | None = None,
        timeout: float = CLAIM_TIMEOUT_S,
        project: str | None = None,
    ) -> Json:
        """Record what one believes, with what is true now: `port` (served by `session`), `file`, `pid`, `command`, or
        a `session` alone. The claim as it is kept, looked at once (a command is not run for that).
        """
        where = context(project)
        kind, spec = claimed(port, file, pid, command, session, timeout, where["cwd"] or "/")
        if kind == "file" and not self._host.local_files:
            words = "a file is claimed where it can be looked at, not over HTTP"
            raise HoldfastError("not_allowed", words, "hold claim add --file, in a session on that machine")
        whose = self._host.call("status", session=session) if session is not None else None
        if whose is not None:
            spec["session"] = whose["id"]
        facts = self._facts([port] if port else [], [pid] if pid else [])
        seen = seen_now(kind, spec, facts, whose)
        made: Json = self.call(
            "claim_add", kind=kind, spec=spec, seen=seen, task=task, run=run, host=facts["host"], **where
        )
        return made if kind == "command" else (self._checked([made], commands=False))[0]

    def claims(self, *, task: str | None = None, run: str | None = None, project: str | None = None) -> list[Json]:
        """As they were made and last looked at; oldest first."""
        found: list[Json] = self.call("claim_ls", task=task, run=run, **context(project))
        return found

    def drop_claim(self, claim: str) -> None:
        self.call("claim_rm", claim=claim)

    def check_claims(
        self, *, task: str | None = None, run: str | None = None, project: str | None = None, commands: bool = True
    ) -> list[Json]:
        """Compare each with the kernel now, and keep how that ended. Without `commands` those are not run."""
        return self._checked(self.claims(task=task, run=run, project=project), commands=commands)

    def _checked(self, claims: list[Json], *, commands: bool) -> list[Json]:
        looked = self._compare(claims, commands=commands)
        results = [{k: c[k] for k in ("id", "state", "said", "evidence")} for c in looked if c.pop("looked", False)]
        if results:
            at = (self.call("claim_checked", results=results))["at"]
            ids = {r["id"] for r in results}
            looked = [{**c, "checked_at": at} if c["id"] in ids else c for c in looked]
        return looked

    def _compare(self, claims: list[Json], *, commands: bool) -> list[Json]:
        """The claims with the state that they are in now; `looked` marks those that were looked at."""
        from ...work.claims.rules import judge

        if not claims:
            return []
        facts = self._facts(
            [c["spec"]["port"] for c in claims if c["kind"] == "port"],
            [c["spec"]["pid"] for c in claims if c["kind"] == "pid"],
        )
        sessions: dict[str, Json] = {}
        told = []
        for claim in claims:
            looked = {"command": commands, "file": self._host.local_files}
            if not looked.get(claim["kind"], True):
                told.append(claim)  # as it was when it was last looked at
                continue
            now: Json = {"host": facts["host"], "boot": facts["boot"]}
            if claim["host"] in (None, facts["host"]):
                whose = claim["spec"].get("session") or claim["seen"].get("session")
                if whose is not None:
                    if whose not in sessions:
                        sessions[whose] = self._session_now(whose)
                    now |= sessions[whose]
                now |= self._seen_for(claim, facts)
            told.append({**claim, **judge(claim, now), "looked": True})
        return told

    def _seen_for(self, claim: Json, facts: Json) -> Json:
        kind, spec = claim["kind"], claim["spec"]
        if kind == "port":
            return {"ports": facts["ports"].get(str(spec["port"])) or []}
        if kind == "pid":
            return {"process": facts["pids"].get(str(spec["pid"]))}
        if kind == "file":
            return {"file": claim_files.look(spec["path"], claim["seen"])}
        if kind == "command":
            return {"command": self._try(spec, claim["by"])}
        return {}

    def _facts(self, ports: list[int], pids: list[int]) -> Json:
        facts: Json = self._host.call("facts", ports=sorted(set(ports)), pids=sorted(set(pids)))
        return facts

    def _session_now(self, session: str) -> Json:
        """Its status, and its last lines where it has ended; null where there is none any more."""
        try:
            status = self._host.call("status", session=session)
        except HoldfastError as e:
            return {"session": None, "session_error": None if e.code == "not_found" else e.message}
        tail = self._last_lines(status, CLAIM_TAIL_BYTES) if status["state"] != "live" else None
        return {"session": status, "tail": tail}

    def _last_lines(self, status: Json, most: int) -> str:
        from ...term.plain_text import to_text
        from .host import Session

        start, end = status["output"]["start"], status["output"]["end"]
        session = Session(self._host, status["id"], status["name"])
        try:
            parts = [
                chunk.data
                for chunk in session.output(max(start, end - most), end=end)
                if chunk.stream != status.get("record", "")
            ]
        except (HoldfastError, OSError):
            return ""
        lines = [line.rstrip() for line in to_text(b"".join(parts)).split("\n")]
        return "\n".join([line for line in lines if line][-CLAIM_TAIL_LINES:])

    def _try(self, spec: Json, by: str) -> Json:
        """Run a claimed command as a verification runs; the session of one that failed stays, to be looked at."""
        from .verification import verify

        if self._host.local_files and not claim_files.is_folder(spec["cwd"]):
            return {"state": "unknown", "exit_code": None, "why": f"there is no folder {spec['cwd']}"}
        checks = [{"command": spec["command"], "timeout_s": spec["timeout_s"]}]
        result = (verify(self._host, checks, cwd=spec["cwd"], name="claim", why="a claim is checked", written_by=[by]))[
            0
        ]
        if result["state"] == "passed":
            self._host.call("rm", session=result.pop("session"))
        return result

    # -- the brief ---------------------------------------------------------------------------------------------------

    def resume(
        self,
        target: str | None = None,
        *,
        project: str | None = None,
        max_tokens: int = BRIEF_TOKENS,
        form: str = "markdown",
    ) -> Json:
        """What a stranger needs to go on with a task or a run, or, without one, with the current project.

        `text` is the brief as Markdown; the rest is the same as data, with `next_action` to follow. The one that `form`
        names, `markdown` or `json`, keeps to the budget.
        """
        from ...work.briefs import budget, next_action

        if max_tokens < 1:
            raise invalid(f"a brief has room for at least one token, not {max_tokens}", "--max-tokens 2000")
        facts: Json = self.call("brief_facts", target=target, **context(project))
        focus = facts.pop("focus", None)
        if facts["of"] in ("task", "run"):
            self._enrich(facts)
        elif focus is not None:
            self._enrich(focus)
            facts |= {k: focus[k] for k in ("goal", "constraints", "acceptance", "task", "run")}
            for name in (
                "claims",
                "events",
                "plan",
                "attempts",
                "decisions",
                "paths_not_taken",
                "questions",
                "sessions",
                "asks",
                "verification",
                "open",
                "failed",
                "resume_point",
            ):
                facts[name] = focus[name]
            facts["next_action"] = next_action.decide(focus)
        else:
            facts["next_action"] = next_action.nothing(facts)
        return budget.build(facts, max_tokens, form)

    def report(
        self,
        *,
        task: str | None = None,
        project: str | None = None,
        since: float | None = None,
        until: float | None = None,
        everything: bool = False,
    ) -> Json:
        """What was done between two moments (seconds since 1970), by whom, with what result."""
        found: Json = self.call(
            "report", task=task, since=since, until=until, everything=everything, **context(project)
        )
        return found

    def prune(self, older_than: float) -> Json:
        """Forget ended work that is older than so many seconds: never what is unfinished or in doubt."""
        total: Json = {}
        while True:
            done = self.call("work_prune", older_than_s=older_than)
            more = done.pop("more")
            total = {name: total.get(name, 0) + n for name, n in done.items()}
            if not more:
                return total

    def _enrich(self, facts: Json) -> None:
        """What the kernel says of the claims, of the sessions that were used, and of who waits for an answer."""
        facts["claims"] = [
            {k: v for k, v in c.items() if k != "looked"} for c in self._compare(facts["claims"], commands=False)
        ]
        first: dict[str, Json] = {}
        for used in facts["sessions"]:
            kept = first.setdefault(used["session"], used)
            kept["from_offset"] = min(kept["from_offset"], used["from_offset"])
        facts["sessions"] = [self._session_brief(used) for used in list(first.values())[:BRIEF_SESSIONS]]
        if first:
            items = (self._host.call("inbox", all=False))["items"]
            facts["asks"] = [i for i in items if i["session"] in first and i["kind"] in ("question", "approval")]

    def _session_brief(self, used: Json) -> Json:
        from ...work.claims.rules import ended_words

        about: Json = {"session": used["session"], "generation": used["generation"], "from_offset": used["from_offset"]}
        try:
            status = self._host.call("status", session=used["session"])
        except HoldfastError as e:
            return {**about, "name": None, "said": "it is gone" if e.code == "not_found" else e.message}
        live = status["state"] == "live"
        said = f"live, {status['activity']['kind']}" if live else f"{status['state']}, {ended_words(status)}"
        return {
            **about,
            "name": status["name"],
            "state": status["state"],
            "exit": status["exit"],
            "said": said,
            "activity": status["activity"]["kind"] if live else None,
            "ports": [p["port"] for p in status["ports"]],
            "bytes": max(0, status["output"]["end"] - used["from_offset"]),
            "tail": self._last_lines(status, BRIEF_TAIL_BYTES) if status["output"]["end"] else None,
        }


def claimed(
    port: int | None,
    file: str | None,
    pid: int | None,
    command: str | None,
    session: str | None,
    timeout: float,
    cwd: str,
) -> tuple[str, Json]:
    """The kind of a claim and what it says, checked as far as that goes without looking."""
    given = {"port": port, "file": file, "pid": pid, "command": command}
    named = [kind for kind, value in given.items() if value is not None]
    if len(named) > 1 or not (named or session):
        raise invalid("a claim says one thing", "a port, a file, a pid, a command, or a session alone")
    if port is not None and not 0 < port < 65536:
        raise invalid(f"{port} is not a port", "1 to 65535")
    if pid is not None and pid < 1:
        raise invalid(f"{pid} is not a process", "a pid is a number above 0")
    if command is not None:
        if not command.strip() or "\0" in command:
            raise invalid("a claimed command is not empty, and holds no NUL", "--command 'make check'")
        if not 0 < timeout <= CHECK_TIMEOUT_MAX_S:
            raise invalid(f"a command is given up to {CHECK_TIMEOUT_MAX_S:g} s, not {timeout:g}", "--timeout 60")
        return "command", {"command": command, "cwd": cwd, "timeout_s": timeout}
    if file is not None:
        return "file", {"path": os.path.abspath(os.path.join(cwd, os.path.expanduser(file)))}
    if port is not None:
        return "port", {"port": port}
    return ("pid", {"pid": pid}) if pid is not None else ("session", {})


def seen_now(kind: str, spec: Json, facts: Json, session: Json | None) -> Json:
    """What is remembered of the moment in which a claim is made."""
    seen: Json = {}
    if session is not None:
        seen = {
            "session": session["id"],
            "session_name": session["name"],
            "generation": session["generation"],
            "pid": session["pid"],
            "command": " ".join(session["command"])[:500],
        }
    if kind == "port":
        rows = facts["ports"].get(str(spec["port"])) or []
        mine = [row for row in rows if session is None or row.get("session") == session["id"]]
        for row in mine[:1]:
            names = ("session", "session_name", "generation", "pid", "started", "command", "address")
            seen |= {k: row[k] for k in names if row.get(k) is not None}
    elif kind == "pid":
        process = facts["pids"].get(str(spec["pid"]))
        if process is None or process.get("hidden"):
            raise not_found(f"there is no process {spec['pid']}", "hold ps SESSION lists them")
        seen |= {k: v for k, v in process.items() if k != "state" and v is not None} | {"boot": facts["boot"]}
    elif kind == "file":
        found = claim_files.look(spec["path"], {})
        if found.get("error") or not found.get("exists"):
            raise not_found(f"cannot read {spec['path']}: {found.get('error') or 'it is not there'}", "name a file")
        seen |= found
    return seen
