"""Which messages fit a window: pure."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.work.checkpoints.checkpoints import due
from holdfast.work.memory.window import choose, estimate, is_pinned, newest
from tests.support.soak import examples

# On a shared machine slowness is no finding.
calm = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": st.text(max_size=60)})
)


@calm
@given(MESSAGES, st.integers(1, 300))
def test_a_window_never_exceeds_its_budget_and_has_no_gap(messages: list[Any], budget: int) -> None:
    texts = [json.dumps(m, ensure_ascii=False).encode() for m in messages]
    pinned = [is_pinned(m) for m in messages]
    chosen, used = choose(texts, pinned, budget)
    assert used == sum(estimate(texts[i]) for i in chosen) <= budget
    assert chosen == sorted(set(chosen))
    plain = [i for i in range(len(messages)) if not pinned[i]]
    mine = [i for i in chosen if not pinned[i]]
    assert mine == plain[len(plain) - len(mine) :]  # the newest ones, all of them
    if len(mine) < len(plain):
        assert used + estimate(texts[plain[-len(mine) - 1]]) > budget


def test_tokens_are_a_quarter_of_ascii_and_one_for_every_other_character() -> None:
    assert estimate(b"x" * 400) == 104
    assert estimate("雪".encode() * 100) == 104


def test_the_newest_messages_are_cached_with_every_instruction_before_them() -> None:
    messages: list[Any] = [
        {"role": "system", "n": 0},
        {"role": "user", "n": 1},
        {"role": "user", "n": 2, "pinned": True},
    ]
    messages += [{"role": "user", "n": n} for n in range(3, 10)]
    assert newest(messages, 100) == (messages, True)
    kept, whole = newest(messages, 3)
    assert ([m["n"] for m in kept], whole) == ([0, 2, 7, 8, 9], False)


def test_a_policy_counts_entries_or_bytes_and_nothing_is_never_due() -> None:
    assert due(10, 0, 10, 5)
    assert not due(10, 0, 9, 10**9)
    assert due(0, 100, 1, 100)
    assert not due(0, 0, 10**6, 10**9)
    assert not due(1, 1, 0, 0)
