"""What the workers of tests/crash/test_store_kill.py do, until they are killed. Truth is kept in plain files beside."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

from holdfast.store.open import open_store
from holdfast.work.service import Work
from tests.support.mortal import Boundaries

Json = dict[str, Any]
STEPS = [("pay", "unsafe"), ("copy", "verifiable"), ("tag", "idempotent"), ("look", "none")]


def note(path: str, line: str) -> None:
    """One line, whole or not at all: a killed process leaves what the kernel took."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except FileNotFoundError:
        return []


async def steps(job: Json, boundaries: Boundaries) -> None:
    """Begin or take over the task's run, and do what is not done yet."""
    folder, task = job["folder"], job["task"]
    store = await open_store(job["url"])
    work = Work(store, "op_worker")
    made = await work.begin_run(task=task, items=[key for key, _ in STEPS], params={"n": 1}, worker="w")
    note(f"{folder}/acks", f"run {made['run']}")
    mine = {"run": made["run"], "epoch": made["epoch"]}
    for key, effect in STEPS if made["state"] == "active" else ():
        step = {"key": key, "effect": effect, "args": [key], **mine}
        begun = await work.step_begin(**step)
        if begun["decision"] == "in_doubt":
            happened = lines(f"{folder}/effects").count(key)
            await work.step_settle(
                key=key, outcome="done" if happened else "not_done", result=key * 50, evidence="looked", **mine
            )
            note(f"{folder}/acks", f"settled {key}")
            begun = await work.step_begin(**step)
        if begun["decision"] == "reuse":
            assert begun["result"] == key * 50
            continue
        note(f"{folder}/acks", f"begun {key}")
        boundaries.tick()
        note(f"{folder}/effects", key)
        boundaries.tick()
        await work.step_end(result=key * 50, **step)
        note(f"{folder}/acks", f"ended {key}")
    if made["state"] == "active":
        await work.run_end(outcome="all", **mine)
    note(f"{folder}/acks", "finished")
    await store.close()


def content(text: str) -> tuple[str, str]:
    raw = text.encode()
    return hashlib.sha256(raw).hexdigest(), base64.b64encode(raw).decode()


async def artifacts(job: Json, boundaries: Boundaries) -> None:
    """Put, replace, send in pieces, remove, collect."""
    folder, task = job["folder"], job["task"]
    store = await open_store(job["url"])
    work = Work(store, "op_worker")
    run = (await work.begin_run(task=task))["run"]
    for name, text in (("a", task + "one"), ("a", task + "two"), ("b", task + "two")):
        sha256, data = content(text)
        await work.artifact_put(run=run, name=name, data=data)
        note(f"{folder}/acks", f"put {name} {sha256}")
    half = task * 1000
    sha256, _ = content(half + "end")
    for n, part in enumerate((half, "end")):
        await work.artifact_piece(sha256=sha256, piece=n, data=content(part)[1])
    await work.artifact_put(run=run, name="large", sha256=sha256)
    note(f"{folder}/acks", f"put large {sha256}")
    await work.artifact_piece(sha256=content(task + "lost")[0], piece=0, data=content("never finished")[1])
    await work.artifact_gc(older_s=0)
    note(f"{folder}/acks", f"rm a {content(task + 'two')[0]}")
    await work.artifact_rm(run=run, name="a")
    await work.artifact_rm(run=run, name="large")
    note(f"{folder}/acks", "finished")
    await store.close()


async def takeover(job: Json, boundaries: Boundaries) -> None:
    """Take a run whose worker left two steps open."""
    store = await open_store(job["url"])
    made = await Work(store, "op_worker").begin_run(run=job["run"], worker="w")
    note(f"{job['folder']}/acks", f"epoch {made['epoch']}")
    await store.close()


async def claiming(job: Json, boundaries: Boundaries) -> None:
    """Find the run that another worker gave back with a step open, and park it there."""
    store = await open_store(job["url"])
    work = Work(store, "op_worker")
    got = await work.run_claim(jobs=[job["job"]], worker="w2")
    note(f"{job['folder']}/acks", f"epoch {got['epoch']}")
    await work.run_park(run=got["run"], epoch=got["epoch"], key="pay")
    note(f"{job['folder']}/acks", "parked")
    await store.close()
