"""Programs that a test runs and a machine may lack: found, or the test is skipped with the package that has it."""

from __future__ import annotations

import functools
import glob
import os
import re
import shutil
from pathlib import Path

import pytest

_LISTED = Path(__file__).parents[2] / "scripts" / "debian-packages.txt"
# Debian keeps servers off an ordinary user's PATH.
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])
# The package, where it is called other than the program.
_PACKAGES = {
    "bwrap": "bubblewrap",
    "fusermount3": "fuse3",
    "initdb": "postgresql",
    "mkfs.ext4": "e2fsprogs",
    "nginx": "nginx-light",
    "ps": "procps",
    "top": "procps",
}


def path_of(program: str) -> str | None:
    """Where it is installed. PostgreSQL's programs are in a folder of their version: the newest one's."""
    versions = glob.glob(f"/usr/lib/postgresql/*/bin/{program}")
    newest = max(versions, key=lambda found: int(found.split("/")[4]), default=None)
    return newest or shutil.which(program, path=_PATH)


@functools.cache
def listed() -> list[str]:
    """The Debian packages that scripts/setup installs for the tests."""
    return re.findall(r"^([a-z0-9.+-]+)", _LISTED.read_text(), re.MULTILINE)


def package_of(program: str) -> str:
    return _PACKAGES.get(program, program)


def reason(*programs: str) -> str | None:
    """Why a test that runs these cannot run here; None: it can."""
    absent = [program for program in programs if path_of(program) is None]
    return (
        f"not installed: {', '.join(map(package_of, absent))} (make setup installs it where it may)" if absent else None
    )


def program(name: str) -> str:
    """The path of a program that the calling test or fixture runs."""
    found = path_of(name)
    if found is None:
        pytest.skip(str(reason(name)))
    return found


def needs(*programs: str) -> pytest.MarkDecorator:
    """The mark of a test, file or parameter that runs these."""
    return pytest.mark.skipif(reason(*programs) is not None, reason=reason(*programs) or "")
