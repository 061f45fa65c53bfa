"""Quotas of a relay node: never more than the burst and the rate, whatever the clock does; bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.limits import RELAY_KEYS_MAX
from holdfast.relay.quotas import Quota


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 20)), max_size=50))
def test_no_more_is_allowed_than_burst_and_rate(steps: list[tuple[float, float]]) -> None:
    quota, now, used = Quota(per_s=2.0, burst=10.0), 0.0, 0.0
    for passed, amount in steps:
        now += passed
        if quota.wait_s("key", amount, now) == 0.0:
            used += amount
        assert used <= 10.0 + 2.0 * now + 1e-6


@given(st.floats(0.1, 10))
def test_after_the_wait_it_is_allowed(amount: float) -> None:
    quota = Quota(per_s=2.0, burst=10.0)
    assert quota.wait_s("key", 10.0, 5.0) == 0.0
    wait = quota.wait_s("key", amount, 5.0)
    assert wait == pytest.approx(amount / 2.0)
    assert quota.wait_s("key", amount, 5.0 + wait + 1e-6) == 0.0


def test_bytes_that_came_pause_the_line_for_what_they_are_over() -> None:
    quota = Quota(per_s=100.0, burst=1000.0)
    assert quota.pause_s("key", 1000, 0.0) == 0.0
    assert quota.pause_s("key", 500, 0.0) == 5.0
    assert quota.pause_s("key", 0, 5.0) == 0.0


def test_one_key_does_not_use_up_anothers() -> None:
    quota = Quota(per_s=1.0, burst=1.0)
    assert quota.wait_s("one", 1, 0.0) == 0.0
    assert quota.wait_s("one", 1, 0.0) > 0.0
    assert quota.wait_s("two", 1, 0.0) == 0.0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    quota = Quota(per_s=1.0, burst=1.0)
    assert quota.wait_s("key", 1, 100.0) == 0.0
    assert quota.wait_s("key", 1, 50.0) > 0.0
    assert quota.wait_s("key", 1, 50.5) > 0.0


def test_a_refused_attempt_costs_nothing() -> None:
    quota = Quota(per_s=1.0, burst=1.0)
    quota.wait_s("key", 1, 0.0)
    for _ in range(100):
        quota.wait_s("key", 1, 0.5)
    assert quota.wait_s("key", 1, 1.0) == 0.0


def test_any_number_of_keys_takes_bounded_memory() -> None:
    quota = Quota(per_s=1.0, burst=1.0)
    for n in range(RELAY_KEYS_MAX + 500):
        quota.wait_s(n, 1, 0.0)
    assert len(quota._buckets) == RELAY_KEYS_MAX
    assert quota.wait_s(RELAY_KEYS_MAX + 499, 1, 0.0) > 0.0, "the latest is remembered"
