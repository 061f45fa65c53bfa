"""A session's commands on disk: one file, a line when a command begins and one when it has ended.

Appending to a file that is there costs a tenth of making one. A line cut off by a power loss spoils only itself,
because each begins on a line of its own.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...model import limits
from ...system.atomic_files import read_json, write_bytes

Json = dict[str, Any]

_OLD_BEGUN, _OLD_ENDED = ".json", ".done.json"  # what version 0.1 kept: a file of its own for each


def ended(record: Json) -> bool:
    return record["state"] in ("exited", "shell_ended")


class Results:
    """All commands of one session that are remembered, by exec id."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, "results.jsonl")
        self._ends = -1  # lines of ended commands in the file; -1: not counted yet
        self._names: set[str] | None = None  # who is in the file; None: not read yet

    def add(self, facts: Json) -> None:
        """Keep what is new about a command. In the file when this returns, so that our own death forgets none."""
        line = b"\n" + json.dumps(facts, separators=(",", ":")).encode()
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)
        if self._names is not None and "token" in facts:
            self._names.add(facts["exec_id"])
        if ended(facts):
            self._prune()

    def _prune(self) -> None:
        """In batches: the file is written anew once in 200 commands."""
        if self._ends >= 0:
            self._ends += 1
        else:
            self._ends = sum(map(ended, self.all().values()))
        if self._ends <= limits.EXECS_KEPT * 2:
            return
        every = self.all()
        for name in [name for name, record in every.items() if ended(record)][: -limits.EXECS_KEPT]:
            del every[name]
        kept = [json.dumps(record, separators=(",", ":")) for record in every.values()]
        write_bytes(self._path, "\n".join(["", *kept]).encode())
        self._ends = limits.EXECS_KEPT
        self._names = None

    def get(self, exec_id: str) -> Json | None:
        """One command, if it is remembered. Most that are asked for are new: for those the file need not be read."""
        if self._names is None:
            self._names = set(self.all())
        return self.all().get(exec_id) if exec_id in self._names else None

    def all(self) -> dict[str, Json]:
        """Every command, what was said last of it, in the order in which they began."""
        found = self._of_old()
        try:
            with open(self._path, "rb") as f:
                lines = f.read().split(b"\n")
        except FileNotFoundError:
            return found
        for line in lines:
            try:
                facts = json.loads(line) if line else None
            except ValueError:
                continue
            if isinstance(facts, dict) and "exec_id" in facts:
                found.setdefault(facts["exec_id"], {}).update(facts)
        return {name: record for name, record in found.items() if "token" in record}  # its beginning was kept

    def _of_old(self) -> dict[str, Json]:
        try:
            names = [n for n in os.listdir(self._folder) if n.endswith(_OLD_BEGUN)]
        except FileNotFoundError:
            return {}
        found: dict[str, Json] = {}
        for name in sorted(names, key=lambda n: n.endswith(_OLD_ENDED)):  # an ending replaces its beginning
            record = read_json(os.path.join(self._folder, name))
            if record is not None and "exec_id" in record:
                found[record["exec_id"]] = record
        return found
