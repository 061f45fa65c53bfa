"""From a request to a handler and back: query and body checked against the table, errors in one form."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...model.errors import HoldfastError, invalid
from ...model.limits import WEB_BODY_BYTES_MAX
from ..page import ALWAYS
from .guard import HOST, OPERATOR
from .routes import HttpCall, Route

log = logging.getLogger("holdfast.web")

_STATUS = {
    "invalid": 400,
    "usage": 400,
    "not_allowed": 403,
    "store_denied": 403,
    "not_found": 404,
    "conflict": 409,
    "busy": 409,
    "stale_epoch": 409,
    "fenced": 409,
    "in_doubt": 409,
    "too_large": 413,
    "failed": 422,
    "not_executable": 422,
    "no_program": 422,
    "host_gone": 503,
    "store_unreachable": 503,
    "timeout": 504,
}
_HEADERS = {**ALWAYS, "cache-control": "no-store", "content-security-policy": "default-src 'none'; sandbox"}


def status_of(code: str) -> int:
    return _STATUS.get(code, 500)


def failed(error: HoldfastError) -> Response:
    return answer({"error": error.as_dict()}, status_of(error.code))


def answer(value: object, status: int = 200) -> Response:
    body = b"" if status == 204 else msgspec.json.encode(value)
    return Response(body, status, dict(_HEADERS), None if status == 204 else "application/json")


def endpoint(route: Route) -> Callable[[Request], Awaitable[Response]]:
    """What the framework calls."""

    async def serve(request: Request) -> Response:
        try:
            query = parse_query(route.query, request.query_params.multi_items())
            body = parse_body(route.body, await read_body(request))
            call: Any = HttpCall(request, request.scope[HOST], request.scope[OPERATOR], query, body)
            value = await route.handler(call)
        except HoldfastError as e:
            return failed(e)
        except Exception:
            log.exception("%s %s failed", route.method, route.path)
            return failed(HoldfastError("internal", "internal error", "please report it with web.log from the home"))
        return value if isinstance(value, Response) else answer(value, route.status)

    return serve


def parse_query(kind: type, items: list[tuple[str, str]]) -> Any:
    """Strings to what the table says; a word that is not asked for is a mistake, not a wish."""
    if len(dict(items)) != len(items):
        raise invalid("the same word stands twice in the query", "once is enough")
    given = {name: value for name, value in items if value != ""}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as e:
        raise invalid(f"the query: {e}", "see /api/openapi.json") from None


def parse_body(kind: type, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise invalid(f"the body: {e}", "see /api/openapi.json") from None


async def read_body(request: Request) -> bytes:
    """All of it, within bounds."""
    said = request.headers.get("content-length", "0")
    if not said.isdigit() or int(said) > WEB_BODY_BYTES_MAX:
        raise too_large()
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > WEB_BODY_BYTES_MAX:
            raise too_large()
        parts.append(part)
    return b"".join(parts)


def too_large() -> HoldfastError:
    return HoldfastError("too_large", f"a body has at most {WEB_BODY_BYTES_MAX:,} bytes", "send less")
