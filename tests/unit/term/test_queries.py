"""What a client's terminal never gets to see, and that all the rest passes as it was."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.term.queries import HOLD_MAX, MAYBE_QUERY, QueryFilter
from holdfast.term.screen import Screen

QUESTIONS = [
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[>0c",
    b"\x1b[=c",
    b"\x1bZ",
    b"\x05",
    b"\x1b[5n",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?15n",
    b"\x1b[?996n",
    b"\x1b[?2026$p",
    b"\x1b[4$p",
    b"\x1b[?u",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?4m",
    b"\x1b[11t",
    b"\x1b[13;2t",
    b"\x1b[14t",
    b"\x1b[14;2t",
    b"\x1b[16t",
    b"\x1b[18t",
    b"\x1b[19t",
    b"\x1b[20t",
    b"\x1b[21t",
    b"\x1b[x",
    b"\x1b[1$w",
    b"\x1b[1$u",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b[?1;1;0S",
    b"\x1b[1'|",
    b"\x1b[&u",
    b"\x1b[1;1;2;2#|",
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]12;?\x07",
    b"\x1b]4;1;?\x07",
    b"\x1b]4;1;#fff;2;?\x1b\\",
    b"\x1b]5;0;?\x07",
    b"\x1b]21;foreground=?\x07",
    b"\x1b]22;?current\x07",
    b"\x1b]50;?\x07",
    b"\x1b]99;i=1:p=?;\x1b\\",
    b"\x1b]60\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;p;" + b"QUJD" * 9000 + b"\x1b\\",
    b"\x1b]5522;type=read;Lg==\x1b\\",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1b]1337;Copy=:aGVsbG8=\x07",
    b"\x1b]1337;RequestUpload=format=tgz\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bP$q q\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1bP+Q544e\x1b\\",
    b"\x1bP0$qr\x1b\\",
    b"\x1b_Gi=31,a=q;AAAA\x1b\\",
    b"\x1b_Ga=T,f=100;" + b"iVBO" * 3000 + b"\x1b\\",
    b"\x1b_25a1;s\x1b\\",
    b"\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=\x07\x1b\\",
    b"\x1bPtmux;\x1b\x1b[6n\x1b\\",
    b"\x1b[?2048h",
    b"\x1b[?2031h",
    b"\xc2\x9b6n",
    b"\xc2\x9d11;?\x07",
    b"\xc2\x9d52;c;eA==\xc2\x9c",
    b"\xc2\x90$qm\xc2\x9c",
    b"\xc2\x9fGa=q\xc2\x9c",
    b"\xc2\x9a",
    b"\x1b]00052;c;eA==\x07",
    b"\x1b[000000000000000000006n",
]

OTHERS = [
    b"plain text\r\n",
    "naïve «漢字» °\u00a0😀".encode(),
    b"\x00\x07\x08\x7f",
    b"\xff\xfe\x9b6n",
    b"\x80",
    b"\x1b[m",
    b"\x1b[1;31m",
    b"\x1b[38;2;1;2;3m",
    b"\x1b[4:3m",
    b"\x1b[>4;2m",
    b"\x1b[>4n",
    b"\x1b[2J",
    b"\x1b[K",
    b"\x1b[3;4H",
    b"\x1b[?25h",
    b"\x1b[?25l",
    b"\x1b[?1049h",
    b"\x1b[?1;1000;1006h",
    b"\x1b[?2004h",
    b"\x1b[?2026h",
    b"\x1b[?2048l",
    b"\x1b[?7s",
    b"\x1b[22;0t",
    b"\x1b[23;0t",
    b"\x1b[8;24;80t",
    b"\x1b[2t",
    b"\x1b[?0c",
    b"\x1b[?1;2c",
    b"\x1b[2 q",
    b"\x1b[!p",
    b"\x1b[1$r",
    b"\x1b[>1u",
    b"\x1b[<u",
    b"\x1b[=5;1u",
    b"\x1b[u",
    b"\x1b[s",
    b"\x1b[2;3r",
    b"\x1b[3g",
    b"\x1b[5b",
    b"\x1b[3S",
    b"\x1b[1;2;3;4$x",
    b"\x1b7",
    b"\x1b8",
    b"\x1b=",
    b"\x1b>",
    b"\x1b(B",
    b"\x1b)0",
    b"\x1bM",
    b"\x1bc",
    b"\x1b#8",
    b"\x1b%G",
    b"\x1b]0;why?\x07",
    b"\x1b]2;?\x1b\\",
    b"\x1b]7;file:///tmp/a?b\x07",
    b"\x1b]8;;http://example.org/?q=?\x1b\\",
    b"\x1b]133;A\x07",
    b"\x1b]4;1;#ff0000\x07",
    b"\x1b]10;rgb:11/22/33\x1b\\",
    b"\x1b]104\x07",
    b"\x1b]110\x1b\\",
    b"\x1b]9;hello?\x07",
    b"\x1b]777;notify;a;?\x07",
    b"\x1b]1337;File=name=eA==;inline=1:" + b"QUJD" * 3000 + b"\x07",
    b"\x1b]1337;SetMark\x07",
    b"\x1b]4;" + b"1;#000000;" * 1500 + b"2;#fff\x07",
    b"\x1bPq#0;2;0;0;0#0~~@@vv\x1b\\",
    b"\x1b_unknown\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\x1b[31\nm",
    b"\x1b\n7",
]


def through(data: bytes, cuts: list[int] | None = None, hold_max: int = HOLD_MAX) -> bytes:
    filtering = QueryFilter(hold_max)
    borders = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    pieces = [filtering.strip(data[a:b]) for a, b in itertools.pairwise(borders)]
    return b"".join(pieces) + filtering.flush()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda data: repr(data[:30]))
def test_a_question_is_removed_wherever_it_is_cut(question: bytes) -> None:
    data = b"before" + question + b"after"
    assert through(data) == b"beforeafter"
    for cut in range(min(len(data), 80)):
        assert through(data, [cut]) == b"beforeafter"
    assert through(data, list(range(0, len(data), max(1, len(data) // 400)))) == b"beforeafter"


@pytest.mark.parametrize("other", OTHERS, ids=lambda data: repr(data[:30]))
def test_what_only_looks_similar_passes(other: bytes) -> None:
    data = b"before" + other + b"after"
    assert through(data) == data
    for cut in range(min(len(data), 80)):
        assert through(data, [cut]) == data


@pytest.mark.parametrize("other", OTHERS, ids=lambda data: repr(data[:30]))
def test_nothing_is_held_back_once_a_sequence_is_complete(other: bytes) -> None:
    filtering = QueryFilter()
    assert filtering.strip(other + b".") == other + b"."
    assert filtering.flush() == b""


def test_reporting_modes_are_taken_out_of_a_list() -> None:
    assert through(b"\x1b[?1004;2048;2004h") == b"\x1b[?1004;2004h"
    assert through(b"\x1b[?2031;2048h") == b""


@pytest.mark.parametrize("hidden", [b"\x1b[6\nn", b"\x1b\n[6n", b"\x1b[\x0b6\x0cn", b"\x1b[\x7f6n\n"])
def test_control_characters_inside_do_not_hide_a_question_and_still_act(hidden: bytes) -> None:
    kept = bytes(byte for byte in hidden if byte in b"\n\x0b\x0c\x7f")
    assert through(b"a" + hidden + b"b") == b"a" + kept + b"b"


def test_a_sequence_that_another_one_interrupts_is_no_question() -> None:
    assert through(b"\x1b[6\x1b[31m") == b"\x1b[6\x1b[31m"
    assert through(b"\x1b[6\x18n") == b"\x1b[6\x18n"
    assert through(b"\x1b]52;c;abc\x1b[31mtext") == b"\x1b[31mtext"
    assert through(b"\x1b]52;c;abc\x18text") == b"text"


@pytest.mark.parametrize("opening", [b"\x1b[", b"\x1b]4;1;", b"\x1b]", b"\x1bP"])
def test_only_so_much_is_held_back(opening: bytes) -> None:
    filtering = QueryFilter()
    fed, passed = len(opening), len(filtering.strip(opening))
    for _ in range(40):
        fed, passed = fed + 500, passed + len(filtering.strip(b"1" * 500))
        removing = passed == 0 and fed > HOLD_MAX and opening in (b"\x1b]", b"\x1bP")
        assert removing or fed - passed <= HOLD_MAX
    assert len(filtering.flush()) <= HOLD_MAX


@pytest.mark.parametrize(
    "data", [b"\x1b\x1b[6n[6n", b"\x1b]5\x1b[6n2;c;eA==\x07", b"\x1b[\x1bZ6n", b"\xc2\x9d5\x1b[6n2;c;eA==\x07"]
)
def test_taking_one_away_does_not_make_another(data: bytes) -> None:
    once = through(data)
    assert through(once) == once
    assert b"\x18" in once  # what was broken off stays broken off


def test_an_overlong_question_is_defused() -> None:
    asked = b"\x1b]4;" + b"1;#000000;" * 1000 + b"2;?\x07"
    assert through(asked) == asked.replace(b"?", b"")
    padded = b"\x1b[" + b"0" * 5000 + b"6n"
    assert through(padded).endswith(b"06\x18")
    assert through(b"\x1b]" + b"0" * 5000 + b"52;c;eA==\x07after") == b"after"
    assert through(b"\x1bP" + b"0;" * 5000 + b"$qm\x1b\\after") == b"after"


@pytest.mark.parametrize(
    "prefix", [b"\x1b", b"\x1b[", b"\x1b[?20", b"\x1b]", b"\x1b]1", b"\x1b]11;", b"\x1bP", b"\x1bP$", b"\xc2"]
)
def test_what_stays_open_comes_out_at_the_end(prefix: bytes) -> None:
    filtering = QueryFilter()
    assert filtering.strip(b"text" + prefix) == b"text"
    assert filtering.flush() == prefix
    assert filtering.strip(b"more") == b"more"


_bits = st.sampled_from(
    [
        *(known for known in QUESTIONS + OTHERS if len(known) < 100),
        b"\x1b",
        b"[",
        b"]",
        b"?",
        b";",
        b"0",
        b"6",
        b"n",
        b"\x1b\\",
        b"\x07",
        b"\x18",
        b"\n",
        b"\xc2",
        b"\x9c",
        b"\x9b",
        b"\x1bP",
        b"\x1b]",
        b"\x1b_",
        b"\x1b[",
        b"52;",
        b"tmux;",
        b"1337;",
        b"Cop",
        b"\x00" * 5,
        b"h",
        b"2031",
    ]
)
_streams = st.lists(st.one_of(_bits, st.binary(max_size=8)), max_size=14).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(_streams, st.lists(st.integers(min_value=0, max_value=10_000), max_size=12), st.sampled_from([4, 16, HOLD_MAX]))
def test_any_split_of_a_stream_gives_the_same_result(data: bytes, cuts: list[int], hold_max: int) -> None:
    assert through(data, cuts, hold_max) == through(data, None, hold_max)
    assert through(data, list(range(len(data))), hold_max) == through(data, None, hold_max)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(QUESTIONS + OTHERS), st.sampled_from([b"", b"x", b"\r\n"])), max_size=20))
def test_a_stream_loses_its_questions_and_nothing_else(parts: list[tuple[bytes, bytes]]) -> None:
    data = b"".join(part + gap for part, gap in parts)
    if b"\xc2" in b"".join(part for part, _ in parts):
        data = data.replace(b"\xc2\xc2", b"\xc2")
    expected = b"".join((b"" if part in QUESTIONS else part) + gap for part, gap in parts)
    assert through(data) == expected


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200).map(lambda data: data.replace(b"\x1b", b"").replace(b"\x05", b"").replace(b"\xc2", b"")))
def test_bytes_without_escapes_pass_at_once(data: bytes) -> None:
    filtering = QueryFilter()
    assert filtering.strip(data) == data
    assert MAYBE_QUERY.search(data) is None


_words = st.sampled_from(
    [
        *(known for known in QUESTIONS + OTHERS if len(known) < 100 and not set(known) & set(range(0x80, 0xA0))),
        b"\x1b",
        b"[",
        b"]",
        b"P",
        b"?",
        b";",
        b"0",
        b"6",
        b"n",
        b"\x1b\\",
        b"\x07",
        b"\x18",
        b"\n",
        b"\x1bP",
        b"\x1b]",
        b"\x1b_",
        b"\x1b[",
        b"52;",
        b"11",
        b"c",
        b"$q",
        b"m",
        b">",
        b"4;1;",
        b"?\x07",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(_words, max_size=16).map(b"".join), st.lists(st.integers(min_value=0, max_value=10_000), max_size=6))
def test_a_real_emulator_finds_nothing_to_answer_in_what_is_left(data: bytes, cuts: list[int]) -> None:
    with Screen(20, 5) as screen:
        assert screen.feed(through(data, cuts)) == b""


@settings(max_examples=400, deadline=None)
@given(_streams)
def test_filtering_twice_changes_nothing_more(data: bytes) -> None:
    assert through(through(data)) == through(data)


@pytest.mark.parametrize(
    "other", [o for o in OTHERS if not o.startswith((b"\x1bP", b"\x1b\n", b"\x1b[31\n"))], ids=lambda d: repr(d[:30])
)
def test_ordinary_output_is_no_maybe(other: bytes) -> None:
    assert MAYBE_QUERY.search(b"text" + other + b" text") is None
