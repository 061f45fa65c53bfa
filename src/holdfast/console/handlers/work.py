"""The work over HTTP: projects and tasks, runs with their history, artifacts and checkpoints, the brief, the report."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from ...model.durations import moment_s
from ...model.errors import not_found
from ...model.limits import BRIEF_TOKENS, WHY_MAX
from ..http.routes import HttpCall, Nothing, Route
from ..page import ALWAYS
from . import work_types as types

Json = dict[str, Any]
_Why = Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None
_WEEK_S = 7 * 86400.0
VERBS = ("start", "block", "unblock", "pause", "retry", "cancel", "done")


class OfProject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: str
    status: str | None = None
    phase: str | None = None


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int | None = None


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`question` goes with block: what somebody is to answer. `why` of unblock is the answer."""

    why: _Why = None
    question: _Why = None


class OfRuns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    task: str | None = None
    state: str | None = None
    limit: int = 100


class After(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: int = 0
    at: int | None = None
    limit: int = 1000


class Two(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two checkpoints by number; without b, a with the one before it."""

    a: int
    b: int | None = None


class Settle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happened to a step in doubt, and how that is known."""

    outcome: Literal["done", "not_done", "failed"]
    evidence: _Why = None
    result: Any = None


class Settled(msgspec.Struct, frozen=True):
    run: str
    key: str
    outcome: str


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task (PROJECT/ID), a run, or a project."""

    task: str | None = None
    project: str | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = BRIEF_TOKENS


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Times (RFC 3339), or how long ago (7d, which is also the default)."""

    since: str | None = None
    until: str | None = None
    project: str | None = None
    task: str | None = None
    format: Literal["json", "html"] = "json"


def _task(call: HttpCall[Any, Any]) -> str:
    return f"{call.word('project')}/{call.word('task')}"


async def projects(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.call("project_ls")


async def project(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.call("project_show", project=call.word("project"))


async def tasks(call: HttpCall[OfProject, Nothing]) -> Any:
    asked = call.query
    return await call.host.work.call("task_ls", project=asked.project, status=asked.status, phase=asked.phase)


async def task(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.call("task_show", task=_task(call))


async def contract(call: HttpCall[Version, Nothing]) -> Any:
    return await call.host.work.call("task_versions", task=_task(call), version=call.query.version)


async def change(call: HttpCall[Nothing, Change]) -> Any:
    """Done runs the verification first, and the others change no more than the record."""
    verb, todo, why = call.word("verb"), call.host.work.tasks, call.body.why
    if verb not in VERBS:
        raise not_found(f"there is no {verb[:40]!r} for a task", "one of " + ", ".join(VERBS))
    if verb == "block":
        await todo.block(_task(call), question=call.body.question, why=why)
    else:
        await getattr(todo, verb)(_task(call), why=why)
    return await call.host.work.call("task_show", task=_task(call))


async def runs(call: HttpCall[OfRuns, Nothing]) -> Any:
    asked = call.query
    return await call.host.work.call("run_ls", task=asked.task, state=asked.state, limit=asked.limit)


async def run(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.status(call.word("run"))


async def history(call: HttpCall[After, Nothing]) -> Any:
    asked = call.query
    return await call.host.work.call("history", run=call.word("run"), after=asked.after, at=asked.at, limit=asked.limit)


async def artifacts(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.call("artifact_ls", run=call.word("run"))


async def artifact(call: HttpCall[Nothing, Nothing]) -> Any:
    """Its bytes, to be saved: whatever they are, a browser does not open them here."""
    content = await call.host.work.artifact(call.word("run"), call.word("name"))
    headers = {
        **ALWAYS,
        "content-disposition": "attachment",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return Response(content, 200, headers, "application/octet-stream")


async def checkpoints(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.call("checkpoint_ls", run=call.word("run"))


async def checkpoint(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.work.call("checkpoint_show", run=call.word("run"), seq=int(call.word("seq")))


async def compare(call: HttpCall[Two, Nothing]) -> Any:
    return await call.host.work.call("checkpoint_diff", run=call.word("run"), seq=call.query.a, other=call.query.b)


async def settle(call: HttpCall[Nothing, Settle]) -> Any:
    key, asked = call.word("key"), call.body
    await call.host.work.settle(call.word("run"), key, asked.outcome, evidence=asked.evidence, result=asked.result)
    return Settled(call.word("run"), key, asked.outcome)


async def resume(call: HttpCall[Target, Nothing]) -> Any:
    asked = call.query
    return await call.host.work.resume(asked.task, project=asked.project, max_tokens=asked.max_tokens)


async def report(call: HttpCall[Span, Nothing]) -> Any:
    from ...client.reporting import html_page

    asked, now = call.query, time.time()
    since = moment_s(asked.since, now) if asked.since else None if asked.task else now - _WEEK_S
    until = moment_s(asked.until, now) if asked.until else None
    found = await call.host.work.call(
        "report",
        since=since,
        until=until,
        project=asked.project,
        task=asked.task,
        everything=asked.project is None and asked.task is None,
    )
    if asked.format == "json":
        return found
    headers = {
        **ALWAYS,
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(html_page(found), 200, headers, "text/html; charset=utf-8")


_TASK, _RUN = "/api/tasks/{project}/{task}", "/api/runs/{run}"
ROUTES = [
    Route("GET", "/api/projects", "All projects.", list[types.Project], projects),
    Route("GET", "/api/projects/{project}", "Where a project stands.", types.ProjectState, project),
    Route("GET", "/api/tasks", "A project's tasks.", list[types.Task], tasks, query=OfProject),
    Route("GET", _TASK, "A task whole.", types.TaskWhole, task),
    Route("GET", _TASK + "/contract", "A version of its contract.", types.ContractAt, contract, query=Version),
    Route(
        "POST",
        _TASK + "/{verb}",
        "Start, block, unblock, pause, retry, cancel it; done verifies first.",
        types.TaskWhole,
        change,
        body=Change,
    ),
    Route("GET", "/api/runs", "The newest runs first.", list[types.RunRef], runs, query=OfRuns),
    Route("GET", _RUN, "Where a run stands.", types.Run, run),
    Route("GET", _RUN + "/history", "What was thought, done and seen.", types.History, history, query=After),
    Route("GET", _RUN + "/artifacts", "What a run produced.", list[types.Artifact], artifacts),
    Route("GET", _RUN + "/artifacts/{name:path}", "An artifact's content.", bytes, artifact),
    Route("GET", _RUN + "/checkpoints", "A run's checkpoints.", list[types.Checkpoint], checkpoints),
    Route("GET", _RUN + "/checkpoints/diff", "What changed from one to another.", types.Compared, compare, query=Two),
    Route("GET", _RUN + "/checkpoints/{seq:int}", "One with its state.", types.Checkpoint, checkpoint),
    Route(
        "POST", _RUN + "/steps/{key:path}/settle", "Say what became of a step in doubt.", Settled, settle, body=Settle
    ),
    Route("GET", "/api/resume", "The brief for whoever goes on.", types.Brief, resume, query=Target),
    Route("GET", "/api/report", "What was done in a time span.", types.Report, report, query=Span),
]
