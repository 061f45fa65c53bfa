"""A model on loopback for a real Claude Code: it asks for one Bash command after another, then says that it is done.

    model.py PORTFILE COMMAND…

Speaks as much of the Anthropic Messages API as Claude Code needs. It keeps no state: which command is next is the number of
tool results since the person's last prompt that says GO.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]
COMMANDS = sys.argv[2:]


def blocks(message: Json) -> list[Json]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def reply(body: Json) -> list[Json]:
    """The content of the answer."""
    done, asked = 0, False
    for block in (b for m in body.get("messages", []) if m["role"] == "user" for b in blocks(m)):
        if block.get("type") == "tool_result":
            done += 1
        elif "GO" in str(block.get("text")):
            done, asked = 0, True
    if not asked or not body.get("tools") or done >= len(COMMANDS):
        return [{"type": "text", "text": "all done"}]
    given = {"command": COMMANDS[done], "description": f"Command {done + 1}"}
    return [{"type": "tool_use", "id": f"toolu_{os.urandom(8).hex()}", "name": "Bash", "input": given}]


def events(message: Json) -> list[tuple[str, Json]]:
    block = message["content"][0]
    text = block["type"] == "text"
    empty = {**block, "text": ""} if text else {**block, "input": {}}
    delta = (
        {"type": "text_delta", "text": block["text"]}
        if text
        else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    )
    return [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 9}},
        ),
        ("message_stop", {}),
    ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        self._send("application/json", b"{}")

    def do_GET(self) -> None:
        self._send("application/json", b'{"data": []}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if not self.path.split("?")[0].endswith("/messages"):
            self._send("application/json", b'{"input_tokens": 1}')
            return
        content = reply(body)
        usage = {"input_tokens": 9, "output_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        stop = "end_turn" if content[0]["type"] == "text" else "tool_use"
        message = {
            "id": f"msg_{os.urandom(8).hex()}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self._send("application/json", json.dumps(message).encode())
            return
        rows = (f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events(message))
        self._send("text/event-stream", "".join(rows).encode())


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place = Path(sys.argv[1])
    place.with_suffix(".tmp").write_text(str(server.server_port))
    place.with_suffix(".tmp").rename(place)
    server.serve_forever()
