"""The web process seen from outside: does it live, where does it listen, a way in, its end without a daemon."""

from __future__ import annotations

import os
import select
import signal

from ...model.home import Home
from ...system import kernel
from ...system.atomic_files import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._sync.host import Host

    Json = dict[str, Any]

_GONE_S = 10.0  # it lets go of its streams within a second


def wanted(home: Home) -> Json | None:
    """Where the home wants HTTP to be served."""
    return read_json(home.web_file)


def running(home: Home) -> Json | None:
    """The process that serves it: the lock says that it lives, its text who it is."""
    try:
        held = read_json(home.web_lock) if kernel.lock_held(home.web_lock) else None
    except OSError:
        return None  # a home that cannot be read: others say so
    if held is None or "pid" not in held or kernel.start_time(int(held["pid"])) != held.get("started"):
        return None
    return held


def end(home: Home) -> int | None:
    """End the one that a daemon left behind when it was killed; its pid, or None where there is none."""
    held = running(home)
    if held is None:
        return None
    pid = int(held["pid"])
    try:
        gone = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(gone, number)
            if select.select([gone], [], [], _GONE_S)[0]:
                break
    except ProcessLookupError:
        pass
    finally:
        os.close(gone)
    return pid


def fresh() -> tuple[str, str]:
    """A link's secret, and the hash that the host knows it by."""
    import hashlib
    import secrets

    token = secrets.token_urlsafe(32)
    return token, hashlib.sha256(token.encode()).hexdigest()


def link_of(url: str, token: str) -> str:
    """The secret stands behind the #: no browser sends it, no server logs it."""
    return f"{url}/#login={token}"


def check_key(home: Home, who: Json) -> None:
    """A browser acts with its person's key, from this machine: so that key has to be here."""
    from ...model.errors import HoldfastError
    from ...system import signing_keys

    if not signing_keys.kept(home.keys, str(who["id"])):
        hint = "a browser is for those enrolled here, without --key"
        raise HoldfastError("failed", f"{who['name']} has their key elsewhere", hint)


def login_link(host: Host, url: str, why: str | None = None, operator: str | None = None) -> Json:
    """A link that logs one browser in: of one's own, or, made by the owner, of another person."""
    from ...model.times import rfc3339

    token, hash = fresh()
    if operator is not None:
        check_key(host.home, host.call("operator_find", operator=operator))
    made = host.call("login_add", hash=hash, operator=operator, why=why)
    until = rfc3339(made["until"])
    return {"link": link_of(url, token), "url": url, "token": token, "operator": made["name"], "until": until}
