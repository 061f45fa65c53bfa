"""Make the sync client, sync.py and its parts, from the async one: the same without the waiting."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "src" / "holdfast" / "client"
PARTS = (
    "briefs",
    "calls",
    "channel",
    "inbox",
    "operators",
    "run_state",
    "session",
    "stepped",
    "steps",
    "tasks",
    "verification",
    "work",
)
MADE = {"aio": "sync", **{part: f"{part}_sync" for part in PARTS}}
BY_HAND = {"io_async": "io_sync", "work_aio": "work_io"}  # where the two really differ, each has its own
RULES = [
    *((rf"\bfrom \.{name} import", f"from .{twin} import") for name, twin in (MADE | BY_HAND).items()),
    (r"from collections\.abc import Callable, Coroutine", "from collections.abc import Callable"),
    (r"Coroutine\[Any, Any, (\w+)\]", r"\1"),
    (r"\basync def\b", "def"),
    (r"\basync (for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\baconnect\b", "connect"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
]
NOTE = '"""The client without asyncio. Made from {source} by scripts/make_sync.py: change that file, not this one."""\n'


def sync_source(name: str) -> str:
    source = (CLIENT / f"{name}.py").read_text()
    source = NOTE.format(source=f"{name}.py") + source.split('"""', 2)[2].lstrip("\n").join(["\n", ""])
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return formatted(source)


def formatted(source: str) -> str:
    """As the formatter writes it: without `await`, a call may fit on one line."""
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(CLIENT / "made.py"), "-"]
    return subprocess.run(ruff, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    for name, made in MADE.items():
        target = CLIENT / f"{made}.py"
        if "--check" not in sys.argv:
            target.write_text(sync_source(name))
        elif target.read_text() != sync_source(name):
            sys.exit(f"client/{made}.py is stale: run scripts/make_sync.py")
