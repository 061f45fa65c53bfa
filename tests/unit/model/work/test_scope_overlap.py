"""Scopes that share a file are always told so; those that cannot are left side by side."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model.work import scope_overlap
from holdfast.model.work.file_changes import Scope
from holdfast.model.work.scope_overlap import overlap

_NAMES = st.text(alphabet="ab*?[]!.", min_size=1, max_size=4) | st.sampled_from(["**", "a", "b", ".", "*", "a**b"])
_GLOBS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_PATHS = st.lists(st.text(alphabet="ab.", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@given(st.lists(_GLOBS, max_size=3), st.lists(_GLOBS, max_size=3), _PATHS)
@example(["src/**"], ["src/login"], "src/login/a")
@example(["[a/b]"], ["a"], "a")
@example(["[]/a]"], ["a"], "a")
@example([], ["[!]"], "a")
@example([], ["[!]/**/?"], "a")
@example(["[b-a]"], ["[!b-a]", "[]-]"], "a")
def test_scopes_that_share_a_path_overlap_whichever_way_they_are_asked(a: list[str], b: list[str], path: str) -> None:
    assert (overlap(a, b) is None) == (overlap(b, a) is None)
    if path in Scope(a) and path in Scope(b):
        assert overlap(a, b) is not None


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        (["src/login/**"], ["src/search/**"], False),
        (["src/login/**"], ["src/**"], True),
        (["src"], ["src/login/a.py"], True),
        (["src"], ["srcs"], False),
        (["*.md"], ["*.py"], False),
        (["docs/*.md"], ["docs/a*"], True),
        (["docs/*.md"], ["docs/a?.txt"], False),
        (["**/test_*.py"], ["src/login/**"], True),
        (["a/*/c"], ["a/b/d"], False),
        ([], ["a"], True),
        (["**"], ["a"], True),
        (["a", "b"], ["c", "./b/"], True),
    ],
)
def test_what_is_plain_is_told_plainly(a: list[str], b: list[str], shared: bool) -> None:
    assert (overlap(a, b) is not None) is shared


def test_hostile_globs_are_decided_at_once() -> None:
    deep = "/".join(["**", "a*a*a*a*?"] * 60)
    assert overlap([deep], ["/".join(["a" * 200] * 120)]) is not None
    assert overlap(["a/" * 2000], ["a/" * 2000 + "b"]) is not None
    assert overlap(["*a" * 50], ["b*" * 50 + "c"]) is None


def test_what_cannot_be_told_apart_within_a_bound_counts_as_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "*a" * 8000, "b*" * 8000 + "c"  # as long as a contract allows: the pairs of their letters fill a memory
    assert overlap([long[0]], [long[1]]) == long
    many = ["a" * 300 + f"?{n}" for n in range(200)]
    assert overlap(many, [name + "*b" for name in many]) is not None
    assert overlap(["abx"], ["aby"]) is None
    monkeypatch.setattr(scope_overlap, "SCOPE_STEPS_MAX", 3)
    assert overlap(["abx"], ["aby"]) == ("abx", "aby")


@pytest.mark.parametrize("glob", ["docs/../src/a", "/root/src/a", "sr[!x]/a"])
def test_a_path_that_leaves_its_folder_or_a_bracket_that_may_be_a_slash_is_near_everything(glob: str) -> None:
    assert overlap([glob], ["src/a"]) is not None


def test_a_bracket_of_all_letters_but_some_stands_for_a_slash_too() -> None:
    assert "a/b" in Scope(["a[!x]b"])
    assert overlap(["a[!x]b"], ["a/b"]) is not None


@pytest.mark.parametrize(
    ("glob", "path", "inside"),
    [
        ("[!]", "[!]", True),  # no bracket ends it: letters
        ("[]]", "]", True),
        ("[!]]", "]", False),
        ("[!]]", "a", True),
        ("[b-a]", "b", False),
        ("[!b-a]", "b", True),
        ("[^a]", "^", True),
        ("[a-]", "-", True),
        ("[\\]", "\\", True),
        ("[[]", "[", True),
        ("a[&&b]c", "a&c", True),
        ("a?c", "a\nc", True),
    ],
)
def test_a_bracket_means_what_it_means_in_a_shell(glob: str, path: str, inside: bool) -> None:
    assert (path in Scope([glob])) is inside
