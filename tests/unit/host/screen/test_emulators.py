"""An emulator that catches up passes over what is scrolled away, and has the same screen as one that saw everything."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.host.screen.emulators import Emulator
from holdfast.log.layout import TERMINAL
from holdfast.log.writer import OutputLog
from holdfast.model.home import SessionFolder
from holdfast.term.screen import Screen

_SIZE = (80, 24)
_SCROLLBACK = 2000  # as the host's emulators have
_TEXT = b"".join(b"%07d the quick brown fox\r\n" % n for n in range(80_000))  # 2.6 MB
_WIDE = "".join(f"{n} Größe → 漢字\r\n" for n in range(80_000)).encode()
_LONG = b"".join(b"%d " % n * 300 + b"\r\n" for n in range(6000))  # 8.7 MB


class Run:
    """A log in a folder, an emulator on it, and a screen that is fed with all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = SessionFolder(str(folder))
        self.log = OutputLog(self.folder.out, 0, 1 << 20, 64 << 20)
        self.log.resized(*_SIZE, now_us=0)
        self.whole = Screen(*_SIZE, scrollback_lines=_SCROLLBACK)
        self.fed = 0
        self.emulator = Emulator(cast(Any, SimpleNamespace(folder=self.folder, size=_SIZE)))

    def print(self, data: bytes) -> None:
        for at in range(0, len(data), 60_000):
            self.log.add(TERMINAL, data[at : at + 60_000], at)
            self.whole.feed(data[at : at + 60_000])

    def resize(self, cols: int, rows: int) -> None:
        self.log.resized(cols, rows, now_us=0)
        self.whole.resize(cols, rows)

    def catch_up(self, stride: int = 1 << 62) -> None:
        feed = self.emulator.screen.feed

        def counted(data: bytes) -> bytes:
            self.fed += len(data)
            return feed(data)

        self.emulator.screen.feed = counted  # type: ignore[method-assign]
        while self.emulator.offset < self.log.end:
            self.emulator.advance(self.log.end, stride)
        assert self.emulator.screen.restore() == self.whole.restore()
        assert self.emulator.screen.modes() == self.whole.modes()
        assert self.emulator.screen.contents() == self.whole.contents()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.mark.parametrize("text", [_TEXT, _WIDE, _LONG], ids=["short", "wide", "long"])
@pytest.mark.parametrize("stride", [1 << 62, 256 << 10], ids=["at once", "in strides"])
def test_a_flood_of_text_is_passed_over_and_the_screen_is_the_same(run: Run, text: bytes, stride: int) -> None:
    run.print(b"\x1b[31;1mcolour\x1b]2;a title\x07 that stays\r\n" + text + b"and a prompt $ ")
    run.catch_up(stride)
    assert run.fed < len(text) / 2


@pytest.mark.parametrize(
    "before", [b"\x1b[4h", b"\x1b[?7l", b"\x1b(0", b"\x1b[?1049h", b"\x1b[20;1H", b"\x1b[44m\x1b[2J", b"\x1bH\x1b[3g"]
)
def test_what_a_flood_is_printed_under_stays(run: Run, before: bytes) -> None:
    run.print(b"here\r\n" + before + b"it\tis\r\n" + _TEXT)
    run.catch_up()
    assert run.fed < len(_TEXT) / 2


@pytest.mark.parametrize("before", [b"\x1b[3;9r\x1b[5;1H", b"\x1b[?69h\x1b[5;40s", b"\x1b]2;an open title"])
def test_text_between_margins_or_inside_a_sequence_is_not_passed_over(run: Run, before: bytes) -> None:
    run.print(b"top\r\n" * 30 + before + _TEXT)
    run.catch_up()
    assert run.fed == run.log.end


@pytest.mark.parametrize("mark", [b"\x1b[32m", b"\x0e", b"\xc2\x9b32m"])
def test_only_what_comes_after_the_last_sequence_is_passed_over(run: Run, mark: bytes) -> None:
    run.print(_TEXT + mark + _TEXT)
    run.catch_up()
    assert len(_TEXT) < run.fed < 2 * len(_TEXT)


def test_a_sequence_near_the_end_has_all_of_it_emulated(run: Run) -> None:
    run.print(_TEXT + b"\x1b[32mgreen\r\n" * 10)
    run.catch_up()
    assert run.fed == run.log.end


def test_a_change_of_size_is_not_passed_over(run: Run) -> None:
    run.print(_TEXT)
    run.resize(100, 30)
    run.print(_TEXT)
    run.resize(70, 20)
    run.print(b"a few lines\r\n" * 5)
    run.catch_up()
    assert run.fed == run.log.end


def test_lines_without_a_return_are_not_taken_for_lines(run: Run) -> None:
    run.print(_TEXT.replace(b"\r\n", b"\n"))
    run.catch_up()
    assert run.fed == run.log.end
