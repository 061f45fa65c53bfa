"""Finding a kernelspec: where Jupyter's code is not installed, one line says what to do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast.host.sessions import jupyter_kernel
from holdfast.model.errors import HoldfastError
from holdfast.system import programs


def test_a_python_without_jupyter_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", programs.FIND_KERNELSPEC, "python3"], capture_output=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == {"missing": "jupyter_client"}


async def test_the_extra_that_is_missing_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        jupyter_kernel, "_PYTHON", (sys.executable, "-I", "-S")
    )  # a real one, without installed packages
    with pytest.raises(HoldfastError) as refused:
        await jupyter_kernel.resolved({"kernel": "python3"})
    assert "jupyter_client" in refused.value.message
    assert "holdfast[kernel]" in refused.value.hint


async def test_what_a_caller_puts_in_place_of_the_name_is_refused() -> None:
    with pytest.raises(HoldfastError):
        await jupyter_kernel.resolved({"kernel": {"argv": ["sh"], "spec": "x"}})


async def test_without_a_kernel_nothing_is_looked_for() -> None:
    assert await jupyter_kernel.resolved({"command": ["ls"]}) == {"command": ["ls"], "kernel": None}


async def test_the_kernel_has_the_callers_environment_and_the_search_nothing_of_it(tmp_path: object) -> None:
    found = await jupyter_kernel.resolved({"kernel": "python3", "env": {"PYTHONPATH": str(tmp_path), "HOME": "/"}})
    assert found["kernel"]["spec"] == "python3"
    assert found["command"][0] == sys.executable
    assert found["env"]["PYTHONPATH"] == str(tmp_path)  # the kernel itself has all of it
