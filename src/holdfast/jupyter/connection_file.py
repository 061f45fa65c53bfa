"""Makes a kernel's connection file, which the kernel and every front end read."""

from __future__ import annotations

import json
import os
import random
import socket
from typing import Any

from ..model.limits import SOCKET_PATH_MAX
from ..system.atomic_files import write_bytes

Json = dict[str, Any]

_CHANNELS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


def connection(folder: str, spec: str, language: str) -> Json:
    """The connection: sockets in the session's folder if possible, which no other user reaches and which use no port.

    Only Python's kernel is known to support them everywhere, and a path has its limit. Others listen on a loopback
    address of their own, so that no other process takes a port between its choice and the kernel's start.
    """
    base = os.path.join(folder, "kernel")
    if language == "python" and len(os.fsencode(base)) + 2 <= SOCKET_PATH_MAX:
        transport, ip, ports = "ipc", base, list(range(1, len(_CHANNELS) + 1))
        for port in ports:
            if os.path.lexists(f"{base}-{port}"):  # of the previous generation, which is dead
                os.unlink(f"{base}-{port}")
    else:
        transport, (ip, ports) = "tcp", _loopback(len(_CHANNELS))
    return {
        **dict(zip(_CHANNELS, ports, strict=True)),
        "ip": ip,
        "transport": transport,
        "key": os.urandom(32).hex(),
        "signature_scheme": "hmac-sha256",
        "kernel_name": spec,
    }


def write(path: str, made: Json) -> None:
    write_bytes(path, json.dumps(made, indent=2).encode())  # 0600: any process that reads it can run code in the kernel


def address(made: Json, channel: str) -> str:
    separator = "-" if made["transport"] == "ipc" else ":"
    return f"{made['transport']}://{made['ip']}{separator}{made[channel + '_port']}"


def _loopback(count: int) -> tuple[str, list[int]]:
    chooser = random.SystemRandom()
    own = f"127.{chooser.randrange(1, 255)}.{chooser.randrange(256)}.{chooser.randrange(1, 255)}"
    for ip in (own, "127.0.0.1"):  # Linux has all of 127/8; others have one address
        try:
            return ip, _free_ports(ip, count)
        except OSError:
            continue
    raise OSError("cannot listen on a loopback address")


def _free_ports(ip: str, count: int) -> list[int]:
    taken: list[socket.socket] = []
    try:
        for _ in range(count):
            taken.append(socket.socket())
            taken[-1].bind((ip, 0))
        return [int(sock.getsockname()[1]) for sock in taken]
    finally:
        for sock in taken:
            sock.close()
