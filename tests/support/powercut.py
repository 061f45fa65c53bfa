"""Power cuts under a working store. Run as `python -m tests.support.powercut FOLDER SYNCHRONOUS CUTS SEED [first-loss]` by `run`.

A worker writes steps to a store on ext4, on a loop device, on the disk of tests/support/disk.py. At random moments the
disk's content is taken as a power cut would leave it, mounted (which replays ext4's journal), and opened: everything
that the worker was told is on disk must be there. All of it lives in a mount namespace of its own, and each process
goes with the one that started it: whatever ends the test, the kernel takes mounts and loop devices away.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.needs import reason

Json = dict[str, Any]
_DISK_BYTES = 128 << 20  # room for the log at its longest, and the database
_CALLERS = 4  # so that commits are shared, too
_STEPS = 24  # of a worker's turn; the cut comes somewhere within it
_DEADLINE_S = 60.0
_TEXT = "x" * 2000
PROGRAMS = ("mkfs.ext4", "losetup", "mount", "umount", "unshare", "setpriv", "fusermount3")


def missing() -> str | None:
    """Why it cannot be done here; None where it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.path.exists(device):
            return f"there is no {device}"
    absent = reason(*PROGRAMS)
    if absent:
        return absent
    try:
        import mfusepy  # type: ignore[import-untyped]  # noqa: F401
    except (ImportError, OSError) as e:
        return f"no FUSE library: {e}"
    return None


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # a user's PATH may lack where mkfs and losetup are


def _bound(*words: str, **options: Any) -> subprocess.Popen[str]:
    """A child that ends when this process does."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], text=True, **options)


def run(folder: Path, synchronous: str, cuts: int, seed: int, timeout_s: float, *, first_loss: bool = False) -> Json:
    """{cuts, acknowledged, lost: […], damaged: […]}; or {cannot: why} where this machine does not let us mount.

    `first_loss`: that is enough."""
    words = [sys.executable, "-m", "tests.support.powercut", str(folder), synchronous, str(cuts), str(seed)]
    words += ["first-loss"] if first_loss else []
    rig = _bound(
        "unshare",
        "--mount",
        "--propagation",
        "private",
        *words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PATH": _path()},
    )
    try:
        out, err = rig.communicate(timeout=timeout_s)
    finally:
        rig.kill()
        rig.wait()
    if not out:
        return {"cannot": err[-500:]} if "Operation not permitted" in err else {"failed": err[-3000:]}
    found: Json = json.loads(out)
    return found


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# -- in the namespace --------------------------------------------------------------------------------------------------


def _do(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout.strip()


def _ask(child: subprocess.Popen[str], line: str | None) -> str:
    assert child.stdin is not None
    assert child.stdout is not None
    if line is not None:
        child.stdin.write(line + "\n")
        child.stdin.flush()
    return child.stdout.readline().strip()


@contextlib.contextmanager
def _mounted(file: str | Path, at: Path) -> Iterator[Path]:
    """`mount -o loop` gives its device back by itself, with the mount."""
    at.mkdir(exist_ok=True)
    _do("mount", "-t", "ext4", "-o", "loop", str(file), str(at))
    try:
        yield at
    finally:
        _do("umount", str(at))


def main() -> None:
    folder, synchronous, cuts, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    below = folder / "below"
    below.mkdir()
    disk = _bound(sys.executable, "-m", "tests.support.disk", str(below), str(_DISK_BYTES), **pipes)
    if _ask(disk, None) != "ready":
        raise RuntimeError("the disk did not start")
    _do("mkfs.ext4", "-q", "-F", "-b", "4096", str(below / "disk"))
    worker = None
    try:
        with _mounted(below / "disk", folder / "above") as above:
            try:
                words = ("tests.support.powercut", "work", str(above), synchronous, str(folder / "acks"))
                worker = _bound(sys.executable, "-m", *words, **pipes)
                found = _cuts(folder, disk, worker, cuts, random.Random(seed), "first-loss" in sys.argv)
            finally:
                if worker is not None:
                    worker.kill()
                    worker.wait()
    finally:
        disk.kill()  # its mount goes with it
        disk.wait()
    say(json.dumps(found))


def _cuts(
    folder: Path,
    disk: subprocess.Popen[str],
    worker: subprocess.Popen[str],
    cuts: int,
    chance: random.Random,
    first_loss: bool,
) -> Json:
    acks, image = folder / "acks", folder / "image"
    found: Json = {"cuts": 0, "acknowledged": 0, "lost": [], "damaged": []}
    if _ask(worker, None) != "ready":
        raise RuntimeError("the worker did not start")
    for n in range(cuts):
        assert worker.stdin is not None
        before = len(_lines(acks))
        worker.stdin.write("go\n")
        worker.stdin.flush()
        wanted, deadline = before + chance.randrange(1, 2 * _STEPS - 4), time.monotonic() + _DEADLINE_S
        while len(told := _lines(acks)) < wanted:
            if time.monotonic() > deadline or worker.poll() is not None:
                raise RuntimeError("the worker does not get on")
            time.sleep(0.001)
        # What was told before this moment was on disk before it.
        _ask(disk, f"{chance.randrange(1 << 30)} {image}")
        found["cuts"], found["acknowledged"] = n + 1, len(told)
        with _mounted(image, folder / "after") as after:
            try:
                lost = asyncio.run(_missing(after, told))
            except sqlite3.Error as e:
                found["damaged"].append(str(e))
                lost = []
        found["lost"] += [lost] if lost else []
        if first_loss and (found["lost"] or found["damaged"]):
            break
        assert worker.stdout is not None
        worker.stdout.readline()  # its turn is over
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return text[: text.rfind("\n") + 1].splitlines()


async def _missing(after: Path, told: list[str]) -> list[str]:
    """What was acknowledged and is not there."""
    from holdfast.store.open import open_store
    from holdfast.work.service import Work

    path = after / "work.db"
    if not path.exists():
        return told
    store = await open_store(f"sqlite:///{path}")
    work = Work(store)
    try:
        states = {
            (run["run"], s["key"]): (s["state"], s["result"])
            for run in await work.run_ls()
            for s in await work.step_ls(run=run["run"])
        }
    finally:
        await work.aclose()
        await store.close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
    lost = []
    for line in told:
        what, run, key = line.split()
        state, result = states.get((run, key), ("missing", None))
        if (what == "ended" and (state, result) != ("done", _TEXT)) or state == "missing":
            lost.append(line)
    return lost


# -- the worker --------------------------------------------------------------------------------------------------------


async def work(folder: str, synchronous: str, acks: str) -> None:
    """Steps, a turn for each line on stdin; each acknowledgement is noted outside of the disk that loses power."""
    from holdfast.store import sqlite, sqlite_file
    from holdfast.work.service import Work

    durable = sqlite_file.connect

    def connect(path: str, *, read_only: bool) -> sqlite3.Connection:
        database = durable(path, read_only=read_only)
        if synchronous != "as-shipped":
            database.execute(f"PRAGMA synchronous={synchronous}")
        return database

    sqlite_file.connect = connect
    plane = Work(await sqlite.SqliteStore.open(f"{folder}/work.db"), "op_worker")
    made = await plane.begin_run(worker="w", ttl_s=3600)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    fd = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def caller(turn: int, who: int) -> None:
        for n in range(_STEPS // _CALLERS):
            key = f"{turn}-{who}-{n}"
            await plane.step_begin(key=key, args=[key], **mine)
            os.write(fd, f"begun {made['run']} {key}\n".encode())
            await plane.step_end(key=key, result=_TEXT, **mine)
            os.write(fd, f"ended {made['run']} {key}\n".encode())

    say("ready")
    turn = 0
    while await asyncio.to_thread(sys.stdin.readline):
        turn += 1
        await asyncio.gather(*(caller(turn, who) for who in range(_CALLERS)))
        say("over")


if __name__ == "__main__":
    if sys.argv[1] == "work":
        asyncio.run(work(*sys.argv[2:5]))
    else:
        main()
