"""Who a request says it is, and whether a browser may ask that: decisions about headers. Pure.

A browser sends its cookie with whatever some page makes it ask, and a page of another port of this machine is of the
same site to it. So a cookie counts only where the browser itself says that it was our own page that asked.
"""

from __future__ import annotations

import hashlib

from ...model import web_address
from ...model.errors import HoldfastError
from ...model.limits import LOGIN_TTL_S

Headers = dict[bytes, list[bytes]]

_COOKIES_TRIED = 4  # of the same name: a server on another port of this machine can set one, and not hide ours
_COOKIE_MAX = 128  # characters; ours have 43
_SAFE = ("GET", "HEAD")


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def bearer(headers: Headers) -> str | None:
    """The hash of a token that could be one."""
    given = headers.get(b"authorization", [])
    token = web_address.bearer(given[0].decode("latin-1")) if len(given) == 1 else None
    return None if token is None else hashed(token)


def cookie_name(port: int) -> str:
    """Cookies know no ports: two homes on one machine must not log each other out."""
    return f"holdfast-{port}"


def cookies(headers: Headers, port: int) -> list[str]:
    """The hashes of what a browser sent under our name."""
    found = []
    for header in headers.get(b"cookie", []):
        for pair in header.decode("latin-1").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == cookie_name(port) and value and len(value) <= _COOKIE_MAX and value.isascii():
                found.append(hashed(value))
    return found[:_COOKIES_TRIED]


def set_cookie(port: int, value: str, *, secure: bool = False) -> str:
    """For the browser that logs in; with an empty value, for one that logs out."""
    age = int(LOGIN_TTL_S) if value else 0
    tail = "; Secure" if secure else ""  # over plain HTTP a browser would not take it back
    return f"{cookie_name(port)}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{tail}"


def cookie_refused(method: str, headers: Headers, *, socket: bool) -> HoldfastError | None:
    """Why a cookie does not count here. That an Origin, where there is one, is ours was checked before."""
    origin, site = b"origin" in headers, headers.get(b"sec-fetch-site")
    if site is not None and site not in ([b"same-origin"], [b"none"]):
        return HoldfastError("not_allowed", "pages of another site may not ask here", "")
    if socket and not origin:
        return HoldfastError("not_allowed", "a browser says which page opens a socket", "send Origin, or a token")
    if method not in _SAFE and not origin and site != [b"same-origin"]:
        return HoldfastError("not_allowed", "a browser says which page changes something", "send Origin, or a token")
    return None
