"""Make the sync client, sync.py and work_sync.py, from the async one: the same without the waiting."""

from __future__ import annotations

import pathlib
import re
import sys

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "src" / "holdfast" / "client"
SOURCES = {"aio.py": "sync.py", "work.py": "work_sync.py", "run_state.py": "run_state_sync.py",
           "stepped.py": "stepped_sync.py", "tasks.py": "tasks_sync.py",
           "verification.py": "verification_sync.py"}  # fmt: skip
RULES = [
    (r"from \.work_aio import AsyncBeat, AsyncDirect, ", "from .work_io import Beat, Direct, "),
    (r"from \.tasks import CHANGING, AsyncTasks", "from .tasks_sync import CHANGING, Tasks"),
    (r"from \.verification import", "from .verification_sync import"),
    (r"from \.work import AsyncWork", "from .work_sync import Work"),
    (r"from \.run_state import AsyncRunState", "from .run_state_sync import RunState"),
    (r"from collections\.abc import Callable, Coroutine", "from collections.abc import Callable"),
    (r"Coroutine\[Any, Any, (\w+)\]", r"\1"),
    (r"from \.stepped import AsyncExecs", "from .stepped_sync import Execs"),
    (r"from \.aio import AsyncSession, plain_text", "from .sync import Session, plain_text"),
    (r"from \.aio import AsyncHost", "from .sync import Host"),
    (r"from \.io_async import AsyncLine, AsyncWire", "from .io_sync import Line, Wire"),
    (r"\basync def\b", "def"),
    (r"\basync (for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Host|Session|Channel|Wire|Line|Iterator|Work|Run|RunState|Beat|Direct|Execs|Tasks)\b", r"\1"),
    (r"\baconnect\b", "connect"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
]
NOTE = '''"""The client without asyncio. Made from {source} by scripts/make_sync.py: change that file, not this one."""
'''


def sync_source(name: str) -> str:
    source = (CLIENT / name).read_text()
    source = NOTE.format(source=name) + source.split('"""', 2)[2].lstrip("\n").join(["\n", ""])
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return source


if __name__ == "__main__":
    for name, made in SOURCES.items():
        target = CLIENT / made
        if "--check" not in sys.argv:
            target.write_text(sync_source(name))
        elif target.read_text() != sync_source(name):
            sys.exit(f"client/{made} is stale: run scripts/make_sync.py")
