"""Bounds of the code's structure: no class of many methods, and no room that reaches into another's handlers."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import holdfast
import holdfast.host
from holdfast.api.operation import load_all
from holdfast.host.handlers import collected, complete

METHODS_MAX = 25  # a class of more is several, whatever its mixins are called
# Those that are to be taken apart, with what they have now: they may lose methods, and gain none.
LARGER = {
    "holdfast.host.exec.start.Execs": 33,
    "holdfast.host.inbox.inbox_host.Desk": 26,
    "holdfast.host.operators.operators.Operators": 26,
    "holdfast.host.sessions.registry.Registry": 29,
    "holdfast.work.blocking_calls.Beside": 100,
    "holdfast.work.blocking_calls.NearWork": 101,
    "holdfast.work.service.Work": 100,
    "holdfast.work.tasks.ops.TaskCalls": 32,
}
SOURCE = Path(holdfast.__file__).parent


def methods(kind: type) -> int:
    """Functions of a class and of its bases that are ours, without the special ones."""
    ours = [part for part in kind.__mro__ if part.__module__.startswith("holdfast.")]
    names = {n for part in ours for n, f in vars(part).items() if inspect.isfunction(f) or isinstance(f, staticmethod)}
    return len([n for n in names if not n.startswith("__")])


def test_no_class_of_the_host_or_the_work_plane_has_many_methods() -> None:
    found = {}
    for package in ("host", "work", "api"):
        for module in pkgutil.walk_packages([str(SOURCE / package)], f"holdfast.{package}."):
            if module.name.endswith("__main__"):
                continue
            for kind in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(kind) and kind.__module__ == module.name and methods(kind) > METHODS_MAX:
                    found[f"{kind.__module__}.{kind.__qualname__}"] = methods(kind)
    assert found.keys() <= LARGER.keys(), found
    assert all(found[name] <= LARGER[name] for name in found), found


def test_no_room_imports_the_handlers_of_another() -> None:
    reaching = []
    for path in (SOURCE / "host").rglob("*.py"):
        if path.name == "rooms.py":  # which gives each room its record
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.ImportFrom | ast.Import) else []
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if module.split(".")[-1] == "ops" or any(name.split(".")[-1] == "ops" for name in names):
                reaching.append(str(path.relative_to(SOURCE)))
    assert reaching == []


def test_two_handlers_of_one_operation_are_refused() -> None:
    from holdfast.host.web import ops

    assert set(collected([(ops, None)])) < load_all().keys()
    with pytest.raises(TypeError, match="has two handlers"):
        collected([(ops, None), (ops, None)])
    with pytest.raises(TypeError, match="no handler for token_add"):
        complete(load_all().keys() - {"token_add"})
