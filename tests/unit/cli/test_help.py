"""Every command explains itself, and asking for that starts nothing and loads little."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.cli.main import COMMANDS, parser_for

# What agents call again and again: the time of each is mostly Python's start.
QUICK = ("ls", "status", "ps", "ports", "files", "wait", "send", "stop", "kill", "who", "screen")
HEAVY = {"dataclasses", "datetime", "asyncio", "msgspec", "re2", "tomllib", "difflib", "inspect", "pyghostty"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_purpose_and_an_example(name: str) -> None:
    parser = parser_for(name)
    purpose, _, rest = (parser.description or "").partition("\n")
    assert purpose
    assert f"hold {name}" in rest or name in ("ls", "demo")  # these explain themselves
    assert "usage: hold " + name in parser.format_help()


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_command_loads_nothing_heavy(name: str) -> None:
    code = (
        "import sys; from holdfast.cli.main import parser_for;"
        f"before = set(sys.modules); parser_for({name!r}); print(*set(sys.modules) - before)"
    )
    run = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    loaded = subprocess.run(run, capture_output=True, check=True, text=True).stdout.split()
    assert not HEAVY & set(loaded)
