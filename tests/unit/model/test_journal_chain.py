"""The chain as a pure function: whatever is changed, the first bad entry is named."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import journal_chain as chain

HOST = "hst_here"
Row = tuple[int, bytes, bytes, str | None]
Head = dict[str, Any]


def sign(head: Head) -> Head:
    return {**head, "signature": hashlib.sha256(b"key" + chain.head_bytes(head)).hexdigest()}


def signed(head: Head) -> bool:
    return bool(sign({k: head[k] for k in ("host", "n", "hash", "at")})["signature"] == head.get("signature"))


def made(count: int) -> tuple[list[Row], list[Head]]:
    rows, heads, digest = list[Row](), list[Head](), chain.first_hash(HOST)
    for n in range(1, count + 1):
        session = f"ses_{n % 3}" if n % 3 else None
        body = chain.canonical({"n": n, "kind": "exec", **({"session": session} if session else {})})
        digest = chain.next_hash(digest, body)
        rows.append((n, body, digest, session))
        if n % chain.HEAD_EVERY == 0 or n == count:
            heads.append(sign(chain.head(HOST, n, digest, 1.0)))
    return rows, heads


ROWS, HEADS = made(200)


def test_an_untouched_chain_is_proven() -> None:
    found = chain.verify(ROWS, HEADS, HOST, signed)
    assert (found.ok, found.entries, found.heads) == (True, 200, 4)
    assert chain.verify([], [], HOST, signed).ok


@given(st.integers(0, 199), st.integers(0, 10_000))
def test_any_flipped_bit_is_found_where_it_is(index: int, position: int) -> None:
    n, body, digest, session = ROWS[index]
    position %= len(body) * 8
    changed = bytearray(body)
    changed[position // 8] ^= 1 << position % 8
    rows = [*ROWS[:index], (n, bytes(changed), digest, session), *ROWS[index + 1 :]]
    assert chain.verify(rows, HEADS, HOST, signed).bad == n


@given(st.integers(0, 198))
def test_any_removed_entry_is_found(index: int) -> None:
    assert chain.verify(ROWS[:index] + ROWS[index + 1 :], HEADS, HOST, signed).bad == index + 1


@given(st.integers(0, 199))
def test_any_cut_tail_is_found_by_a_head_past_it(length: int) -> None:
    kept = [h for h in HEADS if h["n"] <= length]
    found = chain.verify(ROWS[:length], kept, HOST, signed, known=[HEADS[-1]])
    assert (found.bad, "cut off" in found.reason) == (length + 1, True)


def test_two_entries_in_the_wrong_order_are_found() -> None:
    rows = [*ROWS[:9], ROWS[10], ROWS[9], *ROWS[11:]]
    assert chain.verify(rows, HEADS, HOST, signed).bad == 10


def test_a_chain_made_anew_does_not_fit_the_heads() -> None:
    rows, digest = list[Row](), chain.first_hash(HOST)
    for n, body, _, session in ROWS:
        changed = body.replace(b"exec", b"stop") if n == 70 else body
        digest = chain.next_hash(digest, changed)
        rows.append((n, changed, digest, session))
    found = chain.verify(rows, HEADS, HOST, signed)
    assert (found.bad, "signed" in found.reason) == (128, True)


@pytest.mark.parametrize("change", [{"signature": "00"}, {"host": "hst_other"}, {"hash": "00" * 32}, {"at": 2.0}])
def test_a_head_that_is_not_the_hosts_is_found(change: Head) -> None:
    heads = [{**HEADS[0], **change}, *HEADS[1:]]
    assert chain.verify(ROWS, heads, HOST, signed).bad == 64


def test_a_missing_head_is_found() -> None:
    assert chain.verify(ROWS, HEADS[1:], HOST, signed).bad == 64


def test_an_entry_under_the_wrong_session_is_found() -> None:
    for filed in ("ses_9", None):
        rows = [*ROWS[:3], (4, ROWS[3][1], ROWS[3][2], filed), *ROWS[4:]]
        assert chain.verify(rows, HEADS, HOST, signed).bad == 4


def test_another_hosts_chain_does_not_fit() -> None:
    assert chain.verify(ROWS, HEADS, "hst_other", signed).bad == 1
