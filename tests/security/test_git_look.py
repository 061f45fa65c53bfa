"""Looking at an attempt's changes runs nothing that its folder configures: each way that git knows is planted here.

Whoever works in the folder writes its `.git`; the look happens later, with the rights of the person.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.client.files import git, snapshot
from tests.support.needs import needs

pytestmark = needs("git")

HOOKS = ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction")


class Trap:
    """A repository, and a program that leaves a mark where it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.marks = folder, folder / "project", folder / "marks"
        for made in (self.root, self.marks):
            made.mkdir()
        self.program = folder / "trap"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.marks}/ran\n')
        self.program.chmod(0o755)
        self.git("init")
        for n in range(3):
            (self.root / f"{n}.txt").write_text(f"{n}\n")
        self.git("add", ".")
        self.git("commit", "-m", "first")

    def git(self, *words: str, cwd: Path | None = None, check: bool = True) -> None:
        about = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@localhost",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
            "-c",
            "protocol.ext.allow=always",
        ]
        subprocess.run(
            ["git", *about, *words],
            cwd=cwd or self.root,
            check=check,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def config(self, *pairs: tuple[str, str], file: str = ".git/config") -> None:
        for name, value in pairs:
            self.git("config", "--file", file, name, value)

    def attribute(self, text: str) -> None:
        (self.root / ".gitattributes").write_text(text + "\n")

    def touch(self) -> None:
        """Make the times such that git has to look at the contents to know whether they changed."""
        for path in self.root.glob("*.txt"):
            os.utime(path, (1 << 31, 1 << 31))
        self.git("add", ".", check=False)

    @property
    def ran(self) -> str:
        mark = self.marks / "ran"
        text = mark.read_text() if mark.exists() else ""
        mark.unlink(missing_ok=True)
        return text


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def clean_filter(trap: Trap) -> None:
    trap.config(("filter.x.clean", f"{trap.program} %f"), ("filter.x.smudge", str(trap.program)))
    trap.attribute("* filter=x")
    trap.touch()


def process_filter(trap: Trap) -> None:
    trap.config(("filter.x.process", str(trap.program)), ("filter.x.required", "true"))
    (trap.root / ".git" / "info" / "attributes").write_text("* filter=x\n")
    trap.touch()


def included_filter(trap: Trap) -> None:
    trap.config(("filter.x.clean", str(trap.program)), file="inner")
    trap.config(("include.path", f"{trap.root}/inner"), ("includeIf.gitdir:/.path", f"{trap.root}/inner"))
    trap.attribute("* filter=x")
    trap.touch()


def worktree_configuration(trap: Trap) -> None:
    trap.config(("core.repositoryFormatVersion", "1"), ("extensions.worktreeConfig", "true"))
    trap.config(("filter.x.clean", str(trap.program)), file=".git/config.worktree")
    trap.attribute("* filter=x")
    trap.touch()


def a_file_in_place_of_the_folder(trap: Trap) -> None:
    (trap.root / ".git").rename(trap.folder / "elsewhere")
    (trap.root / ".git").write_text(f"gitdir: {trap.folder}/elsewhere\n")
    trap.config(("filter.x.clean", str(trap.program)), file=f"{trap.folder}/elsewhere/config")
    trap.attribute("* filter=x")
    trap.touch()


def fsmonitor(trap: Trap) -> None:
    trap.config(("core.fsmonitor", str(trap.program)))


def hooks(trap: Trap) -> None:
    for folder in (trap.root / ".git" / "hooks", trap.folder / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(trap.program)
    trap.config(("core.hooksPath", f"{trap.folder}/hooks"))
    trap.touch()


def textconv_and_diffs(trap: Trap) -> None:
    trap.config(
        ("diff.external", str(trap.program)),
        ("diff.x.textconv", str(trap.program)),
        ("diff.x.command", str(trap.program)),
    )
    trap.attribute("* diff=x")
    (trap.root / "0.txt").write_text("other\n")


def commands(trap: Trap) -> None:
    """Programs that git starts for a person, a remote, a signature or a terminal."""
    names = (
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "sequence.editor",
        "core.alternateRefsCommand",
        "credential.helper",
        "gpg.program",
        "pager.ls-files",
        "pager.cat-file",
        "uploadpack.packObjectsHook",
        "interactive.diffFilter",
    )
    trap.config(*((name, str(trap.program)) for name in names))


def submodule(trap: Trap) -> None:
    inner = trap.folder / "inner"
    inner.mkdir()
    trap.git("init", cwd=inner)
    trap.git("commit", "--allow-empty", "-m", "first", cwd=inner)
    trap.git("submodule", "add", str(inner), "sub")
    trap.git("config", "core.fsmonitor", str(trap.program), cwd=trap.root / "sub")
    trap.git("commit", "-m", "second")


def promised_blobs(trap: Trap) -> None:
    """Objects that a remote is said to have: git asks it, by the means that the configuration names."""
    trap.config(
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{trap.program} %S"),
        ("protocol.ext.allow", "always"),
    )
    for path in (trap.root / ".git" / "objects").glob("??/*"):
        path.unlink()


def alternates(trap: Trap) -> None:
    other = trap.folder / "other"
    other.mkdir()
    trap.git("init", cwd=other)
    trap.git("config", "filter.x.clean", str(trap.program), cwd=other)
    (trap.root / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (trap.root / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")
    trap.config(("core.alternateRefsCommand", str(trap.program)))


# What git itself would run with it, as a control: a trap that never snaps shows nothing. () where it needs a person.
PLANTS: list[tuple[Callable[[Trap], None], tuple[str, ...]]] = [
    (clean_filter, ("status",)),
    (process_filter, ("status",)),
    (included_filter, ("status",)),
    (worktree_configuration, ("status",)),
    (a_file_in_place_of_the_folder, ("status",)),
    (fsmonitor, ("status",)),
    (hooks, ("status",)),
    (textconv_and_diffs, ("diff",)),
    (commands, ("commit", "--amend")),
    (submodule, ("status",)),
    (promised_blobs, ("cat-file", "-p", "HEAD")),
    (alternates, ()),
]


@pytest.mark.parametrize(("plant", "control"), PLANTS, ids=lambda p: p.__name__ if callable(p) else "")
def test_a_look_runs_nothing_that_the_folder_configures(
    trap: Trap, plant: Callable[[Trap], None], control: tuple[str, ...]
) -> None:
    before = snapshot.take(str(trap.root), ["**"])  # while all is well: it knows which contents git has
    plant(trap)
    _ = trap.ran  # what planting it ran
    (trap.root / "1.txt").write_text("changed\n")
    snapshot.take(str(trap.root), ["**"], ["*.bin"])
    told, _patch = snapshot.outcome(before, ["*.bin"])
    assert "1.txt" in [one["path"] for one in told["changed"]]
    assert "0.txt" in snapshot.tracked(str(trap.root))
    assert trap.ran == ""
    if control:
        trap.git(*control, check=False)
        assert trap.ran != "", "the trap itself does not snap"


def test_a_filter_of_the_person_s_own_is_not_for_the_folder_to_choose(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = trap.folder / "gitconfig"
    trap.config(("filter.x.clean", str(trap.program)), ("core.fsmonitor", str(trap.program)), file=str(own))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap.program))
    trap.attribute("* filter=x")
    trap.touch()
    _ = trap.ran
    snapshot.outcome(snapshot.take(str(trap.root), ["**"]))
    assert trap.ran == ""
    trap.git("status")
    assert trap.ran != ""


def test_what_git_ignores_by_its_own_lists_is_ignored(trap: Trap) -> None:
    (trap.root / ".git" / "info" / "exclude").write_text("excluded\n")
    (trap.root / ".gitignore").write_text("ignored\n")
    before = snapshot.take(str(trap.root), ["**"])
    for name in ("excluded", "ignored", "seen"):
        (trap.root / name).write_text("x\n")
    assert [one["path"] for one in snapshot.outcome(before)[0]["created"]] == ["seen"]


def test_a_worktree_and_a_folder_below_the_top_are_looked_at_like_any_other(trap: Trap) -> None:
    below = trap.folder / "worktree" / "below"
    trap.git("worktree", "add", "-b", "other", str(below.parent))
    below.mkdir()
    (below / "a.txt").write_text("a\n")
    trap.git("add", "-A", cwd=below)
    (below / "b.txt").write_text("b\n")
    assert snapshot.tracked(str(below)) == {"a.txt"}
    before = snapshot.take(str(below), ["**"])
    (below / "a.txt").write_text("A\n")
    told, patch = snapshot.outcome(before)
    assert [one["path"] for one in told["changed"]] == ["a.txt"]
    assert b"-a\n+A\n" in patch


def test_a_repository_with_longer_names_is_read(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--object-format=sha256"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    (tmp_path / "a").write_text("a\n")
    subprocess.run(["git", "add", "a"], cwd=tmp_path, check=True, timeout=60)
    with git.looked_at(str(tmp_path)) as repository:
        assert repository is not None
        assert repository.staged() == {"a": repository.name_of(b"a\n")}
        assert repository.blob(repository.name_of(b"a\n")) == b"a\n"


def test_pipes_in_place_of_git_s_files_are_not_waited_for(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "GIT_ANSWER_S", 0.5)
    for name in (".git/config", ".git/info/exclude", ".git/index"):
        (trap.root / name).unlink(missing_ok=True)
        os.mkfifo(trap.root / name)
    began = time.monotonic()
    assert snapshot.tracked(str(trap.root)) == set()
    snapshot.take(str(trap.root), ["**"])
    assert time.monotonic() - began < 60  # a bound that tells hanging from slow


def test_an_index_that_lists_without_end_is_not_listened_to(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "GIT_ANSWER_BYTES_MAX", 10)
    assert snapshot.tracked(str(trap.root)) == set()
    told, _ = snapshot.outcome(snapshot.take(str(trap.root), ["**"]))
    assert told["changed"] == []
