"""A program that asks its terminal gets an answer with nobody attached, and the same one however its bytes arrive."""

from __future__ import annotations

import pytest

from holdfast.term.queries import MAYBE_QUERY
from holdfast.term.screen import Screen

ANSWERED = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[0c": b"\x1b[?62;22c",
    b"\x1bZ": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>41;354;0c",
    b"\x1b[=c": b"\x1bP!|00000000\x1b\\",
    b"\x1b[5n": b"\x1b[0n",
    b"\x1b[6n": b"\x1b[2;4R",
    b"\x1b[?6n": b"\x1b[?2;4R",
    b"\x1b[?996n": b"\x1b[?997;1n",
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[?25$p": b"\x1b[?25;1$y",
    b"\x1b[4$p": b"\x1b[4;2$y",
    b"\x1b[?9999$p": b"\x1b[?9999;0$y",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b[?4m": b"\x1b[>4;0m",
    b"\x1b[>q": b"\x1bP>|holdfast\x1b\\",
    b"\x1b[14t": b"\x1b[4;384;640t",
    b"\x1b[16t": b"\x1b[6;16;8t",
    b"\x1b[18t": b"\x1b[8;24;80t",
    b"\x1b]10;?\x07": b"\x1b]10;rgb:d0d0/d0d0/d0d0\x07",
    b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b]12;?\x07": b"\x1b]12;rgb:d0d0/d0d0/d0d0\x07",
    b"\x1b]4;1;?\x07": b"\x1b]4;1;rgb:cccc/6666/6666\x07",
    b"\x1bP$qm\x1b\\": b"\x1bP1$r0m\x1b\\",
    b"\x1bP$qr\x1b\\": b"\x1bP1$r1;24r\x1b\\",
    b"\x1bP$q q\x1b\\": b"\x1bP1$r2 q\x1b\\",
    b'\x1bP$q"p\x1b\\': b"\x1bP0$r\x1b\\",
    b"\x1bP+q544e\x1b\\": b"\x1bP1+r544E=787465726D2D323536636F6C6F72\x1b\\",  # TN: xterm-256color
    b"\x1bP+q524742\x1b\\": b"\x1bP1+r524742=38\x1b\\",  # RGB: 8
    b"\x1bP+q4d73\x1b\\": b"\x1bP0+r4D73\x1b\\",  # Ms: there is no clipboard
}

# Nobody answers: not offered here, or (titles, clipboard, ENQ) a way to make a terminal type what a program chose.
UNANSWERED = [
    b"\x1b[21t",
    b"\x1b[20t",
    b"\x1b[19t",
    b"\x1b[x",
    b"\x1b[1$w",
    b"\x1b[?1;1;0S",
    b"\x1b[?15n",
    b"\x05",
    b"\x1b]52;c;?\x07",
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
    b"\x1b_25a1;s\x1b\\",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1b[?1004h",
    b"\x1b[?2031h",
]


@pytest.mark.parametrize("query", ANSWERED, ids=repr)
def test_a_query_is_answered(query: bytes) -> None:
    with Screen(80, 24) as screen:
        screen.feed(b"\x1b[2;4H")
        assert screen.feed(query) == ANSWERED[query]


@pytest.mark.parametrize("query", ANSWERED, ids=repr)
def test_a_query_that_arrives_byte_by_byte_is_answered_once(query: bytes) -> None:
    with Screen(80, 24) as screen:
        screen.feed(b"\x1b[2;4H")
        assert b"".join(screen.feed(bytes([byte])) for byte in query) == ANSWERED[query]


@pytest.mark.parametrize("query", ANSWERED, ids=repr)
def test_whatever_is_answered_may_be_a_query(query: bytes) -> None:
    assert MAYBE_QUERY.search(b"text" + query + b"text")
    for cut in range(1, len(query)):
        assert MAYBE_QUERY.search(b"text" + query[:cut]), f"the beginning {query[:cut]!r} is not seen"


@pytest.mark.parametrize("query", UNANSWERED, ids=repr)
def test_what_is_not_offered_is_met_with_silence(query: bytes) -> None:
    with Screen(80, 24) as screen:
        assert screen.feed(query) == b""


def test_answers_come_in_the_order_of_the_questions() -> None:
    with Screen(80, 24) as screen:
        answers = screen.feed(b"ab\x1b[?6n\x1b[cde\x1b[6n\x1b[?4m\x1b[>4;1m\x1b[?4m")
        assert answers == b"\x1b[?1;3R\x1b[?62;22c\x1b[1;5R\x1b[>4;0m\x1b[>4;1m"


def test_changed_colours_and_modes_are_what_is_answered() -> None:
    with Screen(80, 24) as screen:
        screen.feed(b"\x1b]11;#102030\x07\x1b[?2004h\x1b[>5u")
        assert screen.feed(b"\x1b]11;?\x07") == b"\x1b]11;rgb:1010/2020/3030\x07"
        assert screen.feed(b"\x1b[?2004$p") == b"\x1b[?2004;1$y"
        assert screen.feed(b"\x1b[?u") == b"\x1b[?5u"
