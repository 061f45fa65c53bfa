"""Ids are random letters, and no two processes or threads are given the same one."""

from __future__ import annotations

import os
import threading

from holdfast.model import ids


def test_an_id_has_its_prefix_and_letters_nobody_misreads() -> None:
    made = [ids.new("run_") for _ in range(500)]
    assert len(set(made)) == 500
    assert {len(one) for one in made} == {20}
    assert set("".join(one[4:] for one in made)) <= set("0123456789abcdefghjkmnpqrstvwxyz")
    assert len(ids.new("", 6)) == 6


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
