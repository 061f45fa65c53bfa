"""Completion in the real shells: press Tab, see what comes."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.home import HomeForTests


@pytest.fixture
def shell_env(hold: HomeForTests, tmp_path: Path) -> dict[str, str]:
    """A `hold` on the PATH, and two sessions of which one has ended."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program = bin_folder / "hold"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast.cli.main "$@"\n')
    program.chmod(0o755)
    hold.run("cat", name="web")
    hold.run("cat", name="old").stop(0)
    return {**hold.env, "PATH": f"{bin_folder}:{hold.env['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"}


def script(shell: str, env: dict[str, str], folder: Path) -> str:
    path = folder / f"completion.{shell}"
    path.write_bytes(subprocess.run(["hold", "completion", shell], env=env, capture_output=True, check=True).stdout)
    return str(path)


CASES = [
    ("hold at", {"attach"}),
    ("hold logs ", {"web", "old"}),
    ("hold attach ", {"web"}),
    ("hold stop w", {"web"}),
    ("hold logs --gr", {"--grep"}),
    ("hold kill web -s KI", {"KILL"}),
    ("hold completion ", {"bash", "zsh", "fish"}),
    ("hold wait web --for ex", {"exit"}),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_values_and_sessions(shell_env: dict[str, str], tmp_path: Path) -> None:
    lines = [f"source {script('bash', shell_env, tmp_path)}"]
    for line, _ in CASES:
        words = line.split(" ")
        quoted = " ".join(f"'{w}'" for w in words)
        lines.append(f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hold; echo "${{COMPREPLY[*]}}"')
    done = subprocess.run(["bash", "-c", "\n".join(lines)], env=shell_env, capture_output=True, check=True, text=True)
    assert [set(line.split()) for line in done.stdout.splitlines()] == [expected for _, expected in CASES]
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_files_and_the_users_own_command(shell_env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "my.cast").touch()
    source = f"source {script('bash', shell_env, tmp_path)}; "
    for words, expected in (
        (["hold", "export", "web", "--cast", f"{tmp_path}/my"], f"{tmp_path}/my.cast"),
        (["hold", "exec", "web", "--", "cat", f"{tmp_path}/my"], f"{tmp_path}/my.cast"),
        (["hold", "run", "--", "printen"], "printenv"),
    ):
        quoted = " ".join(f"'{w}'" for w in words)
        code = f'{source} COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hold; echo "${{COMPREPLY[*]}}"'
        done = subprocess.run(["bash", "-c", code], env=shell_env, capture_output=True, check=True, text=True)
        assert set(done.stdout.split()) == {expected}


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes_commands_options_values_and_sessions(shell_env: dict[str, str], tmp_path: Path) -> None:
    source = f"source {script('fish', shell_env, tmp_path)}"
    code = "; ".join([source, *(f"complete -C '{line}'; echo ---" for line, _ in CASES)])
    done = subprocess.run(["fish", "-c", code], env=shell_env, capture_output=True, check=True, text=True)
    found = [{line.split("\t")[0] for line in part.splitlines() if line} for part in done.stdout.split("---\n")]
    assert found[:-1] == [expected for _, expected in CASES]
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_at_the_press_of_tab(shell_env: dict[str, str], tmp_path: Path) -> None:
    path = script("zsh", shell_env, tmp_path)
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**shell_env, "PS1": "<p>", "COLUMNS": "200"})
    try:
        ready = f"unsetopt beep; autoload -U compinit; compinit -u -D; source {path}; echo rea''dy\n"
        _type_until(fd, ready.encode(), b"ready\r\n")
        for line, expected in CASES:
            for word in expected:
                # Tab completes a single match in place and lists several: either way the words appear.
                _type_until(fd, b"\x15" + line.encode() + b"\t", word.encode(), after=line.encode())
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)


def _type_until(fd: int, typed: bytes, text: bytes, after: bytes = b"") -> None:
    os.write(fd, typed)
    shown, deadline = b"", time.monotonic() + 30
    # The line itself holds the beginning of the word; what completes it may follow the echo directly.
    typed_part = after.rpartition(b" ")[2]
    wanted = (after[: len(after) - len(typed_part)] + text) if typed_part and text.startswith(typed_part) else text
    while wanted not in shown and not (after and text in shown.partition(after)[2]):
        assert time.monotonic() < deadline, f"no {wanted!r} in {shown!r}"
        if select.select([fd], [], [], 0.2)[0]:
            shown += os.read(fd, 65536)
