"""What the workers of tests/crash/test_checkpoint_kill.py do, until they are killed. Truth is kept in files beside."""

from __future__ import annotations

import json
from typing import Any

from holdfast.delta import encode
from holdfast.delta.value_codec import JSON
from holdfast.store.open import open_store
from holdfast.work.service import Work
from holdfast.work.threads.threads import Threads
from tests.support.killing import note
from tests.support.mortal import Boundaries

Json = dict[str, Any]


async def saves(job: Json, boundaries: Boundaries) -> None:
    """Messages, values, milestones, a checkpoint from the log, a snapshot, a restore and a fork."""
    folder = job["folder"]
    store = await open_store(job["url"])
    work = Work(store, "op_worker")
    made = await work.begin_run(task=job["task"], worker="w")
    mine = {"run": made["run"], "epoch": made["epoch"]}
    note(f"{folder}/acks", json.dumps(["run", made["run"]]))
    await work.memory_append(message={"role": "user", "content": "first"}, **mine)
    note(f"{folder}/acks", json.dumps(["message", "first"]))
    for goal in ("a", "b" * 3000):  # the second is so much larger that a snapshot follows
        saved = await work.checkpoint_save(state={"goal": goal, "plan": [goal[:1]]}, **mine)
        note(f"{folder}/acks", json.dumps(["saved", saved["seq"], saved["hash"]]))
        await work.checkpoints.drain()
    await work.memory_append(message={"role": "user", "content": "second"}, **mine)
    note(f"{folder}/acks", json.dumps(["message", "second"]))
    await work.checkpoints.save_from_log(mine["run"])
    restored = await work.checkpoint_restore(seq=1, **mine)
    note(f"{folder}/acks", json.dumps(["saved", restored["seq"], restored["hash"]]))
    forked = await work.checkpoint_fork(run=mine["run"], seq=1)
    note(f"{folder}/acks", json.dumps(["forked", forked["run"]]))
    await store.close()


async def prunes(job: Json, boundaries: Boundaries) -> None:
    """A thread that grows in a chain of changes, and is then pruned: twice, so that a survivor is made whole."""
    folder, thread = job["folder"], job["task"]
    store = await open_store(job["url"])
    threads = Threads(store, JSON)
    messages: list[str] = []
    parent = None
    for n in range(4):
        messages.append(f"message {n}" * 20)
        state = {"messages": messages}
        await threads.put(thread, "", f"c{n}", parent=parent, state=state, meta=b"", graph_run=f"{thread} {n % 2}")
        note(f"{folder}/acks", json.dumps([f"c{n}", encode.state_hash(state)]))
        parent = f"c{n}"
    note(f"{folder}/acks", json.dumps(["going", 0]))
    await threads.delete_runs([f"{thread} 0"])
    note(f"{folder}/acks", json.dumps(["gone", 0]))
    await threads.prune([thread], lambda found: False)
    await threads.drain()
    await store.close()
