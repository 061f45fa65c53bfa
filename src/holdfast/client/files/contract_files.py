"""Whether a contract's verification could run here: looked at by whoever writes the contract, never by the host."""

from __future__ import annotations

import os

from ...model.work import task_contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def check(given: Mapping[str, Any], title: str | None, before: dict[str, Any] | None, root: str) -> None:
    """Refuse verification that could never pass. A root on another machine is not looked into."""
    body, _ = task_contract.check(given, title=title, before=before)
    if before is not None and body["verification"] == before["verification"]:
        return
    faults = task_contract.impossible(body, root, _look) if os.path.isdir(root) else []
    if faults:
        raise task_contract.bad("the contract", faults)


def _look(path: str) -> str | None:
    """What is wrong with a program, if anything."""
    if os.path.isdir(path):
        return "is a folder"
    if not os.path.exists(path):
        return "is not there (if the task is to make it, name it in artifacts)"
    return None if os.access(path, os.X_OK) else "is not executable"
