"""A direct line to a keeper, with the token from its manifest: for tests in which no daemon may run."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any

from holdfast.model.home import Home
from holdfast.wire import keeper_frames
from holdfast.wire.socket_address import reachable


def dialled(path: str, *, blocking: bool = True) -> socket.socket:
    """A socket connected to an address in a home, whatever the path's length."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(blocking)
    address, folder = reachable(path)
    try:
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    finally:
        if folder >= 0:
            os.close(folder)
    return sock


class KeeperLine:
    """HELLO as an operator with all rights, then type, read, ask. Events that pass by are kept in `events`."""

    def __init__(self, home: Home, session_id: str, sock: socket.socket | None = None, **hello: Any) -> None:
        folder = home.session(session_id)
        with open(folder.manifest, encoding="utf-8") as f:
            token = json.load(f)["token"]
        if sock is None:
            sock = dialled(folder.keeper_socket)
        self.sock = sock
        self.sock.settimeout(60)
        self._decoder, self._frames, self._seq = keeper_frames.Decoder(), list[tuple[int, bytes]](), 0
        self.events: list[dict[str, Any]] = []
        who = {"operator": "op_test", "kind": "human", "name": "test", "role": "operator", "via": "test"}
        rights = ["view", "type", "resize", "signal", "stop", "request_control"]
        try:
            said = {"v": 1, "token": token, "rights": rights, **who, **hello}
            self.sock.sendall(keeper_frames.message(keeper_frames.HELLO, said))
            self.welcome = keeper_frames.parse_json(self.next(keeper_frames.WELCOME))
        except BaseException:
            self.sock.close()
            raise

    def next(self, *kinds: int) -> bytes:
        """The payload of the next frame of one of these kinds."""
        while True:
            while self._frames:
                kind, payload = self._frames.pop(0)
                if kind == keeper_frames.EVENT:
                    self.events.append(keeper_frames.parse_json(payload))
                if kind in kinds:
                    return payload
            data = self.sock.recv(65536)
            assert data, "the keeper closed the line"
            self._frames += self._decoder.feed(data)

    def type(self, data: bytes, epoch: int = 0) -> dict[str, Any]:
        """Type; {} when it was accepted, else the refusal."""
        self._seq += 1
        self.sock.sendall(keeper_frames.input_frame(self._seq, epoch, data))
        while True:
            payload = self.next(keeper_frames.ACK, keeper_frames.RESULT)
            if payload[:1] != b"{":
                return {}
            answer = keeper_frames.parse_json(payload)
            if "seq" in answer:
                error: dict[str, Any] = answer["error"]
                return error

    def act(self, op: str, **request: object) -> dict[str, Any]:
        self.sock.sendall(keeper_frames.message(keeper_frames.ACT, {"id": 99, "op": op, **request}))
        while True:
            answer = keeper_frames.parse_json(self.next(keeper_frames.RESULT))
            if "id" in answer:
                return answer

    def event(self, accept: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first event that has passed or comes which is accepted; those before it are forgotten."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if accept(event):
                    return event
            self.next(keeper_frames.EVENT)

    def closed(self) -> bool:
        """Whether the keeper ends this line."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> KeeperLine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
