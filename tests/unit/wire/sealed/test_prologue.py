"""The prologue: no two different sets of ids are the same bytes, and an id has a bounded length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.errors import HoldfastError
from holdfast.wire.sealed.prologue import Prologue
from tests.support.sealed import PROLOGUE, other

IDS = st.builds(Prologue, *[st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)] * 4)


@given(IDS, IDS)
def test_different_ids_are_different_bytes(a: Prologue, b: Prologue) -> None:
    assert (a.encode() == b.encode()) is (a == b)


def test_the_version_is_part_of_it() -> None:
    assert PROLOGUE.encode(1) != PROLOGUE.encode(2)


def test_its_bytes_are_those_of_the_documentation() -> None:
    ids = b"\0\5ten_1\0\5nod_1\0\5hst_1\0\5dev_1"
    assert PROLOGUE.encode() == b"\0\x0fholdfast-sealed\0\1\1" + ids


@pytest.mark.parametrize("value", ["", "x" * 65, "é" * 33])
def test_an_id_that_is_empty_or_too_long_is_refused(value: str) -> None:
    with pytest.raises(HoldfastError, match="a node id has 1 to 64 bytes") as e:
        other(node=value).encode()
    assert e.value.code == "invalid"
