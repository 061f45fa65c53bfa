"""What a client signs to prove its key: no two different proofs are the same bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire import key_proof

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)


@given(WORDS, st.binary(max_size=8), WORDS, WORDS, st.binary(max_size=8), WORDS)
def test_different_facts_are_different_bytes(a: str, b: bytes, c: str, d: str, e: bytes, f: str) -> None:
    assert (key_proof.message(a, b, c) == key_proof.message(d, e, f)) is ((a, b, c) == (d, e, f))
