"""A save stores the change, restoring gives the state back, and no edit is missed."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.delta import encode
from holdfast.delta.encode import Encoder, restore, state_hash, values
from holdfast.delta.value_codec import JSON
from holdfast.model.errors import HoldfastError
from tests.support.soak import examples

# On a shared machine slowness is no finding.
calm = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
NUMBERS = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | NUMBERS | st.text(max_size=20)
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=5), v, max_size=4), max_leaves=12
)
STATES = st.dictionaries(st.sampled_from(["messages", "plan", "context", "goal", "é"]), VALUES, max_size=5)
# One leaf each, so that "1", 1, 1.0, True and -0.0 meet each other in one place.
LOOKALIKES: st.SearchStrategy[Any] = st.sampled_from(
    [0, 0.0, -0.0, False, None, "", 1, 1.0, True, "1", [], {}, [[]], [1], [True], {"a": 1}, {"a": 1.0}]
)


def exact(value):
    """Equality that tells 1 from True and 0.0 from -0.0."""
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    if isinstance(value, list):
        return [exact(v) for v in value]
    return (type(value).__name__, repr(value))


def saved(states):
    """Each state saved in turn by one encoder; the changes."""
    encoder = Encoder()
    return [encoder.change(state) for state in states]


@calm
@given(st.lists(STATES, min_size=1, max_size=6))
def test_any_sequence_of_states_is_restored_at_every_position(states):
    changes = saved(states)
    for n, state in enumerate(states):
        kept = restore([c.record for c in changes[: n + 1]], changes[n].hash)
        assert exact(values(kept)) == exact(state)
        assert changes[n].hash == state_hash(state)
        assert changes[n].whole == (n == 0)


@calm
@given(st.data())
def test_no_edit_in_place_is_missed(data):
    """The same objects are edited and saved again and again, at every depth."""
    state = {"messages": [{"role": "user", "n": 0, "tags": []}], "context": {"a": {}, "b": []}, "goal": "g"}
    encoder, records = Encoder(), []
    for _ in range(data.draw(st.integers(1, 8))):
        edit(state, data)
        change = encoder.change(state)
        records.append(change.record)
        assert exact(values(restore(records, change.hash))) == exact(state)


def edit(state, data):
    target = state[data.draw(st.sampled_from(["messages", "context"]))]
    for _ in range(data.draw(st.integers(0, 2))):  # some levels down
        inner = [v for v in (target.values() if isinstance(target, dict) else target) if isinstance(v, (dict, list))]
        if not inner:
            break
        target = data.draw(st.sampled_from(inner))
    value = data.draw(LOOKALIKES)
    if isinstance(target, dict):
        target[data.draw(st.sampled_from(["role", "n", "new"]))] = copy.deepcopy(value)
        return
    how = data.draw(st.sampled_from(["append", "insert", "set", "pop", "drop first and append"]))
    if how == "append" or not target:
        target.append(copy.deepcopy(value))
    elif how == "insert":
        target.insert(0, copy.deepcopy(value))
    elif how == "set":
        target[data.draw(st.integers(0, len(target) - 1))] = copy.deepcopy(value)
    elif how == "pop":
        target.pop(data.draw(st.integers(0, len(target) - 1)))
    else:
        del target[0]
        target.append(copy.deepcopy(value))


@calm
@given(STATES, STATES)
def test_an_encoder_begun_from_stored_bytes_goes_on_from_them(first, second):
    begun = Encoder().change(first)
    kept = restore([begun.record], begun.hash)
    change = Encoder(kept).change(second)
    assert not change.whole
    assert exact(values(restore([begun.record, change.record], change.hash))) == exact(second)


@calm
@given(st.lists(STATES, min_size=1, max_size=4))
def test_a_snapshot_stands_for_everything_before_it(states):
    encoder = Encoder()
    for state in states:
        wanted = encoder.change(state).hash
    snapshot = encode.whole(encoder.kept())
    assert exact(values(restore([snapshot], wanted))) == exact(states[-1])


def incompressible(rng, size):
    return rng.randbytes(size // 2).hex()


def history(count, size=1000, seed=1):
    rng = random.Random(seed)
    return {"messages": [{"role": "user", "n": n, "content": incompressible(rng, size)} for n in range(count)]}


@pytest.mark.parametrize(
    ("what", "do", "most"),
    [
        ("a message more", lambda m: m.append({"role": "user", "content": "x" * 300}), 400),
        ("the last one edited", lambda m: m[-1].update(content=m[-1]["content"] + "!"), 100),
        ("one in the middle edited", lambda m: m[2500].update(content="short"), 200),
        ("first and last edited", lambda m: (m[0].update(n=-1), m[-1].update(n=-1)), 200),
        ("one inserted at the front", lambda m: m.insert(0, {"role": "system", "content": "be calm"}), 200),
        ("one removed in the middle", lambda m: m.pop(2500), 100),
        ("the oldest dropped, one added", lambda m: (m.pop(0), m.append({"content": "new"})), 200),
        ("a type changed", lambda m: m[7].update(n=7.0), 100),
        ("nothing", lambda m: None, 20),
    ],
)
def test_a_save_costs_its_change_in_a_history_of_five_thousand_messages(what, do, most):
    state, encoder = history(5000), Encoder()
    first = encoder.change(state)
    do(state["messages"])
    change = encoder.change(state)
    assert len(change.record) <= most, what
    assert values(restore([first.record, change.record], change.hash)) == state


def test_messages_that_did_not_change_are_not_encoded_again(monkeypatch):
    state, encoder = history(500), Encoder()
    encoder.change(state)
    encoded = []
    plain = JSON.unit

    def counted(self, tag, part):
        encoded.append(part)
        return plain(tag, part)

    monkeypatch.setattr(type(JSON), "unit", counted)
    state["messages"].append({"role": "user", "content": "next"})
    encoder.change(state)
    state["messages"][3]["n"] = 3.0
    encoder.change(state)
    assert len(encoded) <= 4  # the new one and the edited one, not five hundred


def test_the_order_of_an_objects_keys_is_no_change():
    assert state_hash({"a": {"x": 1, "y": 2}, "b": 1}) == state_hash({"b": 1, "a": {"y": 2, "x": 1}})


def test_what_json_cannot_tell_apart_is_encoded_each_time():
    """A tuple is kept as JSON, and its edits are seen."""
    state: Any = {"messages": [{"when": (1, 2)}], "context": {"a": {"b": (1,)}}}
    encoder = Encoder()
    records = [encoder.change(state).record]
    state["messages"][0]["when"] = (1, 3)
    state["context"]["a"]["b"] = (True,)
    change = encoder.change(state)
    assert values(restore([*records, change.record], change.hash)) == {
        "messages": [{"when": [1, 3]}],
        "context": {"a": {"b": [True]}},
    }


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"a": "\ud800"}, "UTF-8"),
        ({"a": object()}, "JSON"),
        ({1: "a"}, "keys are texts"),
        ({"a": {1: "a"}}, "JSON"),
        ({"\ud800": 1}, "UTF-8"),
    ],
)
def test_a_state_that_cannot_be_kept_is_refused_and_the_next_save_is_whole(state, words):
    encoder = Encoder()
    encoder.change({"b": [1]})
    with pytest.raises(HoldfastError, match=words) as caught:
        encoder.change(state)
    assert caught.value.code == "invalid"
    change = encoder.change({"b": [1, 2]})
    assert change.whole
    assert values(restore([change.record], change.hash)) == {"b": [1, 2]}


def test_a_state_that_contains_itself_is_refused():
    state: Any = {"a": []}
    state["a"].append(state["a"])
    with pytest.raises(HoldfastError, match="nested"):
        Encoder().change(state)


@calm
@given(STATES, st.data())
def test_a_damaged_record_is_never_restored_as_something_else(state, data):
    change = Encoder().change(state)
    broken = bytearray(change.record)
    broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        kept = restore([bytes(broken)], change.hash)
    except HoldfastError as e:
        error = e.code
    else:
        error = "damaged" if exact(values(kept)) == exact(state) else "wrong"  # e.g. a bit that zstd does not use
    assert error == "damaged"


def test_a_state_beyond_the_limit_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(encode, "STATE_BYTES_MAX", 1000)
    with pytest.raises(HoldfastError, match="can be saved") as caught:
        Encoder().change({"a": "x" * 2000})
    assert caught.value.code == "invalid"


def test_snapshots_of_a_growing_state_cost_less_than_twice_its_deltas():
    encoder, state = Encoder(), {"messages": []}  # type: tuple[Encoder, Any]
    rng = random.Random(3)
    snapshot = deltas = chain = total = total_snapshots = 0
    for _ in range(400):
        state["messages"] += [{"content": incompressible(rng, 1000)} for _ in range(3)]
        change = encoder.change(state)
        total += len(change.record)
        if change.whole:
            snapshot, deltas, chain = len(change.record), 0, 0
            continue
        deltas, chain = deltas + len(change.record), chain + 1
        if encode.snapshot_due(snapshot, deltas, chain):
            snapshot, deltas, chain = len(encode.whole(encoder.kept())), 0, 0
            total_snapshots += snapshot
    assert 0 < total_snapshots < 2 * total
