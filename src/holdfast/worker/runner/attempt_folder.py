"""A backend's input files in the home: attempts/RUN/contract.json and brief.md; removed with the attempt."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any


class Folder:
    """The files of one attempt."""

    def __init__(self, home: str, run: str) -> None:
        self.path = os.path.join(home, "attempts", run)
        self.contract = os.path.join(self.path, "contract.json")
        self.brief = os.path.join(self.path, "brief.md")

    def write(self, contract: dict[str, Any], brief: bytes) -> None:
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        _put(self.contract, json.dumps(contract, indent=2).encode() + b"\n")
        _put(self.brief, brief)

    def read_contract(self) -> dict[str, Any]:
        try:
            with open(self.contract, "rb") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def left_behind(home: str) -> list[str]:
    """Runs that have files here: active attempts, and those that ended while no runner was there."""
    try:
        return sorted(n for n in os.listdir(os.path.join(home, "attempts")) if n.startswith("run_"))
    except OSError:
        return []


def _put(path: str, data: bytes) -> None:
    """Write a file whole or not at all: a running program may be reading it."""
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)
