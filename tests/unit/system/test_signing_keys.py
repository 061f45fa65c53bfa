"""Keys on disk: made once, readable by their owner, and refused where they are not what they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.system import signing_keys


def test_a_key_signs_and_only_its_own_public_half_accepts(tmp_path: Path) -> None:
    folder = str(tmp_path / "keys")
    ada, bot = signing_keys.make(folder, "op_ada"), signing_keys.make(folder, "op_bot")
    signature = signing_keys.sign(signing_keys.load(folder, "op_ada"), b"words").hex()
    assert signing_keys.signed(ada, signature, b"words")
    assert not signing_keys.signed(bot, signature, b"words")
    assert not signing_keys.signed(ada, signature, b"other words")
    for nonsense in ("", "zz", "00"):
        assert not signing_keys.signed(ada, nonsense, b"words")
        assert not signing_keys.signed(nonsense, signature, b"words")
    assert (tmp_path / "keys" / "op_ada.key").stat().st_mode & 0o777 == 0o600


def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    signing_keys.make(str(tmp_path), "op_ada")
    with pytest.raises(FileExistsError):
        signing_keys.make(str(tmp_path), "op_ada")


def test_a_missing_damaged_or_linked_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "op_bad.key").write_text("holdfast-ed25519-v1 zz\n")
    (tmp_path / "op_other.key").write_text("ssh-ed25519 AAAA\n")
    signing_keys.make(str(tmp_path), "op_ada")
    os.symlink("op_ada.key", tmp_path / "op_link.key")
    for owner in ("op_none", "op_bad", "op_other", "op_link"):
        with pytest.raises(HoldfastError) as refused:
            signing_keys.load(str(tmp_path), owner)
        assert refused.value.code == "not_allowed"
