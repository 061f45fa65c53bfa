"""Messages on the host's socket: whichever way they are written and cut into pieces, the same ones are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire import host_requests, quick

PLAIN: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(st.dictionaries(st.text(max_size=4), PLAIN, max_size=3), max_size=4)


@given(MESSAGES, st.lists(st.integers(1, 40), max_size=20), st.booleans(), st.booleans())
def test_messages_survive_either_way_of_writing_and_any_cut(
    messages: list[dict[str, Any]], cuts: list[int], fast_out: bool, fast_in: bool
) -> None:
    raw = b"".join((quick if fast_out else host_requests).encode(m) for m in messages)
    decoder, found = host_requests.Decoder(), list[dict[str, Any]]()
    parse = quick.parsed if fast_in else None
    for size in cuts:
        found += decoder.feed(raw[:size], parse)
        raw = raw[size:]
    found += decoder.feed(raw, parse)
    assert found == messages
    assert decoder.pending == 0


def test_what_is_not_utf8_goes_the_slower_way() -> None:
    value = {"a": "\udcff"}
    assert quick.encode(value) == host_requests.encode(value)
    assert host_requests.Decoder(quick.parsed).feed(quick.encode(value)) == [value]


@pytest.mark.parametrize("body", [b"[]", b"3", b"null"])
@pytest.mark.parametrize("first", [b"", b"\x00\x00\x00\x02{}"])
def test_a_message_that_is_no_object_is_refused_alone_or_behind_another(body: bytes, first: bytes) -> None:
    with pytest.raises(ValueError, match="not an object"):
        host_requests.Decoder().feed(first + host_requests.framed(body))
