"""What a checkpoint may hold: states larger than one request, and sessions that say where they stand."""

from __future__ import annotations

import random
from typing import Any

from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests, until


def _large(megabytes: int) -> list[str]:
    chance = random.Random(1)  # what does not compress, so that it is as large on its way
    return [chance.randbytes(500_000).hex() for _ in range(megabytes)]


def test_a_state_larger_than_a_request_is_saved_first_and_found_by_another_process(host: Host) -> None:
    texts = _large(27)  # 27 MB as text, 18 when it is packed and made text again; a request has at most 16
    run = host.work.run(task="large")
    saved = run.checkpoint(goal="keep it", context={"texts": texts})
    assert saved["size"] > 27_000_000
    run.log("one more", kind="decision")
    run.close()
    with Host(host.home.path) as other:  # knows nothing of the first
        again = other.work.run(task="large", wait=60)
        state = again.restore()
        assert (state["goal"], state["context"]["texts"]) == ("keep it", texts)
        assert [d["text"] for d in state["context"]["decisions"]] == ["one more"]
        small = again.checkpoint(goal="kept")
        assert (small["base"], small["stored"] < 10_000) == (saved["seq"], True)
        back = again.restore(saved["seq"])
        assert (back["goal"], len(back["context"]["texts"])) == ("keep it", 27)
        assert other.work.call("artifact_orphans") == []
        again.close()


def test_a_named_session_is_kept_with_its_generation_and_offset(hold: HomeForTests) -> None:
    hold.run("sh", "-c", "printf 12345; cat", name="talker")

    def said() -> Any:
        return hold.host.call("status", session="talker")["output"]["end"] >= 5

    until(said)
    seen = hold.host.call("status", session="talker")
    with Host(str(hold.path)) as host, host.work.run() as run:
        run.checkpoint(sessions=["talker", {"session": "talker", "offset": 2, "role": "x"}, "no such", {"odd": 1}])
        first, second, unknown, odd = run.restore()["sessions"]
    end = seen["output"]["end"]
    assert first == {"session": seen["id"], "generation": 1, "offset": end}
    assert second == {"session": seen["id"], "generation": 1, "offset": 2, "role": "x"}
    assert (unknown, odd) == ("no such", {"odd": 1})
    made = hold("work", "begin").out.strip()
    saved = hold("checkpoint", "save", made, "--set", 'sessions=["talker"]')
    assert saved.code == 0, saved.err
    shown = hold("checkpoint", "show", made, "--json").json
    assert shown["state"]["sessions"] == [first]


def test_reasons_are_kept_from_the_command_line_and_a_failed_run_is_tried_again(hold: HomeForTests) -> None:
    run = hold("work", "submit", "job").out.strip()
    assert hold("note", run, "B it is", "--kind", "decision", "--why", "A is slow").code == 0
    assert hold("memory", "append", run, "hello", "--why", "he asked").code == 0
    assert hold("memory", "set", run, "n", "1", "--why", "for later").code == 0
    assert hold("artifact", "put", run, "-", "--name", "f", "--why", "wanted", stdin=b"x").code == 0
    bodies = [entry["body"] for entry in hold.host.work.call("log_read", run=run)]
    assert {"text": "B it is", "why": "A is slow"} in bodies
    reasons = [b["text"] for b in bodies if isinstance(b, dict) and "text" in b and "action" in b]
    assert reasons == ["he asked", "wanted"]
    early = hold("work", "retry", run)
    assert (early.code, "not failed" in early.err) == (5, True)
    assert hold("work", "end", run, "--failed").code == 0
    assert hold("work", "retry", run, "--why", "the disk was full").code == 0
    assert hold.host.work.status(run)["state"] == "active"
