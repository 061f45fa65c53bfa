"""The address of the HTTP port, and the names by which it may be called. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from .errors import HoldfastError

LOOPBACK = "127.0.0.1"
TOKEN_PREFIX = "hft_"
_PORTS = {"http": 80, "https": 443}  # which clients leave out


def parse(text: str) -> tuple[str, int]:
    """Parse `[HOST:]PORT`; without a host, this machine only. Port 0: a free one, which is then kept."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]").lower() or LOOPBACK
    if not port.isdigit() or int(port) > 65535:
        raise HoldfastError(
            "usage", f"{text[:60]!r} is not a valid [HOST:]PORT", "--web 8787, or --web 192.168.1.5:8787"
        )
    if host == "localhost":
        host = LOOPBACK
    if host in ("0.0.0.0", "::", "*"):
        # Requests are checked against the exact names that this port has; "every address" has none.
        raise HoldfastError("usage", f"{host} means every address of this machine", "give the one that clients use")
    if not all(c.isascii() and (c.isalnum() or c in ".-:") for c in host):
        raise HoldfastError(
            "usage", f"{host[:60]!r} is not a valid host", "give an address of this machine, or its name"
        )
    return host, int(port)


def public(text: str) -> str:
    """The origin of another address of this port, through the user's proxy or tunnel."""
    try:
        parts = urlsplit(text.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password)
    named = host and all(c.isascii() and (c.isalnum() or c in ".-:") for c in host)
    if parts.scheme not in _PORTS or not named or not plain:
        raise HoldfastError("usage", f"{text[:80]!r} is not a valid console URL", "--web-url https://hold.example.org")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, _PORTS[parts.scheme]) else f":{port}")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def authority(host: str, port: int) -> str:
    """Host and port as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def names(host: str, port: int, public: str | None = None) -> frozenset[str]:
    """All values of the Host header that name this port."""
    return frozenset(origin.partition("://")[2] for origin in origins(host, port, public))


def origins(host: str, port: int, public: str | None = None) -> frozenset[str]:
    """All Origins of this port's own pages."""
    hosts = {host, "localhost"} if is_loopback(host) else {host}
    found = {f"http://{authority(one, port)}" for one in hosts}
    if port == _PORTS["http"]:  # clients leave the default port out
        found |= {f"http://[{one}]" if ":" in one else f"http://{one}" for one in hosts}
    return frozenset(found if public is None else {*found, public})


def bearer(header: str) -> str | None:
    """The token of an Authorization header; None if there is no well-formed one."""
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token.startswith(TOKEN_PREFIX) or len(token) > 128 or not token.isascii():
        return None
    return token
