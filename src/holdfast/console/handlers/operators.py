"""Operators and the journal over HTTP: who may act here, and proof of who did."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ...model.durations import duration_s
from ...model.limits import WHY_MAX
from ..http.routes import Because, HttpCall, Nothing, Route
from .sessions import All, Page, Timeline

Json = dict[str, Any]


class Grant(msgspec.Struct, frozen=True):
    """What an operator may do (`verbs`), on which sessions (patterns), until when; `state` says whether now."""

    id: str
    operator: str
    verbs: list[str]
    sessions: list[str]
    state: str
    by: str
    at: str
    until: str | None
    parent: str | None
    depth: int
    revoked_at: str | None


class Enrolled(msgspec.Struct, frozen=True):
    id: str
    name: str
    kind: str
    key: str
    enrolled_by: str
    enrolled_at: str
    revoked_at: str | None
    grants: list[Grant]


class Enrol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new operator; without verbs an agent gets what agents get. `ttl` is a duration: 8h, 7d."""

    name: str
    kind: str
    verbs: list[str] | None = None
    sessions: list[str] | None = None
    ttl: str | None = None
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Give(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One more grant, never wider than the giver's own; on all sessions unless some are named."""

    verbs: list[str]
    sessions: list[str] | None = None
    ttl: str | None = None
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Revoked(msgspec.Struct, frozen=True):
    """How many channels and requests were ended with it."""

    operator: str
    name: str
    grant: str | None
    requests: int
    channels: int
    keepers_unable: int


class Verdict(msgspec.Struct, frozen=True):
    """Whether the journal is whole; else the first entry that is not (`bad`), and why."""

    ok: bool
    entries: int
    heads: int
    bad: int | None
    reason: str | None
    head: str
    duration_ms: int


async def operators(call: HttpCall[All, Nothing]) -> Any:
    return await call.host.operators(all=call.query.all)


async def enrol(call: HttpCall[Nothing, Enrol]) -> Any:
    asked = call.body
    ttl = None if asked.ttl is None else duration_s(asked.ttl)
    return await call.host.add_operator(
        asked.name, asked.kind, verbs=asked.verbs, sessions=asked.sessions, ttl=ttl, why=asked.why
    )


async def give(call: HttpCall[Nothing, Give]) -> Any:
    asked = call.body
    ttl = None if asked.ttl is None else duration_s(asked.ttl)
    return await call.host.grant(call.word("target"), asked.verbs, sessions=asked.sessions, ttl=ttl, why=asked.why)


async def revoke(call: HttpCall[Nothing, Because]) -> Any:
    return await call.host.revoke(call.word("target"), why=call.body.why)


async def verify(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.call("journal_verify")


async def journal(call: HttpCall[Page, Nothing]) -> Any:
    return await call.host.timeline(before=call.query.before, limit=call.query.limit)


ROUTES = [
    Route(
        "GET",
        "/api/operators",
        "Who is enrolled, with their grants; with all=1 also the revoked.",
        list[Enrolled],
        operators,
        query=All,
    ),
    Route("POST", "/api/operators", "Enrol an operator.", Enrolled, enrol, body=Enrol, status=201),
    Route(
        "POST", "/api/operators/{target}/grants", "Give an operator one more grant.", Grant, give, body=Give, status=201
    ),
    Route(
        "POST",
        "/api/operators/{target}/revoke",
        "End an operator, or one grant: its channels close at once.",
        Revoked,
        revoke,
        body=Because,
    ),
    Route("GET", "/api/journal/verify", "Check every hash and signature of the journal.", Verdict, verify),
    Route("GET", "/api/timeline", "Who did what, in all sessions and on the host.", Timeline, journal, query=Page),
]
