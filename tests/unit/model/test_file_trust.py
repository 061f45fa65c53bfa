"""Whose home is used: the caller's and root's, where no other user can put another in its place."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from holdfast.model import file_trust

ME, OTHER, ROOT = 1000, 1001, 0


class Seen(NamedTuple):
    st_uid: int
    st_mode: int


PLAIN = [("/home/me", Seen(ME, 0o40755)), ("/home", Seen(ROOT, 0o40755)), ("/", Seen(ROOT, 0o40755))]


@pytest.mark.parametrize(
    ("home", "above", "why"),
    [
        (Seen(ME, 0o40700), PLAIN, None),
        (Seen(ME, 0o40755), PLAIN, None),
        (Seen(ROOT, 0o40755), PLAIN, None),
        (Seen(OTHER, 0o40700), PLAIN, "belongs to uid 1001"),
        (Seen(ME, 0o40770), PLAIN, "can write to"),
        (Seen(ME, 0o40702), PLAIN, "can write to"),
        (Seen(ROOT, 0o41777), PLAIN, "can write to"),
        (Seen(ME, 0o40700), [("/tmp", Seen(ROOT, 0o41777)), ("/", Seen(ROOT, 0o40755))], None),
        (Seen(ME, 0o40700), [("/open", Seen(ROOT, 0o40777)), ("/", Seen(ROOT, 0o40755))], "any user can replace"),
    ],
)
def test_a_home_is_the_callers_alone(home: Seen, above: list[tuple[str, file_trust.Stat]], why: str | None) -> None:
    fault = file_trust.home_fault("/h", home, above, ME)
    assert (fault is None) == (why is None)
    assert why is None or (fault is not None and why in fault[0])


def test_root_uses_no_home_of_another_user() -> None:
    assert file_trust.home_fault("/h", Seen(OTHER, 0o40700), [], ROOT) is not None
