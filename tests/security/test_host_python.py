"""What the host starts for itself obeys the host alone: no caller's variable, folder or Python set-up has a say in it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.model.home import ENV
from tests.support.home import HomeForTests, until
from tests.support.kernels import LONG, add_spec

PACKAGE = Path(holdfast.__file__).parent
# Started by a command for its caller, with the caller's own Python set-up; -P: but not the folder that it stands in.
FOR_CALLERS = {
    "cli/work/worker.py",
    "cli/work/work_run.py",
    "cli/agents/mcp.py",
    "cli/admin/web.py",
    "cli/agents/connect.py",
    "cli/admin/demo/demo_home.py",
}
# Not the product at work: programs of the guided tour, in a folder that it made.
TOUR = {
    "cli/admin/demo/durable_story.py",
    "cli/admin/demo/agent_story.py",
    "cli/admin/demo/session_story.py",
    "cli/admin/demo/sharing_story.py",
    "cli/admin/demo/task_story.py",
}


def interpreters() -> list[tuple[str, str]]:
    """(file, first option) of every command in the package that begins with our own Python."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.List | ast.Tuple) or len(node.elts) < 2:
                continue
            if "sys.executable" not in ast.unparse(node.elts[0]) or isinstance(node.elts[0], ast.JoinedStr):
                continue
            option = node.elts[1]
            told = str(option.value) if isinstance(option, ast.Constant) else "?"
            found.append((str(path.relative_to(PACKAGE)), told))
    return found


def test_every_python_that_we_start_is_isolated_from_its_surroundings() -> None:
    found = interpreters()
    assert {
        "host/sessions/zygote.py",
        "host/web/web_process.py",
        "host/sessions/jupyter_kernel.py",
        "host/sessions/manifest.py",
        "client/admin/launch_host.py",
    } <= {f for f, _ in found}
    for file, option in found:
        if file not in TOUR:
            assert option == ("-P" if file in FOR_CALLERS else "-I"), f"{file} starts a Python with {option}"


def a_python_with_a_user_site(folder: Path) -> str:
    """An interpreter that reads ~/.local, as one that is not in a virtual environment does, with our packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    base = os.path.realpath(sys.executable)
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = true\n")
    ours = [path for path in sys.path if path.endswith("-packages")]
    (packages / "ours.pth").write_text("\n".join([*ours, str(PACKAGE.parent)]) + "\n")
    specs = folder / "share" / "jupyter" / "kernels" / "python3"
    specs.mkdir(parents=True)
    argv = [str(folder / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (specs / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "x", "language": "python"}))
    return str(folder / "bin" / "python")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A user's folder whose Python set-up tells which programs obeyed it; `ran` is there when one did."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = tmp_path / "planted" / ".local" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    code = f"import sys; open({str(tmp_path / 'ran')!r}, 'a').write(' '.join(sys.orig_argv) + chr(10))"
    (packages / "planted.pth").write_text(code + "\n")
    return tmp_path / "planted"


def test_a_caller_s_home_runs_nothing_in_the_host_s_helpers(hold: HomeForTests, planted: Path, tmp_path: Path) -> None:
    python = a_python_with_a_user_site(tmp_path / "python")
    ran = tmp_path / "ran"

    def command(*words: str) -> subprocess.CompletedProcess[bytes]:
        whole = [python, "-m", "holdfast.cli.main", *words]
        return subprocess.run(whole, env=hold.env, capture_output=True, timeout=LONG, check=False)

    assert command("status").returncode == 0
    refused = command("run", "-d", "--kernel", "nosuch", "-e", f"HOME={planted}")
    assert (refused.returncode, b"python3" in refused.stderr) == (3, True)
    assert not ran.exists()  # nothing was approved or started: it was only looked for
    started = command("run", "-d", "--kernel", "python3", "-n", "calc", "-e", f"HOME={planted}", "-e", "WORD=kept")
    assert started.returncode == 0, started.stderr
    done = command("exec", "calc", "import os; print(os.environ['HOME'], os.environ['WORD'])")
    assert done.stdout.decode() == f"{planted} kept\n"  # the kernel itself has its session's environment
    obeyed = ran.read_text().splitlines()
    assert obeyed, "a Python that reads the user's set-up does run it: the trap works"
    assert all("ipykernel_launcher" in line for line in obeyed), obeyed


@pytest.mark.parametrize("name", ["JUPYTER_PATH", "JUPYTER_DATA_DIR", "XDG_DATA_HOME", "HOME"])
def test_kernels_are_found_in_the_host_s_list_alone(hold: HomeForTests, tmp_path: Path, name: str) -> None:
    spec = {"argv": ["/bin/true", "{connection_file}"], "display_name": "x", "language": "x"}
    add_spec(tmp_path, "theirs", spec)
    (tmp_path / "home2" / ".local").mkdir(parents=True)
    (tmp_path / "home2" / ".local" / "share").symlink_to(tmp_path)
    value = {"HOME": tmp_path / "home2", "XDG_DATA_HOME": tmp_path}.get(name, tmp_path / "jupyter")
    hold("status")  # the host is there, with an environment of its own
    refused = hold("run", "-d", "--kernel", "theirs", "-e", f"{name}={value}")
    assert (refused.code, refused.err.count("\n")) == (3, 1)


def test_the_host_and_its_helpers_have_nothing_of_the_caller_s_that_changes_a_program(
    hold: HomeForTests, tmp_path: Path
) -> None:
    caller = {
        "PYTHONPATH": str(tmp_path),
        "PYTHONSTARTUP": "/nowhere",
        "LD_LIBRARY_PATH": str(tmp_path),
        "GCONV_PATH": str(tmp_path),
    }
    hold.env.update(caller)
    assert hold("up", "--web", "0", timeout=LONG).code == 0
    assert hold("run", "-d", "-n", "calc", "--kernel", "python3", timeout=LONG).code == 0
    until(lambda: hold.host.session("calc").status().kernel["pid"], LONG)  # type: ignore[index]

    def helpers() -> list[str]:
        found = []
        for pid in hold._left():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                variables = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "ipykernel_launcher" in words or f"{ENV}={hold.path}" not in variables:
                continue  # the session's own
            names = {one.partition("=")[0] for one in variables}
            assert not names & caller.keys(), words
            assert "hold-keeper" in words[0] or "-I" in words, words
            found.append(" ".join(words))
        return found

    told = "\n".join(helpers())
    for role in ("host/__main__.py", "keeper/__main__.py", "console/__main__.py", "jupyter/__main__.py"):
        assert role in told, told
