"""Approval rules: what they cover, and text in which nothing can hide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import config_toml, patterns
from holdfast.model.errors import HoldfastError
from holdfast.model.inbox import approval_rules

compiled = patterns.pattern


def rules(*tables: dict[str, Any]) -> list[approval_rules.Rule]:
    return approval_rules.parse(list(tables), compiled)


def test_a_rule_without_words_covers_everything_that_agents_run() -> None:
    (rule,) = rules({})
    for verb in ("exec", "run", "send"):
        for kind in ("agent", "service"):
            assert approval_rules.needed([rule], verb, kind, "any", b"true\r") is rule
        assert approval_rules.needed([rule], verb, "human", "any", b"true\r") is None
    assert rule.timeout_s == 300


def test_pattern_session_verbs_and_kinds_all_have_to_match() -> None:
    table = {"pattern": "git push", "session": "dep*", "verbs": ["exec"], "kinds": ["agent"], "timeout": "90s"}
    (rule,) = found = rules(table)
    assert rule.timeout_s == 90
    assert approval_rules.needed(found, "exec", "agent", "deploy", b"cd x && git push") is rule
    for verb, kind, session, command in [
        ("run", "agent", "deploy", b"git push"),
        ("exec", "service", "deploy", b"git push"),
        ("exec", "agent", "web", b"git push"),
        ("exec", "agent", "deploy", b"git pull"),
    ]:
        assert approval_rules.needed(found, verb, kind, session, command) is None


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        (b"ls -l\r", True),
        (b"ls\nls\n", True),
        ("größe\r".encode(), True),
        (b"\r", True),
        (b"rm -r", False),
        (b"rm -rX\x7ff /\r", False),
        (b"\x1b[A\r", False),
        (b"ls\t\r", False),
        (b"\x03", False),
        (b"", False),
    ],
)
def test_typing_is_judged_by_itself_only_as_whole_plain_lines(typed: bytes, whole: bool) -> None:
    assert approval_rules.whole_lines(typed) is whole


def test_a_piece_of_a_line_needs_approval_whatever_it_says() -> None:
    found = rules({"pattern": "rm -rf"})
    assert approval_rules.needed(found, "send", "agent", "s", b"rm -r") is not None
    assert approval_rules.needed(found, "send", "agent", "s", b"yes\r") is None
    assert approval_rules.needed(found, "exec", "agent", "s", b"rm -r") is None


def test_typing_through_a_channel_is_refused_where_a_rule_covers_sending() -> None:
    assert approval_rules.typing_refused(rules({"session": "dep*"}), "agent", "deploy")
    assert not approval_rules.typing_refused(rules({"session": "dep*"}), "agent", "web")
    assert not approval_rules.typing_refused(rules({"verbs": ["exec"]}), "agent", "web")
    assert not approval_rules.typing_refused(rules({}), "human", "web")


@pytest.mark.parametrize(
    "table",
    [
        {"patern": "x"},
        {"pattern": 7},
        {"session": ""},
        {"verbs": []},
        {"verbs": ["kill"]},
        {"kinds": ["human"]},
        {"timeout": "soon"},
        {"timeout": 0},
        {"timeout": True},
        {"timeout": -1},
        "x",
    ],
)
def test_a_mistake_in_a_rule_is_an_error_not_a_rule_that_matches_nothing(table: Any) -> None:
    with pytest.raises(HoldfastError):
        approval_rules.parse([table], compiled)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -l", "ls -l"),
        ("a\nb", "a⏎\nb"),
        ("a\x1b[2Kb", "a⟨U+001B⟩[2Kb"),
        ("a\rb", "a⟨U+000D⟩b"),
        ("\u202ertl", "⟨U+202E⟩rtl"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("a\u00a0b", "a⟨U+00A0⟩b"),
        ("\t", "⟨U+0009⟩"),
        ("⟨U+001B⟩", "⟨U+27E8⟩U+001B⟩"),
        ("⏎", "⟨U+23CE⟩"),
        ("\udcff", "⟨xFF⟩"),
        ("größe → 名", "größe → 名"),
    ],
)
def test_what_has_no_shape_is_spelled_out(text: str, shown: str) -> None:
    assert approval_rules.visible(text) == shown


@given(st.text(), st.text())
def test_two_different_commands_never_look_the_same(one: str, other: str) -> None:
    shown = approval_rules.visible(one)
    assert (shown == approval_rules.visible(other)) == (one == other)
    assert all(c.isprintable() or c == "\n" for c in shown)


def test_the_environment_shows_what_differs_and_no_secret() -> None:
    base = {"PATH": "/bin", "HOME": "/root", "LANG": "C"}
    env = {"PATH": "/evil:/bin", "HOME": "/root", "LD_PRELOAD": "x.so\x1b", "API_TOKEN": "hunter2"}
    assert approval_rules.env_changes(env, base) == {
        "API_TOKEN": "(hidden, 7 characters)",
        "LD_PRELOAD": "x.so⟨U+001B⟩",
        "PATH": "/evil:/bin",
        "LANG": None,
    }


# -- the file they stand in


def test_settings_of_a_whole_file() -> None:
    found = config_toml.parse(
        '[notify]\nwebhook = "http://127.0.0.1:1/x"\ncommand = "tell"\ndesktop = true\nkinds = ["secret"]\n'
        '[[approve]]\npattern = "a"\n[[approve]]\n[other]\nx = 1\n',
        compiled,
    )
    assert found.broken is None
    assert (found.notify.webhook, found.notify.command, found.notify.desktop) == (
        "http://127.0.0.1:1/x",
        ["tell"],
        True,
    )
    assert found.notify.kinds == {"secret"}
    assert len(found.rules) == 2


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "approve = 1",
        "[[approve]]\npattern = 7",
        "notify = 1",
        '[notify]\nwebhook = "ftp://x"',
        "[notify]\ncommand = []",
        '[notify]\ndesktop = "yes"',
        '[notify]\nkinds = ["all"]',
        "[notify]\nhook = 1",
    ],
)
def test_a_broken_file_says_so_and_allows_nothing_by_accident(text: str) -> None:
    found = config_toml.parse(text, compiled)
    assert found.broken is not None
    assert found.broken.message.startswith("config.toml")


def test_an_empty_file_is_no_configuration() -> None:
    found = config_toml.parse("", compiled)
    assert (found.broken, found.rules, found.notify.wanted) == (None, [], False)


def test_no_length_gets_a_command_past_a_rule() -> None:
    (rule,) = rules({"pattern": "git push"})
    padded = b"true #" + b"x" * rule.matcher.window_bytes + b"\ngit push"
    assert approval_rules.needed([rule], "exec", "agent", "web", padded) is rule
    assert approval_rules.needed([rule], "exec", "agent", "web", b"git status") is None
