"""What of a program's output reaches a person's terminal: each allowed sequence, no other, wherever chunks are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.term.screen import Screen
from holdfast.term.terminal_filter import HOLD_MAX, TerminalFilter
from tests.support.soak import examples

PASSED = [
    b"plain text\r\n",
    "naïve «漢字» °\u00a0😀".encode(),
    b"\x00\x07\x08\x7f",
    b"\xff\xfe\x9b6n",
    b"\x80",
    *(
        b"\x1b[" + rest
        for rest in (
            b"m",
            b"1;31m",
            b"38;2;1;2;3m",
            b"4:3m",
            b">4;2m",
            b">4n",
            b"2J",
            b"?2J",
            b"K",
            b"?K",
            b"3;4H",
            b"3;4f",
            b"5A",
            b"5G",
            b"5d",
            b"2X",
            b"2P",
            b"2@",
            b"2L",
            b"2M",
            b"5b",
            b"3S",
            b"3T",
            b"2Z",
            b"2I",
            b"3g",
            b"2;3r",
            b"s",
            b"u",
            b"1;80s",
            b"4h",
            b"20l",
            b"?25h",
            b"?25l",
            b"?1049h",
            b"?1;1000;1006h",
            b"?2004h",
            b"?2026h",
            b"?7s",
            b"?7r",
            b"?69h",
            b"?1004h",
            b"22;0t",
            b"23;0t",
            b"22t",
            b"2 q",
            b"!p",
            b'1"q',
            b"1$r",
            b"1;2;3;4$x",
            b"1;1;2;2$z",
            b"1'}",
            b"1'~",
            b"2 @",
            b"2 A",
            b"2*x",
            b"#{",
            b"#}",
            b">1u",
            b"<u",
            b"=5;1u",
            b"?5W",
            b"?80h",
        )
    ),
    *(
        b"\x1b" + rest
        for rest in (
            b"7",
            b"8",
            b"=",
            b">",
            b"(B",
            b")0",
            b"*A",
            b"+0",
            b"-A",
            b"M",
            b"D",
            b"E",
            b"H",
            b"N",
            b"O",
            b"c",
            b"#8",
            b"n",
            b"o",
            b"~",
            b"V",
            b"W",
            b"6",
            b"9",
            b" F",
            b"\\",
        )
    ),
    b"\x1b]0;why?\x07",
    b"\x1b]2;a title\x1b\\",
    b"\x1b]7;file:///tmp/a?b\x07",
    b"\x1b]8;;http://example.org/?q=?\x1b\\",
    b"\x1b]8;id=1;https://example.org\x07",
    b"\x1b]8;;mailto:a@b\x07",
    b"\x1b]8;;file:///etc/passwd\x07",
    b"\x1b]8;;\x1b\\",
    b"\x1b]133;A\x07",
    b"\x1b]133;D;0\x1b\\",
    b"\x1b]4;1;#ff0000\x07",
    b"\x1b]10;rgb:11/22/33\x1b\\",
    b"\x1b]11;#000\x07",
    b"\x1b]12;red\x07",
    b"\x1b]104\x07",
    b"\x1b]110\x1b\\",
    b"\x1b]9;4;1;50\x07",
    b"\x1b]9;4;0\x07",
    b"\x1b]7501;working\x07",
    b"\x1b]4;" + b"1;#000000;" * 1500 + b"2;#fff\x07",
    b"\x1bPq#0;2;0;0;0#0~~@@vv\x1b\\",
    b"\x1bP0;1;0q" + b"~" * 3000 + b"\x1b\\",
    b"\x1b_Ga=T,f=100,q=2;" + b"iVBO" * 3000 + b"\x1b\\",
    b"\x1b_Ga=d,q=2\x1b\\",
    b"\x1b_Gm=1,q=2;AAAA\x1b\\",
    b"\x1bPtmux;\x1b\x1b]2;outside\x07\x1b\\",
    b"\x1bPtmux;\x1b\x1b]8;;https://a\x1b\x1b\\text\x1b\\",
    b"\x1bPtmux;\x1b\x1b_Ga=T,q=2;AAAA\x1b\x1b\\\x1b\\",
]

DROPPED = [
    # the ones that do harm
    b"\x1bP1000p\x1b\\",
    b"\x1bP1000p%begin 1 1 0\x1b\\",
    b"\x1bP0;1|17/6c730d\x1b\\",
    b"\x1bP1;1;1{ @\x1b\\",
    b"\x1b[5i",
    b"\x1b[4i",
    b"\x1b[?5i",
    b"\x1b[0i",
    b"\x1b[?46h",
    b"\x1b[?38h",
    b"\x1b[?2l",
    b"\x1b[?3h",
    b"\x1b[2h",
    b"\x1b[12l",
    b"\x1b[?1001h",
    b"\x1b[?2048h",
    b"\x1b[?2031h",
    b"\x1b[?9001h",
    b"\x1b[>2T",
    b"\x1b[>1t",
    b"\x1b]50;fixed\x07",
    b"\x1b]46;/tmp/log\x07",
    b"\x1b]3;WM_NAME=x\x07",
    b"\x1b]1;icon\x07",
    b"\x1b]9;hello?\x07",
    b"\x1b]99;;done\x1b\\",
    b"\x1b]777;notify;a;b\x07",
    b"\x1b]1337;File=name=eA==;inline=1:QUJD\x07",
    b"\x1b]22;hand\x07",
    b"\x1b]1337;SetMark\x07",
    b"\x1b]l title\x1b\\",
    b"\x1b]P0123456",
    b"\x1b]R",
    b"\x1b]66;s=2;x\x07",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]5522;type=read;Lg==\x1b\\",
    b"\x1b]7;http://elsewhere/\x07",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\x1b_unknown\x1b\\",
    b"\x1b_25a1;s\x1b\\",
    b"\x1bP\x1b\\",
    b"\x1b_Gi=31,a=q;AAAA\x1b\\",
    b"\x1b_Ga=T,t=f;L2V0Yw==\x1b\\",
    b"\x1b_Ga=T,t=t;L2V0Yw==\x1b\\",
    b"\x1b_Ga=T,t=s;eA==\x1b\\",
    b"\x1b_Gx\x1b\\",
    b"\x1b_Ga=T,x;AAAA\x1b\\",
    b"\x1bPtmux;\x1b\x1bP1000p\x1b\x1b\\\x1b\\",
    b"\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=\x07\x1b\\",
    b"\x1bPtmux;\x1b\x1b[6n\x1b\\",
    b"\x1bPtmux;\x1b\x1bPtmux;x\x1b\x1b\\\x1b\\",
    b"\x1b%@",
    b"\x1b%G",
    b"\x1b G",
    b"\x1bk",
    b"\x1bl",
    b"\x1bZ",
    b"\x05",
    b"\x1b<",
    # questions
    *(
        b"\x1b[" + rest
        for rest in (
            b"c",
            b"0c",
            b">c",
            b">0c",
            b"=c",
            b"5n",
            b"6n",
            b"?6n",
            b"?15n",
            b"?996n",
            b"?2026$p",
            b"4$p",
            b"?u",
            b">q",
            b">0q",
            b"?4m",
            b"11t",
            b"13;2t",
            b"14t",
            b"18t",
            b"21t",
            b"8;24;80t",
            b"2t",
            b"x",
            b"1$w",
            b"1$u",
            b"q",
            b"1;1;1;1;1;1*y",
            b"?1;1;0S",
            b"1'|",
            b"1'z",
            b"&u",
            b"1;1;2;2#|",
            b"#R",
            b"000000000000000006n",
            b'61"p',
        )
    ),
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]4;1;?\x07",
    b"\x1b]4;1;#fff;2;?\x1b\\",
    b"\x1b]7501;?\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1bP0$qr\x1b\\",
    b"\x1bP=1s\x1b\\",
    # by C1 controls as UTF-8, with leading zeros, and longer than anything that is meant
    b"\xc2\x9b6n",
    b"\xc2\x905i\xc2\x9c",
    b"\xc2\x9d52;c;eA==\xc2\x9c",
    b"\xc2\x901000p\xc2\x9c",
    b"\xc2\x9fx\xc2\x9c",
    b"\xc2\x9ex\xc2\x9c",
    b"\xc2\x98x\xc2\x9c",
    b"\xc2\x9a",
    b"\xc2\x80",
    b"\x1b]00052;c;eA==\x07",
    b"\x1b]" + b"0" * 70_000 + b"2;c\x07",
    b"\x1bP" + b"0;" * 40_000 + b"1000p\x1b\\",
    b"\x1b[" + b"1;" * 40_000 + b"m",
]


def through(data: bytes, cuts: list[int] | None = None, hold_max: int = HOLD_MAX, *, clipboard: bool = False) -> bytes:
    filtering = TerminalFilter(hold_max=hold_max, clipboard=clipboard)
    borders = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    pieces = [filtering.strip(data[a:b]) for a, b in itertools.pairwise(borders)]
    return b"".join(pieces) + filtering.flush()


def cut_everywhere(data: bytes, *, clipboard: bool = False) -> set[bytes]:
    """What comes out, for one cut at each byte, and for cuts at all of them."""
    single = {through(data, [cut], clipboard=clipboard) for cut in range(min(len(data), 90))}
    every = through(data, list(range(0, len(data), max(1, len(data) // 400))), clipboard=clipboard)
    return single | {every, through(data, clipboard=clipboard)}


@pytest.mark.parametrize("sequence", PASSED, ids=lambda data: repr(data[:30]))
def test_what_is_allowed_passes_as_it_is(sequence: bytes) -> None:
    assert cut_everywhere(b"before" + sequence + b"after") == {b"before" + sequence + b"after"}


@pytest.mark.parametrize("sequence", DROPPED, ids=lambda data: repr(data[:30]))
def test_everything_else_is_dropped(sequence: bytes) -> None:
    assert cut_everywhere(b"before" + sequence + b"after") == {b"beforeafter"}


@pytest.mark.parametrize("sequence", PASSED, ids=lambda data: repr(data[:30]))
def test_nothing_is_held_back_once_a_sequence_is_complete(sequence: bytes) -> None:
    filtering = TerminalFilter()
    assert filtering.strip(sequence + b".") == sequence + b"."
    assert (filtering.open, filtering.flush()) == (False, b"")


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (b"\x1b[?1004;2048;2004h", b"\x1b[?1004;2004h"),
        (b"\x1b[?25;46;7l", b"\x1b[?25;7l"),
        (b"\x1b[4;12h", b"\x1b[4h"),
        (b"\x1b]8;;javascript:alert(1)\x07words", b"\x1b]8;;\x07words"),  # and not a part of the link before it
        (b"\x1b]8;;ssh://host\x1b\\words", b"\x1b]8;;\x1b\\words"),
        (b"\x1b_Ga=T,q=0,f=100;AAAA\x1b\\", b"\x1b_Ga=T,f=100,q=2;AAAA\x1b\\"),  # it answers nothing
        (b"\x1b_Ga=T;AA\xc2\x9b5iAA\x1b\\", b"\x1b_Ga=T,q=2;AA5iAA\x1b\\"),
        (b"\x1bPq~~\xc2\x9b5i\x9d\x1b\\", b"\x1bPq~~5i\x1b\\"),
        (b"\x1bPq~~\x1b[31mred", b"\x1bPq~~\x1b\\\x1b[31mred"),  # a picture that is broken off is ended
        (b"\x1bPq~~\x1b[6nred", b"\x1bPq~~\x1b\\red"),
        (b"\x1bPq~~", b"\x1bPq~~\x1b\\"),
        (b"\xc2\x9b31m", b"\x1b[31m"),
        (b"\x1bPtmux;\x1b\x1b]2;a\x07\x1b\x1b[6n\x1b\\", b"\x1bPtmux;\x1b\x1b]2;a\x07\x1b\\"),
        (b"\x1bPtmux;\x1b\x1bPq~\x1b\\after", b"\x1bPtmux;\x1b\x1bPq~\x1b\x1b\\\x1b\\after"),
        (b"\x1b]2;a\nb\x07", b""),
        (b"\x1b]2;a\xc2\x9b5ib\x07", b""),
        (b"\x1b[31\nm", b"\n\x1b[31m"),
        (b"\x1b[6\nn", b"\n"),
        (b"\x1b\n[6n", b"\n"),
        (b"\x1b\n7", b"\n\x1b7"),
        (b"\x1b[6\x1b[31m", b"\x1b[31m"),
        (b"\x1b[6\x18n", b"\x18n"),
        (b"\x1b]2;abc\x1b[31mtext", b"\x1b[31mtext"),
        (b"\x1b\x1b[6n[6n", b"[6n"),
        (b"\x1b]5\x1b[6n2;c;eA==\x07", b"2;c;eA==\x07"),
    ],
)
def test_a_sequence_is_narrowed_to_what_is_allowed(given: bytes, passed: bytes) -> None:
    assert cut_everywhere(given) == {passed}


def test_the_clipboard_is_written_where_that_is_set_and_never_read() -> None:
    written = b"\x1b]52;c;" + b"aGVs" * 9000 + b"\x07"
    assert cut_everywhere(written, clipboard=True) == {written}
    assert cut_everywhere(b"\x1b]52;c;?\x07", clipboard=True) == {b""}


@pytest.mark.parametrize("opening", [b"\x1b[", b"\x1b]2;", b"\x1b]", b"\x1bP", b"\x1b_G", b"\x1b(", b"\x1b\x01"])
def test_only_so_much_is_held_back(opening: bytes) -> None:
    filtering = TerminalFilter()
    filtering.strip(opening)
    for _ in range(300):
        filtering.strip(b"1" * 500)
        assert len(filtering._held) <= HOLD_MAX


_bits = st.sampled_from(
    [
        *(known for known in PASSED + DROPPED if len(known) < 100),
        *(b"\x1b", b"[", b"]", b"?", b";", b"0", b"6", b"n", b"\x1b\\", b"\x07", b"\x18", b"\n", b"\xc2", b"\x9c"),
        *(b"\x9b", b"\x1bP", b"\x1b]", b"\x1b_", b"\x1b[", b"52;", b"tmux;", b"\x1bPtmux;", b"\x1b\x1b", b"q", b"h"),
        *(b"\x00" * 5, b"1000", b"\x1b]P", b"G", b"a=T"),
    ]
)
_streams = st.lists(st.one_of(_bits, st.binary(max_size=8)), max_size=14).map(b"".join)


@settings(max_examples=examples(400), deadline=None)
@given(_streams, st.lists(st.integers(min_value=0, max_value=10_000), max_size=12), st.sampled_from([128, HOLD_MAX]))
def test_any_split_of_a_stream_gives_the_same_result(data: bytes, cuts: list[int], hold_max: int) -> None:
    whole = through(data, None, hold_max)
    assert through(data, cuts, hold_max) == whole
    assert through(data, list(range(len(data))), hold_max) == whole


@pytest.mark.parametrize("taken", [b"\x1b[6n", b"\x1bP1000p\x1b\\", b"\xc2\x9b6n"])
def test_what_is_taken_away_joins_no_half_character_to_a_control(taken: bytes) -> None:
    data = b"a\xc2" + taken + b"\x9b6nb"
    for cut in range(len(data)):
        made = TerminalFilter()
        shown = made.strip(data[:cut]) + made.strip(data[cut:]) + made.flush()
        assert b"\xc2\x9b" not in shown


@settings(max_examples=examples(400), deadline=None)
@given(_streams)
def test_filtering_twice_changes_nothing_more(data: bytes) -> None:
    assert through(through(data)) == through(data)


@settings(max_examples=examples(300), deadline=None)
@given(
    _streams.filter(lambda data: not set(data) & set(range(0x80, 0x100))), st.lists(st.integers(0, 10_000), max_size=6)
)
def test_a_real_emulator_finds_nothing_to_answer_in_what_is_left(data: bytes, cuts: list[int]) -> None:
    with Screen(20, 5) as screen:
        assert screen.feed(through(data, cuts)) == b""


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=200).map(lambda data: data.replace(b"\x1b", b"").replace(b"\x05", b"").replace(b"\xc2", b"")))
def test_bytes_without_escapes_pass_at_once(data: bytes) -> None:
    assert TerminalFilter().strip(data) == data
