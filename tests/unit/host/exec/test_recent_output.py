"""What was read of a command's output: all of a stretch or nothing of it, and bounded."""

from __future__ import annotations

from holdfast.host.exec.recent_output import Heard
from holdfast.model.limits import INLINE_OUTPUT_BYTES


def test_what_came_in_pieces_is_one_stretch() -> None:
    heard = Heard()
    heard.add(100, b"echo hel")
    heard.add(108, b"lo world")
    assert heard.part(105, 110) == b"hello"
    assert heard.part(100, 116) == b"echo hello world"
    assert heard.part(116, 116) == b""


def test_what_was_not_heard_is_not_made_up() -> None:
    heard = Heard()
    assert heard.part(3, 7) is None
    heard.add(100, b"abc")
    assert heard.part(99, 102) is None
    assert heard.part(101, 104) is None
    assert heard.part(102, 101) is None


def test_a_hole_is_never_closed() -> None:
    heard = Heard()
    heard.add(100, b"abc")
    heard.add(110, b"xyz")
    assert heard.part(100, 103) is None
    assert heard.part(102, 112) is None
    assert heard.part(110, 113) == b"xyz"


def test_a_flood_is_let_go_and_what_comes_after_it_is_heard() -> None:
    heard = Heard()
    size = INLINE_OUTPUT_BYTES
    for n in range(20):
        heard.add(n * size, bytes(size))
    assert heard.part(0, size) is None
    heard.add(20 * size, b"end")
    assert heard.part(20 * size, 20 * size + 3) == b"end"
