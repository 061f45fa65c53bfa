"""A direct line to a keeper, with the token from its manifest: for tests in which no daemon may run."""

from __future__ import annotations

import json
import socket

from holdfast.model.home import Home
from holdfast.wire import frames
from holdfast.wire.sockets import reachable


class KeeperLine:
    """HELLO as an operator with all rights, then type, read, ask."""

    def __init__(self, home: Home, session_id: str, **hello: object) -> None:
        folder = home.session(session_id)
        with open(folder.manifest, encoding="utf-8") as f:
            token = json.load(f)["token"]
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(reachable(folder.keeper_socket)[0])
        self._decoder, self._frames, self._seq = frames.Decoder(), list[tuple[int, bytes]](), 0
        who = {"operator": "op_test", "kind": "human", "name": "test", "role": "operator", "via": "test"}
        rights = ["view", "type", "resize", "signal", "stop"]
        self.sock.sendall(
            frames.message(frames.HELLO, {"v": 1, "token": token, "rights": rights, **who, **hello})
        )
        self.welcome = frames.parse_json(self.next(frames.WELCOME))

    def next(self, *kinds: int) -> bytes:
        """The payload of the next frame of one of these kinds."""
        while True:
            while self._frames:
                kind, payload = self._frames.pop(0)
                if kind in kinds:
                    return payload
            data = self.sock.recv(65536)
            assert data, "the keeper closed the line"
            self._frames += self._decoder.feed(data)

    def type(self, data: bytes, epoch: int = 0) -> None:
        self._seq += 1
        self.sock.sendall(frames.input_frame(self._seq, epoch, data))
        self.next(frames.ACK, frames.RESULT)

    def act(self, op: str, **request: object) -> dict[str, object]:
        self.sock.sendall(frames.message(frames.ACT, {"id": 99, "op": op, **request}))
        return frames.parse_json(self.next(frames.RESULT))

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> KeeperLine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
