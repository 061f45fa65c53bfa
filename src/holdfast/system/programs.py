"""The package's own programs, by path: a process is started from its file, never from the caller's import path."""

from __future__ import annotations

import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOST = os.path.join(ROOT, "host", "__main__.py")
KEEPER = os.path.join(ROOT, "keeper", "__main__.py")
JUPYTER = os.path.join(ROOT, "jupyter", "__main__.py")
FIND_KERNELSPEC = os.path.join(ROOT, "jupyter", "find_kernelspec.py")
CONSOLE = os.path.join(ROOT, "console", "__main__.py")
VERIFIER = os.path.join(ROOT, "client", "files", "verifier_program.py")
