"""Made from _async/calls.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import os
import time

from ...api.operation import find
from ...model import ids
from ...model.errors import HoldfastError, from_dict, invalid
from ...model.home import Home, default_home
from ...wire import host_requests
from ...wire.host_requests import TooLarge
from .._io.blocking_socket import HostConnection
from ..requests import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...wire.host_requests import Codec

    Json = dict[str, Any]

_TRIES = 5  # a daemon that dies again as soon as it is started is not worth more


class Calls:
    """Connections to a host, made as needed and reused, one request at a time each. A part of Host."""

    # Whether who asks here is who this process runs for, so that a path they name may be opened by it. The web process
    # speaks for people and agents elsewhere, and says no for all of them.
    local_files = True

    def __init__(self, home: str | None = None, *, autostart: bool = True, operator: str | None = None) -> None:
        self.home = Home(os.path.abspath(home) if home else default_home(dict(os.environ), os.path.expanduser("~")))
        self.autostart = autostart
        self.operator = operator or os.environ.get("HOLDFAST_OPERATOR")
        # Which process an agent's holds are for: this one (0), its parent (1) …; None where the agent is elsewhere.
        self.ancestor: int | None = 0
        self._idle: list[HostConnection] = []

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def call(self, op: str, **request: object) -> Any:
        """One operation by name; the reply's value. For what has no method of its own."""
        value, fd = self.call_fd(op, **request)
        if fd >= 0:
            os.close(fd)
        return value

    def call_fd(self, op: str, **request: object) -> tuple[Any, int]:
        """One operation whose reply may carry a descriptor (-1: none)."""
        return self.exchange({"op": op, **request})

    def exchange(self, message: Json, codec: Codec = host_requests) -> tuple[Any, int]:
        """A request as it is, and the answer's value and descriptor; `codec` says how they are written."""
        op, began = message["op"], time.monotonic()
        kind = find(op)
        row, fields = (None, frozenset[str]()) if kind is None else (kind.row, kind.fields)
        repeat = "never" if row is None else row.repeat
        works = row is not None and row.right == "work"
        kept = "asked_s_ago" in fields  # the session's keeper, which outlives the daemon, knows what it carried out
        if "ancestor" in fields:
            message = {"ancestor": self.ancestor, **message}
        if repeat == "request" and message.get("request") is None:
            message = {**message, "request": ids.new("req_")}
        # What may be asked twice need not look first whether the host is still there: that try does not count.
        for attempt in range(0 if self._idle and repeat != "never" and not kept else 1, _TRIES + 1):
            wire = self._resting() if attempt else self._idling()
            if kept and attempt > 1:
                message["asked_s_ago"] = time.monotonic() - began
            try:
                if wire is None:
                    wire = self.connection()
                wire.send(message, codec)
                reply, fd = wire.receive(codec)
            except ConnectionError:
                if wire is not None:
                    wire.close()
                if attempt == _TRIES or repeat == "never":
                    raise HoldfastError(
                        "host_gone",
                        f"the host went away during {op}: whether it was done is not known",
                        "look at hold status before you ask again",
                    ) from None
                continue
            except TooLarge as e:
                assert wire is not None
                wire.close()
                artifact = "keep it as an artifact and pass its name"
                raise invalid(str(e), artifact if works else "pass large input through a file or a pipe") from None
            except BaseException:
                if wire is not None:
                    wire.close()
                raise
            self._idle.append(wire)
            value = _value(reply, fd)
            return Answer(value) if type(value) is dict and not works else value, fd
        raise AssertionError("unreachable")

    def _idling(self) -> HostConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread was quicker
            return None

    def _resting(self) -> HostConnection | None:
        while (wire := self._idling()) is not None and wire.stale():
            wire.close()
        return wire

    def connection(self) -> HostConnection:
        """A new connection; where an operator was chosen, its key is proven on it before anything is asked."""
        wire = HostConnection.connect(self.home, self.autostart)
        if self.operator:
            try:
                self._prove(wire, self.operator)
            except BaseException:
                wire.close()
                raise
        return wire

    def again(self, error: HoldfastError, deadline: float | None = None) -> None:
        """Return when a question that may be asked twice is to be asked again: its host went away, and the next one is
        there or will be started. Raises the error where it was another, or the time is up."""
        if error.code != "host_gone":
            raise error
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not HostConnection.back(self.home, left):
            raise error

    def _prove(self, wire: HostConnection, operator: str) -> None:
        from ...system import signing_keys
        from ...wire import key_proof

        wire.send({"op": "identify", "operator": operator})
        asked, _ = wire.receive()
        if "error" in asked:
            raise from_dict(asked["error"])  # type: ignore[arg-type]
        about: Json = asked["ok"]  # type: ignore[assignment]
        message = key_proof.message(about["host"], bytes.fromhex(about["nonce"]), about["operator"])
        signature = signing_keys.sign(signing_keys.load(self.home.keys, about["operator"]), message).hex()
        wire.send({"op": "prove", "operator": about["operator"], "signature": signature})
        answer, _ = wire.receive()
        if "error" in answer:
            raise from_dict(answer["error"])  # type: ignore[arg-type]


def _value(reply: Json, fd: int) -> Any:
    """What was answered; an error is raised, and its descriptor is nobody's."""
    if "error" in reply:
        if fd >= 0:
            os.close(fd)
        raise from_dict(reply["error"])
    return Answer(reply)["ok"]
