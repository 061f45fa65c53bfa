"""The import contracts hold, and each of them is able to fail."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The contract's id, and the modules which, added to a copy of the package, must break it. Modules called
# `anything` stand for one that may not be imported from there; each `intruder` gets its row's number, so that one look
# at all of them tells them apart.
VIOLATIONS: list[tuple[str, dict[str, str]]] = [
    ("layers", {"holdfast.model.intruder": "import holdfast.wire"}),
    ("layers", {"holdfast.log.intruder": "import holdfast.host"}),
    ("layers", {"holdfast.term.intruder": "import holdfast.wire"}),
    ("layers", {"holdfast.wire.intruder": "import holdfast.system"}),
    ("layers", {"holdfast.store.intruder": "import holdfast.work.anything", "holdfast.work.anything": ""}),
    ("layers", {"holdfast.host.intruder": "import holdfast.keeper"}),
    ("layers", {"holdfast.host.intruder": "import holdfast.jupyter"}),
    ("layers", {"holdfast.client.intruder": "import holdfast.worker"}),
    ("layers", {"holdfast.cli.intruder": "import holdfast.worker"}),
    ("layers", {"holdfast.cli.intruder": "import holdfast.mcp.anything", "holdfast.mcp.anything": ""}),
    ("layers", {"holdfast.intruder.anything": ""}),  # a package that no layer names
    ("roles", {"holdfast.cli.intruder": "import holdfast.host"}),
    ("roles", {"holdfast.worker.intruder": "import holdfast.host"}),
    ("roles", {"holdfast.client.intruder": "import holdfast.keeper"}),
    ("roles", {"holdfast.cli.intruder": "import holdfast.jupyter"}),
    ("work-plane", {"holdfast.mcp.intruder": "import holdfast.store.anything", "holdfast.store.anything": ""}),
    ("work-plane", {"holdfast.cli.intruder": "import holdfast.work"}),
    ("surfaces", {"holdfast.cli.intruder": "import holdfast.wire.keeper_frames"}),
    ("surfaces", {"holdfast.mcp.intruder": "def later():\n    import holdfast.term.plain_text"}),
    ("surfaces", {"holdfast.console.intruder": "import holdfast.system.kernel"}),
    ("layers", {"holdfast.wire.intruder": "import holdfast.api"}),
    ("api", {"holdfast.api.intruder": "import holdfast.wire"}),
    ("api", {"holdfast.api.work.intruder": "def later():\n    import holdfast.system.kernel"}),
    ("testing", {"holdfast.client.intruder": "import holdfast.testing"}),
    ("keeper", {"holdfast.keeper.intruder": "import holdfast.term.anything", "holdfast.term.anything": ""}),
    ("keeper", {"holdfast.keeper.intruder": "import holdfast.store.anything", "holdfast.store.anything": ""}),
    ("keeper", {"holdfast.keeper.intruder": "import holdfast.testing"}),
    ("keeper-small", {"holdfast.keeper.intruder": "import asyncio"}),
    (
        "keeper-small",
        {"holdfast.keeper.anything": "import holdfast.wire.intruder", "holdfast.wire.intruder": "import msgspec"},
    ),
    ("pure", {"holdfast.model.intruder": "import time"}),
    ("pure", {"holdfast.wire.intruder": "import socket"}),
    ("pure", {"holdfast.term.intruder": "def later():\n    import threading"}),
    ("pure", {"holdfast.wire.sealed.intruder": "import time"}),
    ("sealed", {"holdfast.relay.intruder": "import holdfast.wire.sealed.channel"}),
    ("sealed", {"holdfast.client.intruder": "def later():\n    import holdfast.wire.sealed.noise"}),
]


def contract_names() -> dict[str, str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {c["id"]: c["name"] for c in config["tool"]["importlinter"]["contracts"]}


def lint_imports(tree: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    if contract is not None:
        command += ["--contract", contract]
    # PYTHONPATH comes before the installed copy; a wide terminal keeps a contract's name on one line.
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)


def copy_tree(target: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", target)
    shutil.copytree(ROOT / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return target


def add_module(tree: Path, name: str, source: str = "") -> None:
    """Write a module, and whichever of its parent packages do not exist yet; keep one that is there."""
    *parents, leaf = name.split(".")
    folder = tree / "src"
    for parent in parents:
        folder /= parent
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    with (folder / f"{leaf}.py").open("a") as module:
        module.write(source + "\n")


def test_every_contract_is_kept_by_the_package_as_it_is() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_contract_has_a_violation_that_breaks_it() -> None:
    assert {contract for contract, _ in VIOLATIONS} == set(contract_names())


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each contract, by its id, where all of them are violated at once."""
    tree = copy_tree(tmp_path_factory.mktemp("violated"))
    for n, (_, modules) in enumerate(VIOLATIONS):
        for name, source in modules.items():
            add_module(tree, intruder(name, n), intruder(source, n))
    result = lint_imports(tree)
    assert result.returncode == 1, result.stdout + result.stderr
    said, _, reasons = result.stdout.partition("Broken contracts\n")
    found = dict.fromkeys(contract_names(), "")
    for id, name in contract_names().items():
        if f"{name} BROKEN" in said:
            found[id] = reasons.partition(f"{name}\n{'-' * len(name)}\n")[2].partition("\n----")[0]
    return found


def intruder(text: str, n: int) -> str:
    return text.replace("intruder", f"intruder_{n}_")


@pytest.mark.parametrize(
    ("n", "contract"),
    [(n, contract) for n, (contract, _) in enumerate(VIOLATIONS)],
    ids=[f"{contract}-{'-'.join(modules)}" for contract, modules in VIOLATIONS],
)
def test_a_violating_import_breaks_the_contract(n: int, contract: str, broken: dict[str, str]) -> None:
    assert f"intruder_{n}_" in broken[contract]


def test_the_keeper_may_import_what_its_contract_allows(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    parts = ("log.anything", "system.anything", "wire.anything", "model.anything", "term.queries")
    allowed = [f"holdfast.{part}" for part in parts]
    for name in allowed:
        add_module(tree, name)
    add_module(tree, "holdfast.keeper.guest", "\n".join(f"import {name}" for name in allowed))
    result = lint_imports(tree, "keeper")
    assert result.returncode == 0, result.stdout + result.stderr
