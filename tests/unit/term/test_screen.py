"""What a screen tells about itself: text, cursor, title, modes, history, size."""

from __future__ import annotations

import json

import pytest

from holdfast.term.screen import SIZE_MAX, Screen


@pytest.fixture
def screen() -> Screen:
    return Screen(20, 5)


def test_text_has_every_row_without_trailing_spaces(screen: Screen) -> None:
    screen.feed(b"one  \r\n\r\n  three")
    assert screen.text() == "one\n\n  three\n\n"


def test_wide_and_combined_characters_are_text_as_printed(screen: Screen) -> None:
    screen.feed("漢字 e\u0301 \U0001f600|\r\nx".encode())
    assert screen.text().splitlines()[0] == "漢字 e\u0301 \U0001f600|"


def test_cursor_line_is_the_row_that_a_prompt_waits_on(screen: Screen) -> None:
    screen.feed(b"Password: ")
    assert screen.cursor_line() == "Password:"
    assert screen.cursor == (10, 0)


def test_cursor_title_and_alternate_screen_follow_the_program(screen: Screen) -> None:
    assert (screen.cursor_visible, screen.title, screen.alternate) == (True, "", False)
    screen.feed(b"\x1b[?25l\x1b]2;na\xc3\xafve\x07\x1b[?1049h")
    assert (screen.cursor_visible, screen.title, screen.alternate) == (False, "naïve", True)


def test_contents_join_what_the_terminal_wrapped_and_include_the_scrollback(screen: Screen) -> None:
    screen.feed(b"first\r\n" + b"x" * 45 + b"\r\n" + b"".join(b"line %d\r\n" % n for n in range(8)))
    lines = screen.contents().splitlines()
    assert lines == ["first", "x" * 45, *(f"line {n}" for n in range(8))]


def test_the_scrollback_keeps_the_lines_asked_for_and_no_more() -> None:
    with Screen(80, 24, scrollback_lines=300) as screen:
        screen.feed(b"".join(b"line %d\r\n" % n for n in range(5000)))
        history = screen.dump()["history"]
        assert len(history) == 300
        assert history[-1]["cells"][0][0] == "line 4976"  # the row above the screen: 23 lines and the cursor's row


def test_two_thousand_lines_are_kept_at_any_width() -> None:
    for cols in (2, 43, 200, SIZE_MAX):
        with Screen(cols, 5) as screen:
            screen.feed(b"\x1b[31mx\r\n" * 7000)
            assert len(screen.dump()["history"]) == 2000


def test_without_scrollback_nothing_is_kept_above_the_screen() -> None:
    with Screen(80, 24, scrollback_lines=0) as screen:
        screen.feed(b"x\r\n" * 500)
        assert screen.dump()["history"] == []


@pytest.mark.parametrize("size", [(0, 24), (80, 0), (SIZE_MAX + 1, 24), (80, SIZE_MAX + 1), (-1, -1)])
def test_a_size_out_of_bounds_is_refused(size: tuple[int, int], screen: Screen) -> None:
    with pytest.raises(ValueError, match="columns and rows"):
        Screen(*size)
    with pytest.raises(ValueError, match="columns and rows"):
        screen.resize(*size)
    assert screen.size == (20, 5)


def test_resizing_reflows_text_and_reports_only_to_a_program_that_asked(screen: Screen) -> None:
    screen.feed(b"x" * 30)
    assert screen.resize(40, 6) == b""
    assert screen.size == (40, 6)
    assert screen.text().splitlines()[0] == "x" * 30
    screen.feed(b"\x1b[?2048h")
    assert screen.resize(30, 4) == b"\x1b[48;4;30;64;240t"


WIDE = "漢".encode()


@pytest.mark.parametrize(
    "before",
    [
        b"\x1b[?1049h" + b"x" * 9 + WIDE,
        b"\x1b[?1049h" + b"x" * 9 + WIDE + b"\x1b[?1049l",
        b"\x1b[?7l" + b"x" * 9 + WIDE + b"\r\n" * 10,
        b"\x1b[?1049h\x1b[31m" + b"x" * 9 + "e\u0301👩‍💻".encode() + b"\x1b]2;ti",
    ],
    ids=["in use", "left behind", "without autowrap", "in the middle of a sequence"],
)
def test_a_border_through_wide_characters_leaves_a_screen_that_can_be_kept(before: bytes) -> None:
    with Screen(20, 5) as screen:
        screen.feed(before)
        for cols in (10, 7, 1, 30):
            screen.resize(cols, 5)
            with Screen.from_keyframe(screen.keyframe()) as copy:
                assert copy.dump() == screen.dump()
        screen.feed(b"tle\x07more")
        assert "more" in screen.contents().replace("\n", "")
        assert screen.title == ("title" if before.endswith(b"ti") else "")


def test_a_string_with_eight_bit_controls_inside_does_not_stop_anyone_reading(screen: Screen) -> None:
    for opening in (b"\x1b_\x9d", b"\x1bX\x9b", b"\x1bPq\x9d"):
        screen.feed(b"\x1bctext" + opening)
        assert screen.text().startswith("text")
        with Screen.from_keyframe(screen.keyframe()) as copy:
            assert copy.at_ground == screen.at_ground
            screen.feed(b"1;2\x1b\\more")
            copy.feed(b"1;2\x1b\\more")
            assert copy.text() == screen.text()


def test_modes_tell_what_a_program_turned_on(screen: Screen) -> None:
    screen.feed(b"\x1b[?1;1002;1006;1004;2004h\x1b=\x1b[>1u\x1b[>4;1m\x1b[5 q\x1b[2;4r\x1b[1;31m\x1b]4;1;#010203\x07")
    modes = screen.modes()
    expected = {
        "app_cursor": True,
        "app_keypad": True,
        "mouse": "button",
        "mouse_encoding": "sgr",
        "focus": True,
        "bracketed_paste": True,
        "modify_other_keys": 1,
        "cursor_style": "bar",
        "cursor_blink": True,
        "margins": {"top": 1, "bottom": 3, "left": 0, "right": 19},
        "sgr": "1;31",
        "palette": {"1": "#010203"},
        "keyboard": {"primary": [0, 1], "alternate": [0]},
    }
    assert {name: modes[name] for name in expected} == expected


def test_modify_other_keys_is_followed_across_chunks_and_ends_with_a_reset(screen: Screen) -> None:
    for byte in b"\x1b[>4;1m":
        screen.feed(bytes([byte]))
    assert screen.modes()["modify_other_keys"] == 1
    screen.feed(b"\x1b[>4;2m")
    assert screen.modes()["modify_other_keys"] == 2
    screen.feed(b"\x1b[>4n")
    assert screen.modes()["modify_other_keys"] == 0
    screen.feed(b"\x1b[>4;1m\x1bc")
    assert screen.modes()["modify_other_keys"] == 0


def test_a_soft_reset_keeps_text_and_cursor(screen: Screen) -> None:
    screen.feed(b"keep\x1b[2;3r\x1b[4h\x1b[31m\x1b[?1h\x1b[?25l\x1b[3;3H\x1b[!p")
    modes = screen.modes()
    assert screen.text().startswith("keep\n")
    assert screen.cursor == (2, 2)
    assert (modes["insert"], modes["sgr"], modes["app_cursor"], modes["cursor_visible"]) == (False, "", False, True)
    assert modes["margins"] == {"top": 0, "bottom": 4, "left": 0, "right": 19}


def test_a_dump_is_plain_json(screen: Screen) -> None:
    screen.feed(b"\x1b[?1049h\x1b]8;id=a;http://example.org\x07link\x1b]8;;\x07\x1b[44m\x1b[K\xff")
    assert json.loads(json.dumps(screen.dump())) == screen.dump()


def test_compacting_changes_nothing_but_memory(screen: Screen) -> None:
    screen.feed(b"".join(b"\x1b[3%dmline %d\r\n" % (n % 8, n) for n in range(3000)))
    before = screen.dump()
    screen.compact()
    assert screen.dump() == before
    screen.feed(b"more\r\n")
    assert "more" in screen.text()


def test_a_closed_screen_says_so() -> None:
    with Screen(80, 24) as screen:
        pass
    screen.close()
    with pytest.raises(ValueError, match="closed"):
        screen.feed(b"x")
    with pytest.raises(ValueError, match="closed"):
        screen.text()
