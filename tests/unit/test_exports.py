"""The public names of `holdfast`: each is there, each is listed, and every type that a public call returns is one."""

from __future__ import annotations

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
