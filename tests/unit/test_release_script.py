"""scripts/release: what it refuses, what a dry run leaves alone, and what a release commits and tags."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## [1.2.0] - unreleased\n\n- A change.\n\n## [1.1.0] - 2020-01-01\n\n- An older one.\n"
# The world around it: an interpreter that builds and installs at once, and notes what it was asked for.
PYTHON = """#!/bin/sh
echo "$@" >> "$CALLS"
version=$(sed -n 's/^VERSION = "\\(.*\\)"/\\1/p' src/holdfast/version.py)
case "$*" in
  "-m build "*) mkdir -p "$4"; touch "$4/holdfast-$version.tar.gz" "$4/holdfast-$version-py3-none-any.whl" ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; printf '#!/bin/sh\\necho hold %s\\n' "$version" > "$3/bin/hold"
    chmod +x "$3/bin/hold" ;;
esac
"""


class Project:
    def __init__(self, folder: Path) -> None:
        self.tree, self.calls = folder / "tree", folder / "calls"
        (self.tree / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/release", self.tree / "scripts/release")
        self.write("CHANGELOG.md", CHANGELOG)
        self.write("src/holdfast/version.py", 'VERSION = "1.1.0"\n')
        self.write(".gitignore", ".venv/\nbuild/\n")
        self.write("Makefile", "test:\n\t@echo tested >> $(CALLS)\n")
        self.write(".venv/bin/python", PYTHON)
        (self.tree / ".venv/bin/python").chmod(0o755)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "CALLS": str(self.calls)}
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.org")
        self.commit()

    def write(self, name: str, text: str) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.tree, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "A state")

    def release(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["scripts/release", *words]
        return subprocess.run(
            command, cwd=self.tree, env=self.env, capture_output=True, text=True, check=False, timeout=60
        )

    def called(self) -> str:
        return self.calls.read_text() if self.calls.exists() else ""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("words", [(), ("1.2",), ("v1.2.0",), ("1.2.0; true",), ("1.2.0", "1.3.0")])
def test_anything_but_a_version_is_refused(project: Project, words: tuple[str, ...]) -> None:
    done = project.release(*words)
    assert (done.returncode, project.called()) == (2, "")
    assert "usage: scripts/release" in done.stderr


def test_a_dirty_tree_a_missing_section_and_a_tag_that_is_there_are_refused_before_anything_is_built(
    project: Project,
) -> None:
    project.write("new", "")
    assert "the tree has changes" in project.release("1.2.0").stderr
    (project.tree / "new").unlink()
    assert "no entries below '## [1.3.0] - unreleased'" in project.release("1.3.0").stderr
    project.git("tag", "v1.2.0")
    assert "the tag v1.2.0 is there already" in project.release("1.2.0").stderr
    assert project.called() == ""


def test_a_dry_run_builds_and_checks_and_leaves_the_tree_alone(project: Project) -> None:
    before = project.git("rev-parse", "HEAD")
    done = project.release("--dry-run", "1.2.0")
    assert done.returncode == 0, done.stderr
    assert "checked: hold 1.2.0" in done.stderr
    assert "-m build" in project.called()
    assert "tested" not in project.called()
    assert (project.git("rev-parse", "HEAD"), project.git("tag"), project.git("status", "--porcelain")) == (
        before,
        "",
        "",
    )


def test_a_release_is_tested_committed_and_tagged(project: Project) -> None:
    done = project.release("1.2.0")
    assert done.returncode == 0, done.stderr
    assert project.called().index("tested") < project.called().index("-m build")
    assert 'VERSION = "1.2.0"' in project.git("show", "v1.2.0:src/holdfast/version.py")
    assert "unreleased" not in project.git("show", "v1.2.0:CHANGELOG.md")
    assert "- A change." in project.git("tag", "--list", "--format=%(contents)", "v1.2.0")
    assert project.git("rev-parse", "main") == project.git("rev-parse", "v1.2.0^{commit}")
    assert project.git("status", "--porcelain") == ""


def test_what_the_tests_refuse_is_not_released(project: Project) -> None:
    project.write("Makefile", "test:\n\t@false\n")
    project.commit()
    done = project.release("1.2.0")
    assert (done.returncode != 0, project.git("tag"), project.called()) == (True, "", "")
