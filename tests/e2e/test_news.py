"""Who hears what, and when: news reaches those who may see what it is about, and tells nobody else anything."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest

from tests.support.home import HomeForTests, until
from tests.support.operators import acting_as, enrol

Json = dict[str, Any]
PATIENCE_S = 60.0  # the machine is shared; nothing here waits for this long unless something is broken
NOBODY = "ses_00000000000000000000000000"


@pytest.fixture
def viewer(hold: HomeForTests) -> Any:
    """An agent that may see the sessions that are called `web-…`."""
    enrol(hold, "viewer", "agent", verbs=["view"], sessions=["web-*"])
    with acting_as(hold, "viewer") as made:
        yield made


@pytest.fixture
def aside() -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as made:
        yield made


def heard(viewer: Any, **request: Any) -> Json:
    found: Json = viewer.call("news", **{"timeout": PATIENCE_S, **request})
    return found


def grant_of(hold: HomeForTests, name: str) -> str:
    return next(str(g["id"]) for o in hold.host.operators() if o["name"] == name for g in o["grants"])


def test_a_session_that_one_may_not_see_is_told_as_one_that_is_not_there_whatever_becomes_of_it(
    hold: HomeForTests, viewer: Any
) -> None:
    secret = hold.run("cat", name="secret")

    def answers() -> list[Json]:
        mark = heard(viewer, of="sessions")["mark"]
        return [heard(viewer, of="sessions", after=mark, ends={one: 0}) for one in (secret.id, NOBODY)]

    for change in (lambda: None, lambda: secret.send("printed", enter=True), lambda: secret.stop(0), secret.remove):
        change()
        theirs, nobodys = answers()  # at once: neither waits for anything to happen
        assert (theirs["subjects"], nobodys["subjects"]) == ([secret.id], [NOBODY])


def test_what_happens_to_sessions_out_of_sight_ends_no_wait(hold: HomeForTests, viewer: Any, aside: Any) -> None:
    secret, seen = hold.run("cat", name="secret"), hold.run("cat", name="web-1")
    mark = heard(viewer, of="sessions")["mark"]
    end = seen.status().output.end
    waiting = aside.submit(heard, viewer, of="sessions", after=mark, ends={seen.id: end})
    secret.send("printed", enter=True)
    secret.stop(0)
    hold.host.call("rename", session=secret.id, name="other")
    seen.send("printed", enter=True)
    assert waiting.result(PATIENCE_S)["subjects"] == [seen.id]


@pytest.mark.parametrize("of", ["sessions", "list"])
def test_the_end_of_a_grant_is_news_to_who_saw_by_it(hold: HomeForTests, viewer: Any, aside: Any, of: str) -> None:
    enrol(hold, "other", "agent", verbs=["view"], sessions=["web-*"])
    seen = hold.run("cat", name="web-1")
    known = heard(viewer, of=of)["mark"]
    shown = {seen.id: seen.status().output.end + (1 << 40)}
    waiting = aside.submit(heard, viewer, of=of, after=known, ends=shown)
    hold.host.revoke(grant_of(hold, "other"))  # another's is none to this one
    hold.host.revoke(grant_of(hold, "viewer"))
    assert waiting.result(PATIENCE_S)["subjects"] == [seen.id if of == "sessions" else "list"]


@pytest.mark.parametrize("of", ["sessions", "list"])
def test_a_grant_that_ends_by_its_time_is_news_too(hold: HomeForTests, of: str) -> None:
    seen = hold.run("cat", name="web-1")
    enrol(hold, "guest", "agent", verbs=["view"], sessions=["web-*"], ttl=5.0)
    with acting_as(hold, "guest") as guest:
        first = heard(guest, of=of)
        told = heard(guest, of=of, after=first["mark"], ends={seen.id: 1 << 40})
    assert told["subjects"] in ([seen.id], ["list"])


@pytest.mark.parametrize("change", ["renamed", "removed"])
def test_a_session_that_goes_out_of_sight_is_news(hold: HomeForTests, viewer: Any, aside: Any, change: str) -> None:
    seen = hold.run("true", name="web-1")
    until(lambda: seen.status().state == "exited", PATIENCE_S)
    marks = {of: heard(viewer, of=of)["mark"] for of in ("sessions", "list")}
    if change == "removed":
        seen.remove()
    else:
        hold.host.call("rename", session=seen.id, name="hidden")
    assert heard(viewer, of="sessions", after=marks["sessions"], ends={seen.id: 0})["subjects"] == [seen.id]
    assert heard(viewer, of="list", after=marks["list"])["subjects"] == ["list"]


def test_a_watcher_of_tasks_hears_that_old_ones_were_forgotten(hold: HomeForTests, aside: Any) -> None:
    mark = heard(hold.host, of="tasks")["mark"]
    waiting = aside.submit(heard, hold.host, of="tasks", after=mark)
    hold.host.work.call("work_prune", older_than_s=0.0)
    assert waiting.result(PATIENCE_S)["subjects"] == ["tasks"]
