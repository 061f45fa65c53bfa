"""The shape of the source: small folders, small classes, packages that say what they hold, handlers that stay apart.

The lists are what breaks a rule today, and may only shrink: take off what has been mended, rename what was renamed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES_MAX = 20  # in a folder: what can be read at a glance
METHODS_MAX = 25  # of a class, with those it inherits from ours
# The public classes of the SDK: what they can do is the contract's, and each method is one call.
PUBLIC_CLASSES = {
    "holdfast.client._async.host.AsyncHost",
    "holdfast.client._async.session.AsyncSession",
    "holdfast.client._async.work.AsyncRun",
    "holdfast.client._async.work.AsyncWork",
}
LARGE_CLASSES = {
    "holdfast.client._async.resume.AsyncBriefs",
    "holdfast.client._async.tasks.AsyncTasks",
    "holdfast.host.exec.start.Execs",
    "holdfast.host.inbox.inbox_host.Desk",
    "holdfast.host.operators.operators.Operators",
    "holdfast.host.sessions.session.Session",
    "holdfast.integrations.langgraph.HoldfastSaver",
    "holdfast.keeper.keeper.Keeper",
    "holdfast.store.postgres.PostgresStore",
    "holdfast.term.screen.Screen",
    "holdfast.work.blocking_calls.NearWork",
    "holdfast.work.service.Work",
    "holdfast.work.tasks.ops.TaskCalls",
    "holdfast.worker.runner.attempt.Attempt",
}
HANDLERS_OF_OTHERS: set[tuple[str, str]] = set()
GENERATED = "holdfast.client._sync."  # as large as what it is made from


@functools.cache
def modules(src: Path) -> list[tuple[str, Path, ast.Module]]:
    return list(_modules(src))


def _modules(src: Path) -> Iterator[tuple[str, Path, ast.Module]]:
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, path, ast.parse(path.read_text())


def imported(module: str, path: Path, tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(the name here, the module it comes from, its name there) of each `from x import y`, relative or not."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, origin, alias.name


def method_counts(src: Path) -> dict[str, int]:
    """How many methods each class has, with those of its bases in the package."""
    classes: dict[tuple[str, str], ast.ClassDef] = {}
    names: dict[str, dict[str, tuple[str, str]]] = {}
    for module, path, tree in modules(src):
        names[module] = {here: (origin, there) for here, origin, there in imported(module, path, tree)}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[module, node.name] = node

    def methods(module: str, name: str, seen: frozenset[tuple[str, str]]) -> set[str]:
        key = (module, name) if (module, name) in classes else names.get(module, {}).get(name, ("", ""))
        if key not in classes or key in seen:
            return set()
        found = {n.name for n in classes[key].body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        for base in classes[key].bases:
            inner = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(inner, ast.Name):
                found |= methods(key[0], inner.id, seen | {key})
        return found

    return {f"{module}.{name}": len(methods(module, name, frozenset())) for module, name in classes}


def handlers_of_others(src: Path) -> set[tuple[str, str]]:
    """Handler modules (`ops.py`) with the handler modules of other packages that they import."""
    found = set()
    for module, path, tree in modules(src):
        if is_handlers(module):
            for _, origin, name in imported(module, path, tree):
                for other in (origin, f"{origin}.{name}"):
                    if is_handlers(other) and other.rpartition(".")[0] != module.rpartition(".")[0]:
                        found.add((module, other))
    return found


def is_handlers(module: str) -> bool:
    last = module.rpartition(".")[2]
    return last == "ops" or last.endswith("_ops")


def large_folders(src: Path) -> dict[str, int]:
    folders = {path.parent for path in src.rglob("*.py")}
    counts = {str(f.relative_to(src)): sum(p.is_file() for p in f.iterdir()) for f in folders}
    return {name: count for name, count in counts.items() if count > FILES_MAX}


def silent_packages(src: Path) -> list[str]:
    return [
        str(p.relative_to(src))
        for _, p, tree in modules(src)
        if p.name == "__init__.py" and not ast.get_docstring(tree)
    ]


def test_no_folder_has_more_files_than_can_be_read_at_a_glance() -> None:
    assert large_folders(ROOT / "src") == {}


def test_every_package_says_what_lives_there() -> None:
    assert silent_packages(ROOT / "src") == []


def test_the_unit_tests_mirror_the_source() -> None:
    unit = ROOT / "tests/unit"
    folders = {p.parent for p in unit.rglob("test_*.py")} - {unit}
    lost = {str(f.relative_to(unit)) for f in folders if not (ROOT / "src/holdfast" / f.relative_to(unit)).is_dir()}
    assert lost == set()


def test_no_class_has_more_methods_than_one_thing_needs() -> None:
    counts = method_counts(ROOT / "src").items()
    large = {name for name, count in counts if count > METHODS_MAX and not name.startswith(GENERATED)}
    assert large - LARGE_CLASSES - PUBLIC_CLASSES == set(), "split them"


def test_no_handlers_import_those_of_another_package() -> None:
    assert handlers_of_others(ROOT / "src") - HANDLERS_OF_OTHERS == set(), "call the other package's own file instead"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A package that breaks every rule."""
    half = "\n".join(f"    def m{n}(self): ..." for n in range(METHODS_MAX))
    files = {
        "holdfast/__init__.py": "",
        "holdfast/a/__init__.py": '"""A."""',
        "holdfast/a/ops.py": "from ..b import ops\nfrom ..b.other_ops import x\nfrom . import more_ops",
        "holdfast/b/__init__.py": '"""B."""',
        "holdfast/b/half.py": f"class Half:\n{half}",
        "holdfast/b/whole.py": "from .half import Half\nclass Whole(Half):\n    def one(self): ...",
        **{f"holdfast/b/f{n}.py": "" for n in range(FILES_MAX)},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_each_rule_is_able_to_fail(bad: Path) -> None:
    assert large_folders(bad) == {"holdfast/b": FILES_MAX + 3}
    assert silent_packages(bad) == ["holdfast/__init__.py"]
    counts = method_counts(bad)
    assert (counts["holdfast.b.half.Half"], counts["holdfast.b.whole.Whole"]) == (METHODS_MAX, METHODS_MAX + 1)
    assert handlers_of_others(bad) == {("holdfast.a.ops", "holdfast.b.ops"), ("holdfast.a.ops", "holdfast.b.other_ops")}
