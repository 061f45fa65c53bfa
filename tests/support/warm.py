"""Commands that begin with a library read already: each in a process of its own, forked from one that did nothing but read it."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

DEADLINE_S = 120.0

# It reads a library and nothing of ours, and becomes a command each time it is asked: as `python -m`, from the first line on.
_PROGRAM = """
import importlib, json, os, runpy, sys
importlib.import_module(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for number, (path, flags) in enumerate(((os.devnull, os.O_RDONLY), (asked["out"], os.O_WRONLY), (asked["err"], os.O_WRONLY))):
        os.dup2(os.open(path, flags), number)
    sys.stdin = open(0, closefd=False)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv[1:] = asked["words"]
    code = 0
    try:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    except SystemExit as e:
        code = e.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


class Warm:
    """A process that has read `library`; `run` is like subprocess.run of `python -m module words`, without a terminal."""

    def __init__(self, library: str, folder: Path) -> None:
        self._out, self._err = folder / "out", folder / "err"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, module: str, words: list[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
        for path in (self._out, self._err):
            path.write_bytes(b"")
        asked: dict[str, Any] = {"module": module, "words": words, "cwd": str(cwd), "env": env}
        asked |= {"out": str(self._out), "err": str(self._err)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        assert select.select([self._process.stdout], [], [], DEADLINE_S)[0], f"{words} did not end"
        code = int(self._process.stdout.readline())
        return subprocess.CompletedProcess(words, code, self._out.read_bytes(), self._err.read_bytes())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(DEADLINE_S)
        finally:
            self._process.kill()
            self._process.stdout.close()
