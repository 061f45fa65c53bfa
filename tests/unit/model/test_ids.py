"""Ids are random letters, no two processes or threads are given the same one, and which session a word means."""

from __future__ import annotations

import os
import threading

import pytest

from holdfast.model import ids
from holdfast.model.errors import HoldfastError

KNOWN = {"ses_b8xae4nwbn503em7": "a", "ses_b8xqqqqqqqqqqqqq": "web", "ses_c0000000000000000": "b8xa"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("a", "ses_b8xae4nwbn503em7"),
        ("ses_b8xae4nwbn503em7", "ses_b8xae4nwbn503em7"),
        ("ses_c", "ses_c0000000000000000"),
        ("b8xae", "ses_b8xae4nwbn503em7"),
        ("c000", "ses_c0000000000000000"),
        ("b8xa", "ses_c0000000000000000"),  # a name comes before the beginning of an id
    ],
)
def test_a_name_an_id_or_enough_of_an_id_names_a_session(wanted: str, found: str) -> None:
    assert ids.resolve(wanted, KNOWN) == found


@pytest.mark.parametrize("wanted", ["c", "c00", "b", "ses_", "none"])
def test_a_short_name_that_is_not_there_names_no_session_by_its_id(wanted: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        ids.resolve(wanted, KNOWN)
    assert caught.value.code == "not_found"


def test_a_beginning_that_two_ids_share_names_neither() -> None:
    with pytest.raises(HoldfastError) as caught:
        ids.resolve("ses_b8x", KNOWN)
    assert "2 session ids" in caught.value.message


def test_an_id_has_its_prefix_and_letters_nobody_misreads() -> None:
    made = [ids.new("run_") for _ in range(500)]
    assert len(set(made)) == 500
    assert {len(one) for one in made} == {20}
    assert set("".join(one[4:] for one in made)) <= set("0123456789abcdefghjkmnpqrstvwxyz")
    assert len(ids.new("", 6)) == 6


@pytest.mark.process
def test_a_forked_process_makes_ids_of_its_own() -> None:
    ids.new("req_")  # some are made ahead now
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, " ".join(ids.new("req_") for _ in range(100)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        theirs = pipe.read().split()
    os.waitpid(child, 0)
    assert len(theirs) == 100
    assert not set(theirs) & {ids.new("req_") for _ in range(100)}


def test_threads_are_given_different_ids() -> None:
    made: list[list[str]] = [[] for _ in range(8)]
    threads = [threading.Thread(target=lambda one=one: one.extend(ids.new("req_") for _ in range(500))) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({one for some in made for one in some}) == 8 * 500
