"""Make src/holdfast/client/sync.py from aio.py: the sync client is the async one without the waiting."""

from __future__ import annotations

import pathlib
import re
import sys

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "src" / "holdfast" / "client"
RULES = [
    (r"from \.io_async import AsyncLine, AsyncWire", "from .io_sync import Line, Wire"),
    (r"\basync def\b", "def"),
    (r"\basync (for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Host|Session|Channel|Wire|Line|Iterator)\b", r"\1"),
    (r"\baconnect\b", "connect"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
]
NOTE = '''"""The client without asyncio. Made from aio.py by scripts/make_sync.py: change that file, not this one."""
'''


def sync_source() -> str:
    source = (CLIENT / "aio.py").read_text()
    source = NOTE + source.split('"""', 2)[2].lstrip("\n").join(["\n", ""])
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return source


if __name__ == "__main__":
    target = CLIENT / "sync.py"
    if "--check" in sys.argv:
        sys.exit(
            0 if target.read_text() == sync_source() else "client/sync.py is stale: run scripts/make_sync.py"
        )
    target.write_text(sync_source())
