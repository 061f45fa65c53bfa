"""The API's routes as data: what each is called, takes and answers. Its document is made from the same table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request

from ...client._async.host import AsyncHost

Json = dict[str, Any]
Q = TypeVar("Q")
B = TypeVar("B")


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query, or no body."""


class Because(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change; `why` is kept in the journal."""

    why: str | None = None


class HttpCall(Generic[Q, B]):
    """One request, checked: who asks (`host` acts with their rights), the path's words, the query, the body."""

    __slots__ = ("body", "host", "query", "request", "who")

    def __init__(self, request: Request, host: AsyncHost, who: Json, query: Q, body: B) -> None:
        self.request, self.host, self.who, self.query, self.body = request, host, who, query, body

    def word(self, name: str) -> str:
        return str(self.request.path_params[name])


Handler = Callable[[Any], Awaitable[Any]]


class Route:
    """One way in. `answer` is the type of what comes back; None where nothing does (204)."""

    __slots__ = ("answer", "body", "handler", "method", "path", "query", "status", "summary")

    def __init__(
        self,
        method: str,
        path: str,
        summary: str,
        answer: Any,
        handler: Handler,
        *,
        query: type = Nothing,
        body: type = Nothing,
        status: int = 0,
    ) -> None:
        self.method, self.path, self.summary = method, path, summary
        self.answer, self.handler, self.query, self.body = answer, handler, query, body
        self.status = status or (204 if answer is None else 200)

    def served(self, handler: Handler) -> Route:
        """The same, by somebody who holds something."""
        return Route(
            self.method,
            self.path,
            self.summary,
            self.answer,
            handler,
            query=self.query,
            body=self.body,
            status=self.status,
        )
