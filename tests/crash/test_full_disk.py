"""A home whose disk is full: what an answer says is so, and there is always a way to make room again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HomeForTests, alive, read_all, until
from tests.support.operators import journal
from tests.support.small import fill, small_home

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")


@pytest.fixture
def tight(tmp_path: Path) -> Iterator[HomeForTests]:
    with small_home(tmp_path, 8) as home:
        yield home


def test_what_is_typed_or_taken_on_a_full_disk_is_what_the_answers_say(tight: HomeForTests) -> None:
    s = tight.run("sh", "-c", "stty -echo; echo ready; cat", name="c")
    assert s.wait(text="ready", timeout=30).event != "timeout"
    assert tight("send", "c", "before", "--enter").code == 0
    ballast = fill(tight)
    answers, holders = {}, []
    for n in range(8):
        answers[f"line{n}"] = tight("send", "c", f"line{n}", "--enter")
        before = s.status().controls.epoch
        done = tight("take" if n % 2 else "release", "c")
        holders.append((done.code, s.status().controls.epoch != before))
    refused = [a for a in answers.values() if a.code]
    assert refused
    assert all("nothing was done" in a.err and len(a.err.splitlines()) == 1 for a in refused), refused[0].err
    assert not [h for h in holders if h[0] and h[1]]  # what failed has not happened
    ballast.unlink()
    assert tight("take", "c").code == 0
    assert tight("send", "c", "after", "--enter").code == 0
    assert s.wait(text="after", timeout=30).event != "timeout"
    typed = [line for line, answer in answers.items() if not answer.code]
    assert read_all(s).decode().split() == ["ready", "before", *typed, "after"]
    until(lambda: len(journal(tight, "send")) == len(typed) + 2)
    assert not list(tight.path.rglob("*.tmp"))


def test_what_was_done_and_could_not_be_recorded_is_told_as_done_and_recorded_later(tight: HomeForTests) -> None:
    s = tight.run("sh", "-c", "stty -echo; echo ready; cat", name="c")
    assert s.wait(text="ready", timeout=30).event != "timeout"
    assert tight("send", "c", "before", "--enter").code == 0
    ballast = fill(tight)
    (tight.path / "host.reserve").unlink()
    with ballast.open("ab", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(512))
    answers = [tight("send", "c", f"line{n}", "--enter") for n in range(6)]
    happened = [n for n, a in enumerate(answers) if not a.code or "it was done" in a.err]
    assert 0 < len(happened) < len(answers), [a.err for a in answers]
    assert all("nothing was done" in a.err for n, a in enumerate(answers) if n not in happened)
    ballast.unlink()
    assert tight("send", "c", "after", "--enter").code == 0
    assert s.wait(text="after", timeout=30).event != "timeout"
    assert read_all(s).decode().split() == ["ready", "before", *(f"line{n}" for n in happened), "after"]
    assert len(journal(tight, "send")) == len(happened) + 2


def test_with_the_disk_full_and_the_host_dead_there_is_a_way_out(tight: HomeForTests) -> None:
    kept = tight.run("cat", name="kept")
    old = tight.run("sh", "-c", "head -c 2000000 /dev/zero | tr '\\0' x; echo end", name="old")
    assert old.wait(exit=True, timeout=30).event != "timeout"
    pid = kept.status().pid
    tight.kill_daemon()
    ballast = fill(tight)
    found = tight("status", "--json")
    assert found.code == 0, found.out + (tight.path / "host.log").read_text()
    assert tight("logs", "old").raw.endswith(b"end\n")
    tight.kill_daemon()
    assert tight("ls").code == 0  # and again
    assert tight("run", "-d", "--", "true").code == 1
    assert tight("down").code == 0
    pruned = tight("prune", "--json")
    assert pruned.code == 0, pruned.err
    assert tight("send", "kept", "x", "--enter").code == 0  # there is room again
    assert pid is not None
    assert alive(pid)
    ballast.unlink()
    assert not list(tight.path.rglob("*.tmp"))
