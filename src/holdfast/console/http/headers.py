"""Decisions about request headers: tokens, cookies, and whether a browser's request counts. Pure.

A browser sends its cookie with requests of any page, and to it another port of this machine is the same site. So a
cookie counts only if the browser states that the console's own page made the request.
"""

from __future__ import annotations

import hashlib

from ...model import web_address
from ...model.errors import HoldfastError
from ...model.limits import LOGIN_TTL_S

Headers = dict[bytes, list[bytes]]

_COOKIES_TRIED = (
    4  # cookies of the same name: a server on another port of this machine can set more, and must not hide the real one
)
_COOKIE_MAX = 128  # characters; real ones have 43
_SAFE = ("GET", "HEAD")


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def bearer(headers: Headers) -> str | None:
    """The hash of a well-formed bearer token, if any."""
    given = headers.get(b"authorization", [])
    token = web_address.bearer(given[0].decode("latin-1")) if len(given) == 1 else None
    return None if token is None else hashed(token)


def cookie_name(port: int) -> str:
    """The cookie's name, with the port: cookies ignore ports, and two homes must not log each other out."""
    return f"holdfast-{port}"


def cookies(headers: Headers, port: int) -> list[str]:
    """The hashes of the browser's cookies with this name."""
    found = []
    for header in headers.get(b"cookie", []):
        for pair in header.decode("latin-1").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == cookie_name(port) and value and len(value) <= _COOKIE_MAX and value.isascii():
                found.append(hashed(value))
    return found[:_COOKIES_TRIED]


def set_cookie(port: int, value: str, *, secure: bool = False) -> str:
    """The Set-Cookie header for a login; with an empty value, for a logout."""
    age = int(LOGIN_TTL_S) if value else 0
    tail = "; Secure" if secure else ""  # over plain HTTP a browser would not take it back
    return f"{cookie_name(port)}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{tail}"


def cookie_refused(method: str, headers: Headers, *, socket: bool) -> HoldfastError | None:
    """Why a cookie does not count, or None. The guard has already checked an Origin, if there is one."""
    origin, site = b"origin" in headers, headers.get(b"sec-fetch-site")
    if site is not None and site not in ([b"same-origin"], [b"none"]):
        return HoldfastError("not_allowed", "requests from other sites are not allowed", "")
    if socket and not origin:
        return HoldfastError(
            "not_allowed", "a WebSocket with a cookie needs an Origin header", "send Origin, or a token"
        )
    if method not in _SAFE and not origin and site != [b"same-origin"]:
        return HoldfastError("not_allowed", "a change with a cookie needs an Origin header", "send Origin, or a token")
    return None
