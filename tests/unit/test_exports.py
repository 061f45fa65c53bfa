"""The public names of `holdfast`: each is there, each is listed, and every type that a public call returns is one."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

PUBLIC = [
    "Ask",
    "AsyncChannel",
    "AsyncHost",
    "AsyncRun",
    "AsyncSession",
    "AsyncWork",
    "Channel",
    "Chunk",
    "ExecResult",
    "Fenced",
    "HoldfastError",
    "Host",
    "Jobs",
    "Port",
    "Run",
    "Screen",
    "Session",
    "SessionStatus",
    "StepInDoubt",
    "WaitResult",
    "Work",
    "__version__",
    "aconnect",
    "connect",
]
# Words in annotations that name no type of ours; the wire is for surfaces, which have it from `client`.
NOT_OURS = {
    "Any",
    "AsyncIterator",
    "Iterator",
    "Json",
    "None",
    "Self",
    "bool",
    "bytes",
    "int",
    "list",
    "str",
    "tuple",
    "AsyncHostConnection",
    "HostConnection",
}


def test_the_public_names_are_these_and_dir_shows_them() -> None:
    assert sorted(holdfast.__all__) == dir(holdfast) == PUBLIC
    for name in PUBLIC:
        assert getattr(holdfast, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        holdfast.nothing  # noqa: B018


@pytest.mark.parametrize(
    "name", ["Host", "Session", "Work", "Run", "AsyncHost", "AsyncSession", "AsyncWork", "AsyncRun"]
)
def test_what_a_public_call_returns_is_public(name: str) -> None:
    returned = set()
    for attribute, value in inspect.getmembers(getattr(holdfast, name)):
        function = value.fget if isinstance(value, property) else value
        if not attribute.startswith("_") and hasattr(function, "__annotations__"):
            returned |= set(re.findall(r"\w+", str(function.__annotations__.get("return"))))
    assert returned - NOT_OURS <= set(PUBLIC)


def test_a_type_checker_and_the_program_find_the_same_public_names() -> None:
    """The names are loaded when they are asked for; beside that stand the imports for type checkers."""
    tree = ast.parse(Path(str(holdfast.__file__)).read_text())
    checked = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test).endswith("TYPE_CHECKING")]
    declared = {alias.asname or alias.name for node in checked for inner in node.body for alias in inner.names}  # type: ignore[attr-defined]
    assert {name for name in PUBLIC if not name.startswith("__")} <= declared


def test_every_public_name_is_documented() -> None:
    for name in PUBLIC:
        value = getattr(holdfast, name)
        assert isinstance(value, str) or (inspect.getdoc(value) or "").strip(), name


def test_the_two_faces_have_the_same_calls() -> None:
    for name in ("Host", "Session", "Work", "Run", "Channel"):
        faces = [getattr(holdfast, name), getattr(holdfast, f"Async{name}")]
        calls = [{n for n in dir(face) if not n.startswith("_")} for face in faces]
        assert calls[0] == calls[1], name


def test_every_dependency_is_imported_somewhere() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    names = {"google-re2": "re2"}
    elsewhere = {"pyghostty", "websockets"}  # its library is loaded by path; uvicorn serves WebSockets with it
    wanted = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    sources = "\n".join(path.read_text() for path in (root / "src").rglob("*.py"))
    for line in wanted:
        package = re.split(r"[>=<;! ]", line)[0]
        module = names.get(package, package.replace("-", "_"))
        assert package in elsewhere or re.search(rf"^\s*(from|import) {module}\b", sources, re.MULTILINE), package


def test_importing_holdfast_loads_nothing_else() -> None:
    source = "import sys; before = set(sys.modules); import holdfast; print([m for m in set(sys.modules) - before if '.' in m])"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
