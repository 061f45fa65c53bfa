"""The API's document (OpenAPI 3.1), made from the table of routes and the types in it; printed when run by itself."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import msgspec

from ...version import VERSION
from ..handlers import inbox, login, operators, recordings, session_files, sessions, since_last_visit, work
from ..live import messages_in, messages_out
from .routes import HttpCall, Nothing, Route

Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_ABOUT = (
    "The API behind the console. Log in with a link (`hold web link`) and keep the cookie, or send an operator's token"
    " (`hold mcp token NAME`) as `Authorization: Bearer`. With a cookie, whatever changes something needs the page's"
    " own `Origin`. Errors have one form everywhere. Times are RFC 3339, in UTC."
)
_SOCKETS = (
    "What is said on the two WebSockets, /api/live and /api/sessions/{session}/attach; docs/api.md explains them."
)


class Error(msgspec.Struct, frozen=True):
    code: str
    message: str
    hint: str


class Failed(msgspec.Struct, frozen=True):
    """What is wrong, and what to do."""

    error: Error


async def served(call: HttpCall[Nothing, Nothing]) -> Any:
    return document()


TABLE: list[Route] = [
    *login.ROUTES,
    *sessions.ROUTES,
    *session_files.ROUTES,
    *recordings.ROUTES,
    *inbox.ROUTES,
    *since_last_visit.ROUTES,
    *work.ROUTES,
    *operators.ROUTES,
    Route("GET", "/api/openapi.json", "This document.", dict[str, Any], served),
]


def document() -> Json:
    """The whole document, the same each time."""
    routes = [*login.BESIDE, *TABLE]
    told = [*messages_out.MESSAGES, *messages_in.MESSAGES]
    types = {t for r in routes for t in (r.answer, r.body, r.query) if t is not None} | {Failed, *told}
    listed = sorted(types, key=str)
    schemas, components = msgspec.json.schema_components(listed, schema_hook=_anything, ref_template=_REF)
    known = dict(zip(listed, schemas, strict=True))
    paths: Json = {}
    for route in routes:
        paths.setdefault(_plain(route.path), {})[route.method.lower()] = _operation(route, known, components)
    tops = [known[t] for t in told]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": VERSION, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": {**_named(components), "SocketMessage": {"description": _SOCKETS, "anyOf": tops}},
            "securitySchemes": {
                "cookie": {"type": "apiKey", "in": "cookie", "name": "holdfast-PORT"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"cookie": []}, {"token": []}],
    }


def _anything(kind: type) -> Json:
    if kind is object:
        return {"description": "anything"}
    raise NotImplementedError


def _operation(route: Route, known: dict[Any, Json], components: Json) -> Json:
    answer: Json = {"description": "done"}
    if route.answer is bytes:
        answer["content"] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    elif route.answer is not None:
        answer["content"] = {"application/json": {"schema": known[route.answer]}}
    failed = {"description": "an error", "content": {"application/json": {"schema": known[Failed]}}}
    found: Json = {
        "operationId": _id(route),
        "summary": route.summary,
        "parameters": _parameters(route, components),
        "responses": {str(route.status): answer, "default": failed},
    }
    if route.body is not Nothing:
        found["requestBody"] = {"content": {"application/json": {"schema": known[route.body]}}}
    if route is login.LOGIN:
        found["security"] = []
    return found


def _parameters(route: Route, components: Json) -> list[Json]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer" if kind == "int" else "string"}}
        for name, kind in re.findall(r"\{(\w+):?(\w*)\}", route.path)
    ]
    if route.query is Nothing:
        return found
    schema = components[route.query.__name__]
    for name, about in schema["properties"].items():
        found.append({"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": about})
    return found


def _id(route: Route) -> str:
    words = re.split(r"[/{}:._]+", route.path.removeprefix("/api"))
    return "_".join([route.method.lower(), *(word for word in words if word not in ("", "path", "int"))])


def _plain(path: str) -> str:
    return re.sub(r":\w+\}", "}", path)


def _named(components: Json) -> Json:
    return {name: components[name] for name in sorted(components) if name != "Nothing"}


def main() -> int:
    sys.stdout.write(json.dumps(document(), indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
