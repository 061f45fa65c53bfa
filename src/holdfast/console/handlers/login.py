"""A browser comes in by a link that works once, makes one for another device, and goes out again."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...client.admin import web_process
from ...model.errors import HoldfastError
from ...model.limits import WHY_MAX
from ...model.times import rfc3339
from ..http import headers
from ..http.callers import Callers
from ..http.endpoint import answer, failed, parse_body, read_body
from ..http.routes import HttpCall, Nothing, Route

Json = dict[str, Any]


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands after `#login=` in the link."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class NewLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For a browser of one's own; the owner may make one for another person (`operator`, a name or an id)."""

    operator: str | None = None
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


class Link(msgspec.Struct, frozen=True):
    """It works once, until then: ADDRESS/#login=TOKEN. `addresses` are all that this port answers to."""

    token: str
    operator: str
    until: str
    addresses: list[str]


class Operator(msgspec.Struct, frozen=True):
    id: str
    name: str
    kind: str


class HostAbout(msgspec.Struct, frozen=True):
    id: str
    name: str
    version: str


class Me(msgspec.Struct, frozen=True):
    """Who asks, where, and what they may do."""

    operator: Operator
    host: HostAbout
    grants: list[Json]


async def me(call: HttpCall[Nothing, Nothing]) -> Any:
    import os

    about, mine = await call.host.call("ping"), await call.host.whoami()
    return {
        "operator": {"id": mine["id"], "name": mine["name"], "kind": mine["kind"]},
        "host": {"id": about["host"]["id"], "name": os.uname().nodename, "version": about["host"]["version"]},
        "grants": mine["grants"],
    }


class LoginRoutes:
    """`login` is for everybody who has a link, `logout` for a browser that is in."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def login(self, request: Request) -> Response:
        try:
            asked: Login = parse_body(Login, await read_body(request))
            secret = await self._callers.log_in(asked.token)
        except HoldfastError as e:
            return failed(e)
        response = answer(None, 204)
        sealed = request.headers.get("origin", "").startswith("https:")  # what the guard let through is an own address
        response.headers["set-cookie"] = headers.set_cookie(self._callers.port, secret, secure=sealed)
        return response

    async def link(self, call: HttpCall[Nothing, NewLink]) -> Any:
        """The host says whether they may; whoever comes in by it may no more than they, or than whom it is for."""
        asked, (token, hash) = call.body, web_process.fresh()
        if asked.operator is not None:
            web_process.check_key(call.host.home, await call.host.call("operator_find", operator=asked.operator))
        made = await call.host.call("login_add", hash=hash, operator=asked.operator, why=asked.why)
        return Link(token, made["name"], str(rfc3339(made["until"])), self._callers.where.addresses)

    async def logout(self, call: HttpCall[Nothing, Nothing]) -> Any:
        given = {b"cookie": [value.encode("latin-1") for value in call.request.headers.getlist("cookie")]}
        await self._callers.log_out(headers.cookies(given, self._callers.port))
        response = answer(None, 204)
        response.headers["set-cookie"] = headers.set_cookie(self._callers.port, "")
        return response

    def routes(self) -> list[Route]:
        """As the document has them, with whoever serves them."""
        return [LOGOUT.served(self.logout), LINK.served(self.link)]


async def _apart(call: HttpCall[Nothing, Any]) -> Any:
    raise AssertionError("served by Doors, which knows the callers")


LOGIN = Route("POST", "/api/login", "A browser comes in by a link that works once.", None, _apart, body=Login)
LOGOUT = Route("POST", "/api/logout", "This browser is out; its sockets close.", None, _apart)
LINK = Route("POST", "/api/links", "A link that logs another device in, once.", Link, _apart, body=NewLink, status=201)
BESIDE = [LOGIN, LOGOUT, LINK]
ROUTES = [Route("GET", "/api/me", "Who asks, where, and what they may do.", Me, me)]
