"""Whoever expects something soon stays awake for it a moment, and sleeps where that was in vain."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.system.brief_poll import Arrival

AWAKE_S = 0.002


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """How often the processor was offered to others: once for each look that found nothing."""
    made: list[None] = []
    plain = os.sched_yield

    def offer() -> None:
        made.append(None)
        plain()

    monkeypatch.setattr(os, "sched_yield", offer)
    return made


def looked(waiting: Arrival, offers: list[None]) -> bool:
    """Whether a wait for nothing looked out for it before it slept."""
    offers.clear()
    assert not waiting.wait_soon(0.001)
    return bool(offers)


def test_what_is_there_is_found_without_waiting(pair: tuple[socket.socket, socket.socket], offers: list[None]) -> None:
    waiting = Arrival(pair[0], AWAKE_S)
    pair[1].sendall(b"x")
    assert waiting.wait_soon(30)
    assert waiting.wait(30)
    assert offers == []


def test_what_comes_while_one_sleeps_is_found_as_well(pair: tuple[socket.socket, socket.socket]) -> None:
    waiting = Arrival(pair[0], AWAKE_S)
    later = threading.Timer(0.05, pair[1].sendall, (b"x",))
    later.start()
    assert waiting.wait_soon(30)
    later.join()


def test_the_other_sides_end_ends_the_wait(pair: tuple[socket.socket, socket.socket]) -> None:
    waiting = Arrival(pair[0], AWAKE_S)
    pair[1].close()
    assert waiting.wait_soon(30)
    assert pair[0].recv(1) == b""


def test_after_a_wait_in_vain_the_next_ones_are_slept_through_and_each_time_twice_as_many(
    pair: tuple[socket.socket, socket.socket], offers: list[None]
) -> None:
    waiting = Arrival(pair[0], AWAKE_S)
    for asleep in (4, 8, 16):
        assert looked(waiting, offers)
        assert not any(looked(waiting, offers) for _ in range(asleep))
    pair[1].sendall(b"x")
    for _ in range(40):  # found at once: looking out is worth it again, a little more each time
        assert waiting.wait_soon(30)
    pair[0].recv(1)
    assert looked(waiting, offers)
    assert not any(looked(waiting, offers) for _ in range(4))
    assert looked(waiting, offers)


def test_answers_that_are_quick_and_slow_in_turn_are_soon_slept_through(
    pair: tuple[socket.socket, socket.socket], offers: list[None]
) -> None:
    waiting, vain = Arrival(pair[0], AWAKE_S), 0
    for _ in range(200):
        pair[1].sendall(b"x")
        assert waiting.wait_soon(30)
        pair[0].recv(1)
        vain += looked(waiting, offers)
    assert vain < 10


def test_whoever_is_kept_from_the_processor_leaves_it_to_the_others(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, offers = 0.0, 0

    def taken() -> None:
        nonlocal now, offers
        now += 0.003  # a slice of somebody else's
        offers += 1

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr(os, "sched_yield", taken)
    waiting = Arrival(pair[0], 1.0)
    assert not waiting.wait_soon(0.001)
    assert offers == 1
    assert not waiting.wait_soon(0.001)
    assert offers == 1
