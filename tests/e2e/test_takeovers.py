"""A person takes over: for how long, from whom, and who has the controls afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host, Session
from holdfast.model.errors import HoldfastError
from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, read_all, until
from tests.support.operators import acting_as, enrol, journal

pytestmark = pytest.mark.home("own")
HANDS: dict[str, Any] = {"verbs": ["view", "type", "request_control", "exec"], "sessions": ["web"]}


@pytest.fixture
def web(hold: HomeForTests) -> Session:
    return hold.run("sh", "-c", "echo ready; exec cat", name="web")


@pytest.fixture
def bot(hold: HomeForTests, web: Session) -> Iterator[Host]:
    enrol(hold, "bot", **HANDS)
    with acting_as(hold, "bot") as agent:
        yield agent


def holder(session: Session) -> str | None:
    return session.status().controls.name


def items(host: Host, **how: Any) -> list[dict[str, Any]]:
    return [i for i in host.call("inbox", **how)["items"] if i["kind"] in ("held_controls", "control_request")]


def test_a_takeover_takes_back_what_an_agent_sent_and_the_program_has_not_read(
    hold: HomeForTests, bot: Host, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    busy = hold.run(
        "bash", "-c", f"while ! [ -e {go} ]; do sleep 0.05; done; while read -r l; do echo RAN $l; done", name="web2"
    )
    enrol(hold, "second", verbs=["view", "type"], sessions=["web2"])
    with acting_as(hold, "second") as agent:
        agent.session("web2").send("deploy --prod\r")
    taken = hold("take", "web2")
    assert "14 typed bytes that the program had not read were discarded" in taken.err
    go.touch()
    busy.send("mine\r")
    busy.wait(text="RAN mine", timeout=60)
    assert b"RAN deploy" not in read_all(busy)
    (entry,) = journal(hold, "take")
    assert entry["flushed"] == 14


def test_detaching_hands_a_takeover_back_to_the_agent_unless_it_is_kept(
    hold: HomeForTests, web: Session, bot: Host
) -> None:
    bot.session("web").take()
    with AttachedTerminal(hold, "attach", "web", "--take") as terminal:
        terminal.shows("ready")  # until then it is the terminal itself that takes the keys
        terminal.until(lambda: web.status().controls.kind == "human")
        assert web.status().controls.taken_from["name"] == "bot"  # type: ignore[index]
        terminal.type(b"\x1cd")
        assert terminal.wait() == 0
    until(lambda: holder(web) == "bot")
    with AttachedTerminal(hold, "attach", "web", "--take", "--keep") as terminal:
        terminal.shows("ready")
        terminal.until(lambda: web.status().controls.kind == "human")
        terminal.type(b"\x1cd")
        assert terminal.wait() == 0
    until(lambda: [e["to"]["name"] for e in journal(hold, "hand")] == ["bot"], 30)
    assert web.status().controls.kind == "human"
    assert hold("hand", "web", "--note", "it is fixed").code == 0
    assert holder(web) == "bot"
    assert hold("hand", "web").code == 5
    assert hold("take", "web").code == 0
    assert hold("release", "web").code == 0
    assert hold("attach", "web", "--keep").code == 2


def test_a_person_who_is_away_is_warned_and_may_hand_back_from_the_inbox(
    hold: HomeForTests, web: Session, bot: Host
) -> None:
    (hold.path / "config.toml").write_text('takeover_max = "6s"\n')
    bot.session("web").take()
    assert hold("take", "web").code == 0
    (item,) = until(lambda: items(hold.host), 30)
    assert (item["kind"], item["session_name"]) == ("held_controls", "web")
    assert item["text"].startswith("you hold web since ")
    assert "bot" in item["text"]
    assert items(bot) == []  # it is nobody else's business
    with pytest.raises(HoldfastError, match="holds the controls since") as refused:
        bot.session("web").send("x")
    assert refused.value.code == "conflict"
    answered = hold("answer", item["id"], "--approve")
    assert answered.code == 0, answered.err
    assert holder(web) == "bot"
    (away,) = until(lambda: journal(hold, "away"), 30)
    assert away["operator_kind"] == "human"


def test_a_takeover_ends_after_takeover_max_and_the_inbox_forgets_it(
    hold: HomeForTests, web: Session, bot: Host
) -> None:
    (hold.path / "config.toml").write_text('takeover_max = "1s"\n')
    hold.host.call("take", session="web")
    until(lambda: holder(web) is None, 30)
    until(lambda: [e["kind"] for e in journal(hold, "away", "expire")] == ["away", "expire"], 30)
    gone = until(lambda: [i for i in items(hold.host, all=True) if i["state"] == "gone"], 30)
    assert [i["kind"] for i in gone] == ["held_controls"]


def test_a_person_is_asked_by_a_person_and_force_is_recorded(hold: HomeForTests, web: Session) -> None:
    enrol(hold, "grace", "human", **HANDS)
    with acting_as(hold, "grace") as grace:
        grace.session("web").take()
        for answer in (True, False):
            outcome: list[Any] = []
            taking = threading.Thread(
                target=lambda outcome=outcome: outcome.append(hold("take", "web", "--why", "my turn"))
            )
            taking.start()
            (item,) = until(lambda: items(grace), 30)
            assert (item["kind"], item["text"]) == ("control_request", "my turn")
            grace.answer(item["id"], approve=answer)
            taking.join(60)
            assert outcome[0].code == (0 if answer else 5)
            if answer:
                assert web.status().controls.taken_from["name"] == "grace"  # type: ignore[index]
                assert hold("hand", "web").code == 0  # back
            else:
                assert "said no" in outcome[0].err
                assert "--force" in outcome[0].err
        with pytest.raises(HoldfastError, match="did not answer") as refused:
            hold.host.call("take", session="web", timeout=0.2)
        assert "--force" in refused.value.hint
        assert items(grace) == []  # nobody waits for it any more
        assert holder(web) == "grace"
        assert hold("take", "web", "--force").code == 0
        (entry,) = until(lambda: journal(hold, "preempt"), 30)
        assert (entry["from"]["name"], entry["forced"]) == ("grace", True)


def test_an_agent_that_dies_holds_nothing(hold: HomeForTests, web: Session, bot: Host) -> None:
    code = "import sys, holdfast\nholdfast.connect(operator='bot').session('web').take()\nprint('held', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], env=hold.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"held\n"
        assert holder(web) == "bot"
        hold.kill_daemon()
        assert holder(web) == "bot"  # a restarted host is nobody's death
        agent.kill()
    until(lambda: holder(web) is None)
    (entry,) = until(lambda: journal(hold, "expire"), 30)
    assert entry["why"] == "its process has ended"


def test_a_command_acts_for_the_nearest_parent_that_lives_on() -> None:
    code = "from holdfast.client.process import acts_for; print(acts_for())"
    straight = subprocess.check_output([sys.executable, "-c", code])
    assert int(straight) == 1
    wrapped = subprocess.check_output(["bash", "-c", f"env {sys.executable} -c '{code}'; true"])
    assert int(wrapped) == 2
