"""Two snapshots compared, patches that git and patch take, and scopes: the pure part of what an attempt did to files."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work import file_changes
from holdfast.model.work.file_changes import Entry, Scope, Snapshot, compare, file_patch
from tests.support.needs import program

FILE = 0o100644


def entry(content: str, mode: int = FILE) -> Entry:
    return Entry(f"hash of {content}", len(content), mode, 1, 1, 1)


def snapshot(files: dict[str, str], until: str | None = None) -> Snapshot:
    return Snapshot("/r", ["**"], 0, {p: entry(c) for p, c in files.items()}, until)


def paths(told: dict, kind: str) -> list[str]:
    return [one["path"] for one in told[kind]]


def test_created_changed_and_deleted_are_told_with_hashes_before_and_after() -> None:
    told = compare(snapshot({"a": "1", "b": "1", "c": "1"}), snapshot({"a": "1", "b": "2", "d": "1"}))
    assert (paths(told, "created"), paths(told, "changed"), paths(told, "deleted")) == (["d"], ["b"], ["c"])
    assert (told["changed"][0]["before"], told["changed"][0]["after"]) == ("hash of 1", "hash of 2")
    assert told["limits"] == []


def test_a_mode_that_makes_it_executable_is_a_change() -> None:
    after = Snapshot("/r", ["**"], 0, {"a": entry("1", 0o100755)})
    assert paths(compare(snapshot({"a": "1"}), after), "changed") == ["a"]


def test_what_only_the_limit_hid_is_neither_created_nor_deleted_and_the_limit_is_said() -> None:
    before, after = snapshot({"a": "1", "b": "1"}, until="b"), snapshot({"0": "1", "a": "1"}, until="a")
    told = compare(before, after)
    assert (paths(told, "created"), paths(told, "deleted")) == (["0"], [])
    assert "up to a" in told["limits"][0]


def test_a_packed_snapshot_comes_back_whole_and_a_damaged_one_is_refused() -> None:
    before = snapshot({"a": "1", "ü/b": "2"})
    data = file_changes.pack(before, {"a": b"1", "ü/b": b"\x00\xff"})
    assert file_changes.unpack(data) == (before, {"a": b"1", "ü/b": b"\x00\xff"})
    with pytest.raises(HoldfastError, match="cannot be read"):
        file_changes.unpack(data[:-4])


SCOPES = [
    (["**"], "a/b/c.py", True),
    (["src/**"], "src/a.py", True),
    (["src"], "src/x/a.py", True),
    (["src/"], "srcs/a.py", False),
    (["src/*.py"], "src/a.py", True),
    (["src/*.py"], "src/x/a.py", False),
    (["**/*.py"], "a.py", True),
    (["**/*.py"], "x/y/a.py", True),
    (["a?.txt"], "ab.txt", True),
    (["[!a]*.txt"], "b.txt", True),
    (["[!a]*.txt"], "a.txt", False),
    (["./src/a.py"], "src/a.py", True),
    (["a.b"], "aXb", False),
    (["docs/**/x"], "docs/x", True),
    (["docs/**/x"], "docs/1/2/x", True),
]


@pytest.mark.parametrize(("globs", "path", "inside"), SCOPES)
def test_a_scope_is_its_globs(globs: list[str], path: str, inside: bool) -> None:
    assert (path in Scope(globs)) is inside


def apply(tmp_path: Path, path: str, before: bytes | None, after: bytes | None) -> bytes | None:
    """What git makes of it."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if before is not None:
        file.write_bytes(before)
    patch = file_patch(path, before, after)
    done = subprocess.run(
        [program("git"), "apply", "-"], cwd=tmp_path, input=patch.encode(), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, (done.stderr, patch)
    return file.read_bytes() if file.exists() else None


@pytest.mark.process
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"one\ntwo\n"),
        (b"one\ntwo\n", None),
        (b"one\n", b"one\ntwo"),
        (b"one", b"one\n"),
        (None, b""),
        (b"", None),
        (b"", b"x\n"),
        (b"x\n", b""),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        ("ä\n".encode(), "ä\nö\u2028x\n".encode()),
        (b"a\n" * 3000, b"b\n" * 3000),
    ],
)
def test_a_patch_makes_the_new_file_of_the_old_one(tmp_path: Path, before: bytes | None, after: bytes | None) -> None:
    assert apply(tmp_path, "f.txt", before, after) == after


@pytest.mark.process
@pytest.mark.parametrize("path", ["a b.txt", 'a"b\\c.txt', "ä/ö.txt", "tab\there.txt"])
def test_a_patch_of_an_odd_name_finds_its_file(tmp_path: Path, path: str) -> None:
    assert apply(tmp_path, path, b"1\n", b"2\n") == b"2\n"


@pytest.mark.process
def test_random_edits_give_patches_that_apply(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    for n in range(12):
        old = [f"line {chance.randrange(20)}\n" for _ in range(chance.randrange(60))]
        new = list(old)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(new) + 1)
            new[at : at + chance.randrange(4)] = [f"new {chance.randrange(9)}\n"] * chance.randrange(3)
        before, after = "".join(old).encode(), "".join(new).encode()
        if before != after:
            assert apply(tmp_path, f"f{n}", before, after) == after


def test_a_binary_file_is_named_and_not_patched() -> None:
    text = file_patch("logo.png", b"\x89PNG\x00", b"\x89PNG\x00\x01")
    assert "Binary files a/logo.png and b/logo.png differ" in text
    assert "@@" not in text
