"""Routing table and presence of a relay node."""

from __future__ import annotations

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.limits import RELAY_CONTESTED, RELAY_CONTESTED_S, RELAY_LINES_MAX, RELAY_SEEN_MAX
from holdfast.relay import lines as relay_lines
from holdfast.relay.lines import DEVICE, HOST, Joined, Lines, Party, Presence

BUILD = Party("acme", HOST, "hst_build")


def test_a_host_is_found_while_its_line_is_there() -> None:
    lines = Lines()
    assert lines.presence("acme", "hst_build") == Presence(False, None)
    assert lines.join(1, BUILD, 10.0) == Joined(None, False)
    assert lines.host("acme", "hst_build") == 1
    assert lines.party(1) == BUILD
    assert lines.presence("acme", "hst_build") == Presence(True, 10.0)
    assert lines.leave(1, 20.0) == BUILD
    assert lines.host("acme", "hst_build") is None
    assert lines.presence("acme", "hst_build") == Presence(False, 20.0)


def test_another_tenants_host_is_not_found() -> None:
    lines = Lines()
    lines.join(1, BUILD, 10.0)
    assert lines.host("other", "hst_build") is None
    assert lines.presence("other", "hst_build") == Presence(False, None)


def test_a_device_is_no_host() -> None:
    lines = Lines()
    lines.join(1, Party("acme", DEVICE, "hst_build"), 10.0)
    assert lines.host("acme", "hst_build") is None


def test_a_host_that_dials_again_replaces_its_line_and_stays_online() -> None:
    lines = Lines()
    lines.join(1, BUILD, 10.0)
    assert lines.join(2, BUILD, 15.0) == Joined(1, False)
    assert lines.leave(1, 16.0) is None, "the old line's end says nothing about the host"
    assert lines.host("acme", "hst_build") == 2
    assert lines.presence("acme", "hst_build") == Presence(True, 10.0)


def test_two_machines_with_one_key_are_noticed() -> None:
    lines = Lines()
    lines.join(0, BUILD, 0.0)
    told = [lines.join(n, BUILD, n * 1.0).contested for n in range(1, RELAY_CONTESTED + 1)]
    assert told == [False] * (RELAY_CONTESTED - 1) + [True]


def test_a_host_on_a_bad_network_is_not_taken_for_two() -> None:
    lines = Lines()
    lines.join(0, BUILD, 0.0)
    assert not any(lines.join(n, BUILD, n * RELAY_CONTESTED_S).contested for n in range(1, 20))


def test_a_full_node_refuses_a_newcomer_and_takes_one_that_dials_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_lines, "RELAY_LINES_MAX", 2)
    lines = Lines()
    lines.join(1, BUILD, 0.0)
    lines.join(2, Party("acme", DEVICE, "dev_1"), 0.0)
    with pytest.raises(HoldfastError) as e:
        lines.join(3, Party("acme", DEVICE, "dev_2"), 0.0)
    assert e.value.code == "quota"
    assert lines.join(4, BUILD, 0.0).replaced == 1


def test_what_a_node_remembers_is_bounded_and_never_forgets_who_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RELAY_LINES_MAX < RELAY_SEEN_MAX
    monkeypatch.setattr(relay_lines, "RELAY_SEEN_MAX", 3)
    lines = Lines()
    lines.join(0, BUILD, 1.0)
    for n in range(1, 50):
        lines.join(n, Party("acme", HOST, f"hst_{n}"), 2.0)
        lines.leave(n, 3.0)
    assert len(lines._seen) == 3
    assert lines.presence("acme", "hst_build") == Presence(True, 1.0)
    assert lines.presence("acme", "hst_49") == Presence(False, 3.0)
