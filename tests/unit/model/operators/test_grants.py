"""Grants as pure rules: rights are a function of the grants and of now, and a chain only ever narrows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.errors import HoldfastError
from holdfast.model.operators import grants
from holdfast.model.operators.grants import OWN, VERBS, Grant, Scope

HOST = "hst_here"
WEB = Scope("ses_web", "web", "op_ada", "op_bot")


def grant(**facts: Any) -> Grant:
    base: dict[str, Any] = {
        "id": "grt_root",
        "operator": "op_ada",
        "parent": None,
        "verbs": VERBS,
        "sessions": ["*"],
        "until": None,
        "depth": 8,
        "by": HOST,
        "at": 0.0,
    }
    return Grant(**{**base, **facts})


ROOT = grant()


def child(**facts: Any) -> Grant:
    return grant(
        **{
            "id": "grt_child",
            "operator": "op_bot",
            "parent": "grt_root",
            "verbs": ["view", "type"],
            "sessions": ["web"],
            "until": 100.0,
            "depth": 0,
            "by": "op_ada",
            "at": 1.0,
            **facts,
        }
    )


def chain(leaf: Grant, *others: Grant) -> grants.Chain | None:
    known = {g.id: g for g in (ROOT, leaf, *others)}
    return grants.chain_of(leaf, known, lambda g: False, HOST)


def may(leaf: Grant, verb: str, scope: Scope | None = WEB, now: float = 50.0, kind: str = "agent") -> bool:
    found = chain(leaf)
    return found is not None and grants.allows([found], kind, verb, scope, now)


def test_what_is_named_is_allowed_and_nothing_else() -> None:
    assert may(child(), "view")
    assert not may(child(), "stop")
    assert not may(child(), "fly")
    assert not may(child(), "view", Scope("ses_db", "db", "op_ada", "op_ada"))
    assert not may(child(), "view", None)  # the host itself takes *


def test_a_grant_ends_on_the_second() -> None:
    assert may(child(), "view", now=99.999)
    assert not may(child(), "view", now=100.0)


def test_the_parents_time_is_the_childs_too() -> None:
    parent = grant(until=60.0)
    links = (child(until=60.0), parent)
    assert grants.allows([links], "agent", "view", WEB, 59.0)
    assert not grants.allows([links], "agent", "view", WEB, 60.0)


def test_own_means_started_or_acted_as() -> None:
    mine = child(sessions=[OWN])
    assert may(mine, "view", WEB)
    assert may(mine, "view", Scope("ses_x", "x", "op_bot", "op_ada"))
    assert not may(mine, "view", Scope("ses_x", "x", "op_ada", "op_ada"))


def test_a_session_is_matched_by_name_or_id() -> None:
    assert may(child(sessions=["ses_w*"]), "view")
    assert may(child(sessions=["w?b"]), "view")
    assert not may(child(sessions=["WEB"]), "view")


@pytest.mark.parametrize("verb", sorted(grants.HUMAN_ONLY))
def test_an_agent_never_has_what_is_for_humans_whatever_was_signed(verb: str) -> None:
    signed = child(verbs=[verb])
    assert not may(signed, verb)
    assert not may(signed, verb, kind="service")
    assert may(signed, verb, kind="human")
    with pytest.raises(HoldfastError, match="never has"):
        grants.check_kind([verb], "agent")


@pytest.mark.parametrize(
    "facts",
    [
        {"verbs": ["view", "stop"]},
        {"sessions": ["web", "db"]},
        {"sessions": ["*"]},
        {"sessions": [OWN]},
        {"until": None},
        {"until": 200.0},
        {"depth": 1},
        {"by": "op_eve"},
        {"parent": "grt_other"},
    ],
)
def test_a_child_that_is_wider_is_no_grant(facts: dict[str, Any]) -> None:
    parent = child(id="grt_lead", operator="op_lead", verbs=["view", "type", "delegate"], sessions=["web"], depth=1)
    narrow = child(parent="grt_lead", by="op_lead")
    assert chain(narrow, parent) is not None
    wider = child(**{"parent": "grt_lead", "by": "op_lead", **facts})
    with pytest.raises(HoldfastError) as refused:
        grants.check_child(wider, parent, 1.0)
    assert refused.value.code == "not_allowed"
    assert chain(wider, parent) is None


def test_a_grant_without_delegate_or_depth_is_not_passed_on() -> None:
    for lead in (child(id="grt_lead", operator="op_lead", depth=1), child(id="grt_lead", verbs=["delegate", "view"])):
        with pytest.raises(HoldfastError):
            grants.check_child(child(parent="grt_lead", by=lead.operator, verbs=["view"]), lead, 1.0)


def test_a_broken_chain_grants_nothing() -> None:
    assert chain(child(parent="grt_gone")) is None
    assert chain(child(parent=None)) is None  # only the host makes roots
    known = {g.id: g for g in (ROOT, child())}
    assert grants.chain_of(child(), known, lambda g: g.id == "grt_root", HOST) is None
    loop = child(parent="grt_child", by="op_bot")
    assert grants.chain_of(loop, {"grt_child": loop}, lambda g: False, HOST) is None


@pytest.mark.parametrize(
    ("parent", "one", "covered"),
    [
        ("*", "anything*", True),
        ("web-*", "web-1", True),
        ("web-*", "web-1*", True),
        ("web-*", "web", False),
        ("web-*", "*", False),
        ("w?b", "web", True),
        ("w?b", "w?b", True),
        ("w?b", "w*", False),
        ("*", OWN, True),
        ("web", OWN, False),
        (OWN, "web", False),
        (OWN, OWN, True),
        ("w*b", "wx*", False),
    ],
)
def test_patterns_within_patterns(parent: str, one: str, covered: bool) -> None:
    assert grants.covers(parent, one) is covered


@given(
    st.lists(st.sampled_from(VERBS), min_size=1),
    st.sampled_from(["*", "web-*", "web", OWN]),
    st.sampled_from([None, 10.0, 50.0]),
    st.sampled_from(VERBS),
    st.sampled_from(["web", "web-1", "db"]),
    st.floats(0, 100),
    st.sampled_from(["human", "agent"]),
)
def test_no_child_ever_allows_what_its_parent_does_not(
    verbs: list[str], glob: str, until: float | None, verb: str, name: str, now: float, kind: str
) -> None:
    lead = grant(
        id="grt_lead",
        operator="op_lead",
        parent="grt_root",
        verbs=["view", "type", "delegate"],
        sessions=["web-*", OWN],
        until=40.0,
        depth=1,
        by="op_ada",
    )
    leaf = child(parent="grt_lead", by="op_lead", verbs=verbs, sessions=[glob], until=until, depth=0)
    scope = Scope(f"ses_{name}", name, "op_bot", "op_lead")
    allowed = grants.allows([(leaf, lead, ROOT)], kind, verb, scope, now)
    assert not allowed or grants.allows([(lead, ROOT)], "human", verb, scope, now)


def test_a_channels_rights_name_their_grants_and_their_end() -> None:
    other = child(id="grt_more", verbs=["resize"], until=70.0)
    verbs, used, until = grants.rights([(child(), ROOT), (other, ROOT)], "agent", WEB, 50.0)
    assert (verbs, used, until) == ({"view", "type", "resize"}, ["grt_child", "grt_more"], 70.0)
    verbs, used, until = grants.rights([(child(), ROOT), (other, ROOT)], "agent", WEB, 80.0)
    assert (verbs, used, until) == ({"view", "type"}, ["grt_child"], 100.0)


@pytest.mark.parametrize(
    "change",
    [
        {"verbs": []},
        {"verbs": ["fly"]},
        {"verbs": "view"},
        {"sessions": []},
        {"sessions": [""]},
        {"sessions": ["a\n"]},
        {"sessions": ["w\u0435b"]},
        {"sessions": ["x"] * 33},
        {"depth": -1},
        {"depth": 99},
        {"depth": True},
        {"until": "soon"},
        {"id": 7},
        {"operator": ""},
        {"more": 1},
    ],
)
def test_foreign_json_that_is_no_grant_is_refused(change: dict[str, Any]) -> None:
    value = {**child().as_dict(), **change}
    with pytest.raises(HoldfastError) as refused:
        grants.parse(value)
    assert refused.value.code == "not_allowed"


def test_what_is_signed_is_all_of_it_and_for_one_host() -> None:
    first = child().signed_bytes(HOST)
    assert grants.parse(child().as_dict()).signed_bytes(HOST) == first
    assert child().signed_bytes("hst_there") != first
    for change in ({"until": 99.0}, {"depth": 1}, {"verbs": ["view"]}, {"operator": "op_eve"}):
        assert child(**change).signed_bytes(HOST) != first
