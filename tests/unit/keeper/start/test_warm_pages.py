"""What the zygote does to its memory before keepers are forked from it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import holdfast

_SOURCE = str(Path(holdfast.__file__).parent.parent)
# In an interpreter as the zygote's: gaps everywhere, then filled. A block at the head of a pool is in a new one.
_PROGRAM = f"""
import sys
sys.path.insert(0, {_SOURCE!r})
from holdfast.keeper.start import warm_pages
made = [bytes(size - 33) for size in range(48, 2048, 16) for _ in range(500)]
del made[::3]
if sys.argv[1] == "filled":
    kept = warm_pages.fill_up()
heads = 0
for size in range(48, 513, 16):
    heads += id(bytes(size - 33)) % (16 << 10) == 48
print(heads, len(range(48, 513, 16)))
"""


def _heads(how: str) -> tuple[int, int]:
    words = [sys.executable, "-I", "-S", "-c", _PROGRAM, how]
    heads, sizes = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    return int(heads), int(sizes)


def test_what_a_keeper_makes_begins_on_new_pages_whatever_gaps_the_zygote_had() -> None:
    heads, sizes = _heads("filled")
    # A few sizes are those of what the interpreter itself makes and drops between two lines.
    assert heads >= sizes - 4
    assert _heads("as it is")[0] < sizes // 2


def test_filling_the_gaps_ends_where_the_allocator_is_another_one() -> None:
    program = f"import sys; sys.path.insert(0, {_SOURCE!r}); from holdfast.keeper.start import warm_pages; warm_pages.fill_up()"
    words = [sys.executable, "-S", "-c", program]
    for allocator in ("malloc", "malloc_debug", "pymalloc_debug"):
        subprocess.run(words, env={"PYTHONMALLOC": allocator}, timeout=60, check=True)


def test_zygotes_of_one_home_rehearse_beside_each_other(tmp_path: Path) -> None:
    """A host that was killed and the next one have one each, for a moment."""
    for left in ("rehearsal", "rehearsal.0"):  # by those that were killed, of before too
        (tmp_path / "roles" / left / "out").mkdir(parents=True)
        (tmp_path / "roles" / left / "keeper.lock").touch()
    lines, zygotes = [], []
    for _ in range(4):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-I", "-S", f"{_SOURCE}/holdfast/keeper/__main__.py", str(tmp_path / "roles")]
        zygotes.append(subprocess.Popen(words, stdin=theirs.fileno(), stderr=subprocess.PIPE, cwd="/"))
        lines.append(ours)
        theirs.close()
    for line, zygote in zip(lines, zygotes, strict=True):
        line.settimeout(60)
        ready = line.recv(1)
        line.close()
        assert (ready, zygote.communicate(timeout=60)[1]) == (b"r", b"")
    assert [name for name in os.listdir(tmp_path / "roles") if name.startswith("rehearsal")] == []
