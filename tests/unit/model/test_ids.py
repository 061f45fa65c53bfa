"""Which session a word means: a name, an id, or enough of an id."""

from __future__ import annotations

import pytest

from holdfast.model import ids
from holdfast.model.errors import HoldfastError

KNOWN = {"ses_b8xae4nwbn503em7": "a", "ses_b8xqqqqqqqqqqqqq": "web", "ses_c0000000000000000": "b8xa"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("a", "ses_b8xae4nwbn503em7"),
        ("ses_b8xae4nwbn503em7", "ses_b8xae4nwbn503em7"),
        ("ses_c", "ses_c0000000000000000"),
        ("b8xae", "ses_b8xae4nwbn503em7"),
        ("c000", "ses_c0000000000000000"),
        ("b8xa", "ses_c0000000000000000"),  # a name comes before the beginning of an id
    ],
)
def test_a_name_an_id_or_enough_of_an_id_names_a_session(wanted: str, found: str) -> None:
    assert ids.resolve(wanted, KNOWN) == found


@pytest.mark.parametrize("wanted", ["c", "c00", "b", "ses_", "none"])
def test_a_short_name_that_is_not_there_names_no_session_by_its_id(wanted: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        ids.resolve(wanted, KNOWN)
    assert caught.value.code == "not_found"


def test_a_beginning_that_two_ids_share_names_neither() -> None:
    with pytest.raises(HoldfastError) as caught:
        ids.resolve("ses_b8x", KNOWN)
    assert "2 session ids" in caught.value.message
