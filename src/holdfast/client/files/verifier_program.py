"""Runs a contract's commands one after another, as the main program of a session. Standard library only.

Started by client/_async/verification.py as `python -I verifier_program.py JSON`, with pipes. What the commands print
goes to stdout as it comes; what became of each goes to stderr, a JSON document per line, and all of it once more at the
end: the caller may be gone meanwhile, and finds it in the session's log.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

_TAIL_BYTES = 4096  # model/limits.py CHECK_TAIL_BYTES; this file runs without the package
_GRACE_S = 2.0  # from TERM to KILL for a command that took too long
_READ_BYTES = 65536


def main(checks: list[dict[str, object]]) -> int:
    results = []
    for n, check in enumerate(checks):
        result = run(check["command"], float(str(check["timeout_s"])))
        results.append(result)
        tell({"n": n, "result": result})
    tell({"results": results})
    return 0 if all(r["state"] == "passed" for r in results) else 1


def tell(about: dict[str, object]) -> None:
    write(2, json.dumps(about).encode() + b"\n")


def write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def run(command: object, timeout_s: float) -> dict[str, object]:
    """One command: shell source, or a program and its arguments."""
    words = [str(w) for w in command] if isinstance(command, list) else ["/bin/sh", "-c", str(command)]
    begun, at = time.monotonic(), time.time()
    try:
        program = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as e:
        line = f"{words[0]}: {e.strerror}\n"
        write(1, line.encode(errors="replace"))
        code = 127 if isinstance(e, FileNotFoundError) else 126
        return result(command, code, "failed", begun, at, line.encode(errors="replace"))
    tail, late = follow(program, begun + timeout_s)
    code = program.returncode
    if late:
        return result(command, None, "timeout", begun, at, tail)
    return result(command, 128 - code if code < 0 else code, "passed" if code == 0 else "failed", begun, at, tail)


def follow(program: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """Pass its output on until it ends; the end of that output, and whether it took too long.

    Its end is the program's, not the pipe's: a server that it left behind may hold that for ever.
    """
    assert program.stdout is not None
    out, ended = program.stdout.fileno(), os.pidfd_open(program.pid)
    os.set_blocking(out, False)
    tail, late, watched = b"", False, [out, ended]
    while ended in watched:
        ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            stop(program, signal.SIGKILL if late else signal.SIGTERM)
            late, deadline = True, time.monotonic() + _GRACE_S
            continue
        if out in ready:
            data = read(out)
            tail = (tail + data)[-_TAIL_BYTES:]
            write(1, data)
            if not data:
                watched.remove(out)
        if ended in ready:
            program.wait()
            watched.remove(ended)
    while data := read(out):  # what was printed before the end
        tail = (tail + data)[-_TAIL_BYTES:]
        write(1, data)
    os.close(ended)
    program.stdout.close()
    return tail, late


def read(fd: int) -> bytes:
    try:
        return os.read(fd, _READ_BYTES)
    except BlockingIOError:
        return b""


def stop(program: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(program.pid, number)
    except ProcessLookupError:
        pass


def result(command: object, code: int | None, state: str, begun: float, at: float, tail: bytes) -> dict[str, object]:
    return {
        "command": command,
        "exit_code": code,
        "state": state,
        "at": at,
        "duration_ms": int((time.monotonic() - begun) * 1000),
        "tail": tail.decode(errors="replace"),
    }


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
