"""`hold connect`: each program's own files, changed by the byte, taken back exactly, and proven by a real call."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import HOLD, HomeForTests, Result, until
from tests.support.warm import Warm

pytestmark = pytest.mark.home("file")

FAKE = Path(__file__).parents[1] / "support" / "fake_claude.py"
SECRET = "sk-live-abcdefghijklmnop1234"
PROGRAMS = ["claude", "codex", "cursor", "vscode"]


class User:
    """Somebody with a home and a project of their own."""

    def __init__(self, hold: HomeForTests, folder: Path, warm: Warm) -> None:
        self.warm = warm
        self.hold, self.home, self.project = hold, folder / "user", folder / "project"
        self.home.mkdir()
        (self.project / ".git").mkdir(parents=True)
        drop = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
        self.env = {k: v for k, v in hold.env.items() if k not in drop} | {"HOME": str(self.home)}

    def __call__(self, *words: str, cwd: Path | None = None, **env: str) -> Result:
        return Result(self.warm.run("holdfast.cli.main", ["connect", *words], cwd or self.project, {**self.env, **env}))

    def tree(self) -> dict[str, bytes | None]:
        """Every file and folder of the home and the project."""
        return {
            str(p): p.read_bytes() if p.is_file() else None for d in (self.home, self.project) for p in d.rglob("*")
        }

    def claude(self, script: list[Any], tmp_path: Path) -> list[Any]:
        """The stand-in for Claude Code, with this user's configuration."""
        (tmp_path / "script.json").write_text(json.dumps(script))
        done = subprocess.run(
            [sys.executable, str(FAKE), str(tmp_path / "script.json")],
            cwd=self.project,
            timeout=110,
            env={**self.env, "HOLDFAST_HOME": "/nowhere"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Most of what `hold connect` takes is the reading of the MCP SDK, to prove what it wrote."""
    made = Warm("mcp", tmp_path_factory.mktemp("warm"))
    yield made
    made.close()


@pytest.fixture
def user(hold: HomeForTests, tmp_path: Path, warm: Warm) -> User:
    return User(hold, tmp_path, warm)


def written(user: User, program: str, scope: str) -> Path:
    """The file that names the server, as each program documents it."""
    mine = {
        "claude": ".claude.json",
        "codex": ".codex/config.toml",
        "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json",
    }
    shared = {
        "claude": ".mcp.json",
        "codex": ".codex/config.toml",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
    }
    return user.home / mine[program] if scope == "user" else user.project / shared[program]


def entry(path: Path, program: str) -> Any:
    if program == "codex":
        return tomllib.loads(path.read_text())["mcp_servers"]["holdfast"]
    return json.loads(path.read_text())["servers" if program == "vscode" else "mcpServers"]["holdfast"]


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_connected_and_proven_twice_is_nothing_to_do_and_undo_leaves_no_trace(
    user: User, program: str, scope: str
) -> None:
    before = user.tree()
    done = user(program, "--scope", scope, "--yes", "--json")
    assert done.code == 0, done.out
    assert done.json["written"] is True
    assert all(f["change"] == "made" for f in done.json["files"])
    proof = done.json["proof"]["server"]
    assert "status" in proof["tools"]
    assert proof["status"]["you"] == program
    found = entry(written(user, program, scope), program)
    assert os.path.isabs(found["command"])
    assert found["env"] == {"HOLDFAST_HOME": str(user.hold.path)}
    again = user(program, "--scope", scope, "--json")
    assert (again.code, again.json["written"], {f["change"] for f in again.json["files"]}) == (0, False, {"none"})
    undone = user(program, "--scope", scope, "--undo", "--yes")
    assert undone.code == 0, undone.err
    assert user.tree() == before


def test_what_was_in_a_file_stays_to_the_byte_with_its_mode_its_link_and_its_comments(
    user: User, tmp_path: Path
) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    real = dotfiles / "codex.toml"
    text = (
        f'# mine\nmodel = "o4"   # keep\n\n[mcp_servers.other]\ncommand = "x"\nenv = {{ TOKEN = "{SECRET}" }}\n\n[tui]'
    )
    real.write_bytes(text.encode())
    real.chmod(0o640)
    link = user.home / ".codex" / "config.toml"
    link.parent.mkdir()
    link.symlink_to(real)
    done = user("codex", "--yes")
    assert done.code == 0, done.err
    assert SECRET not in done.out + done.err, "the neighbourhood of a change is shown without its secrets"
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_text().startswith(text)
    assert tomllib.loads(real.read_text())["mcp_servers"]["other"]["env"]["TOKEN"] == SECRET
    assert SECRET not in (user.hold.path / "connections.json").read_text()
    assert user("codex", "--undo", "--yes").code == 0
    assert real.read_bytes() == text.encode()
    assert link.is_symlink()
    assert list(dotfiles.iterdir()) == [real]


def test_comments_stay_where_the_program_reads_them_and_refuse_where_it_does_not(user: User) -> None:
    text = '{\n  // servers of mine\n  "servers": {\n    "a": {"command": "x"}, // first\n  },\n  "inputs": []\n}\n'
    path = user.project / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text)
    assert user("vscode", "--scope", "project", "--yes").code == 0
    assert "// servers of mine" in path.read_text()
    assert "// first" in path.read_text()
    assert user("vscode", "--scope", "project", "--undo", "--yes").code == 0
    assert path.read_text() == text
    broken = user.project / ".mcp.json"
    broken.write_text(text)
    refused = user("claude", "--scope", "project", "--yes")
    assert refused.code == 1
    assert len(refused.err.splitlines()) == 1
    assert "line 2" in refused.err
    assert broken.read_text() == text
    assert not (user.project / ".claude").exists(), "of two files neither is written when one is broken"


def test_undo_takes_out_ours_and_keeps_what_came_since(user: User) -> None:
    path = user.home / ".cursor" / "mcp.json"
    assert user("cursor", "--yes").code == 0
    data = json.loads(path.read_text())
    data["mcpServers"]["later"] = {"command": "y"}
    path.write_text(json.dumps(data, indent=4))
    assert user("cursor", "--undo", "--yes").code == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"later": {"command": "y"}}}
    assert user("cursor", "--undo").out.strip() == f"{path}: nothing to do"


def test_nothing_is_written_without_a_yes(user: User) -> None:
    before = user.tree()
    unasked = user("claude")
    assert unasked.code == 2
    assert "--yes" in unasked.err
    shown = user("claude", "--print")
    assert shown.code == 0
    assert '+    "holdfast": {' in shown.out
    assert user.tree() == before
    for word, code in (("n", 1), ("y", 0)):
        assert at_a_terminal(user, word) == code
    assert entry(written(user, "cursor", "user"), "cursor")["args"][0] == "mcp"


def at_a_terminal(user: User, word: str) -> int:
    """Answer the question at a terminal; the exit code."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*HOLD, "connect", "cursor"], stdin=slave, stdout=subprocess.PIPE, stderr=slave, cwd=user.project, env=user.env
    )
    os.close(slave)
    try:
        said = b""
        while b"[y/N]" not in said:
            said += os.read(master, 4096)
        os.write(master, word.encode() + b"\n")
        process.communicate(timeout=110)
        return process.returncode
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_a_server_that_does_not_answer_is_said_so(user: User) -> None:
    """In the home that the server is told of no host can start; in one that is no folder nothing can be written."""
    home = user.home / "hf"
    (home / "host.lock").mkdir(parents=True)
    done = user("codex", "--yes", "--json", HOLDFAST_HOME=str(home))
    assert done.code == 1
    assert "--undo" in done.json["error"]["hint"]
    assert user("codex", "--undo", "--yes", HOLDFAST_HOME=str(home)).code == 0
    assert not (user.home / ".codex").exists()
    (user.home / "file").write_text("")
    done = user("codex", "--yes", "--json", HOLDFAST_HOME=str(user.home / "file" / "home"))
    assert done.code == 1
    assert "cannot be written" in done.json["error"]["message"]
    assert not (user.home / ".codex").exists()


def test_the_command_works_for_a_program_with_an_almost_empty_environment(user: User) -> None:
    assert user("codex", "--yes", VIRTUAL_ENV=str(Path(sys.executable).parents[1])).code == 0
    found = entry(written(user, "codex", "user"), "codex")
    done = subprocess.run(
        [found["command"], "--version"],
        env={"HOME": str(user.home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_claude_code_finds_its_server_and_its_hooks(user: User, tmp_path: Path) -> None:
    """What connect wrote is enough: the stand-in is started without any variable of ours."""
    assert user("claude", "--yes").code == 0
    start, tool, stop = user.claude(
        [
            ["SessionStart", {"source": "startup", "model": "x"}],
            ["mcp", {"tool": "run", "arguments": {"command": "exec sleep 60", "name": "held"}}],
            ["Stop", {"stop_hook_active": False, "last_assistant_message": "done"}],
        ],
        tmp_path,
    )
    assert "hook" not in start
    assert tool["error"] is False
    assert "hook" not in stop
    until(lambda: [s.name for s in user.hold.host.sessions()] == ["held"], 30)
    journal = user.hold.host.timeline()["entries"]
    assert {e["name"] for e in journal if e["kind"] in ("run", "start")} == {"claude"}
