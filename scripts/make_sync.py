"""Make the sync client, client/_sync, from the async one, client/_async: the same without the waiting."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "src" / "holdfast" / "client"
SOURCE, MADE = CLIENT / "_async", CLIENT / "_sync"
RULES = [
    (r"\bfrom \.\._io\.async_(socket|heartbeat) import", r"from .._io.@\1 import"),
    (r"@socket", "blocking_socket"),
    (r"@heartbeat", "thread_heartbeat"),  # where the two really differ, each has its own
    (r"from collections\.abc import Callable, Coroutine", "from collections.abc import Callable"),
    (r"Coroutine\[Any, Any, (\w+)\]", r"\1"),
    (r"\basync def\b", "def"),
    (r"\basync (for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\baconnect\b", "connect"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
]
NOTE = '"""Made from {source} by scripts/make_sync.py: change that file, not this one."""\n'


def sync_source(name: str) -> str:
    source = (SOURCE / f"{name}.py").read_text()
    source = NOTE.format(source=f"_async/{name}.py") + source.split('"""', 2)[2].lstrip("\n").join(["\n", ""])
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return formatted(source)


def formatted(source: str) -> str:
    """As the formatter writes it: without `await`, a call may fit on one line."""
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(MADE / "made.py"), "-"]
    return subprocess.run(ruff, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    for source in sorted(SOURCE.glob("*.py")):
        name = source.stem
        target = MADE / source.name
        if name == "__init__":
            continue
        if "--check" not in sys.argv:
            target.write_text(sync_source(name))
        elif not target.exists() or target.read_text() != sync_source(name):
            sys.exit(f"client/_sync/{name}.py is stale: run scripts/make_sync.py")
