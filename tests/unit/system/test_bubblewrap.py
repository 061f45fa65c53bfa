"""Finding bubblewrap and trying it: what is said where it is missing or refuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.sessions import isolation
from holdfast.model.sessions.isolation import Place, View
from holdfast.system import bubblewrap, bubblewrap_entry
from tests.support.needs import needs


def test_a_machine_without_bubblewrap_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bubblewrap, "_PATH", str(tmp_path))
    with pytest.raises(HoldfastError) as caught:
        bubblewrap.find()
    assert "bubblewrap" in caught.value.message
    assert "apt install bubblewrap" in caught.value.hint


@needs("bwrap")
def test_a_whole_start_is_tried_here() -> None:
    path, complaint = bubblewrap.works_here()
    assert (os.path.basename(path), complaint) == ("bwrap", "")


@needs("bwrap")
def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    machine = bubblewrap.look()
    place = Place(str(tmp_path / "home"), str(tmp_path / "gone"), str(tmp_path), "/nonexistent")
    assert "gone" in bubblewrap.probe(bubblewrap.order("x", View(str(tmp_path)), machine, place, {}), machine)


def test_a_bubblewrap_that_may_not_make_namespaces_is_told_with_what_helps(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"  # stands for a kernel that refuses, which this one does not
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    complaint = bubblewrap.probe({"path": str(fake), "options": [], "env": {}}, bubblewrap.look())
    assert "namespace" in complaint
    assert "user namespaces" in bubblewrap.advice(complaint)


@pytest.mark.skipif(not bubblewrap_entry.kernels_root(), reason="only what root isolates becomes another user")
def test_a_file_system_that_cannot_show_its_files_as_another_s_is_told_with_what_helps() -> None:
    order = {"path": bubblewrap.find(), "options": [], "env": {}, "uid": 2_100_000_000, "trees": [["/proc", True]]}
    complaint = bubblewrap.probe(order, bubblewrap.look())
    assert complaint.startswith("/proc cannot be shown to another user than root")
    assert "ordinary user" in bubblewrap.advice(complaint)


def test_the_kernel_s_own_file_systems_are_known_by_their_places() -> None:
    assert ("/proc", "proc") in bubblewrap.kernel_views()
    assert "/proc/sys" in bubblewrap.look().switches
    assert not [path for path in bubblewrap.look().switches if path.rpartition("/")[2].isdigit()]


def test_the_interpreter_and_our_package_are_among_what_is_shown() -> None:
    machine = bubblewrap.look()
    shown = (*isolation.SYSTEM, *machine.install)
    for path in (os.path.realpath(sys.executable), os.path.realpath(bubblewrap.__file__)):
        assert any(isolation.within(path, folder) for folder in shown)
