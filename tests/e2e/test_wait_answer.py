"""`hold wait --for answer=ASK`, and a command that ends its call while a person is asked, from the command line and Python."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until
from tests.support.operators import acting_as, enrol

RULE = '[[approve]]\npattern = "danger"\ntimeout = "120s"\n'


@pytest.fixture
def bot(hold: HomeForTests) -> Iterator[Host]:
    """An agent, a shell that it may use, and a rule about what it runs there."""
    enrol(hold, "bot", verbs=["view", "exec"], sessions=["sh"])
    assert hold.run("bash", "--norc", name="sh").wait(input=True, timeout=30).event != "timeout"
    (hold.path / "config.toml").write_text(RULE)
    made = acting_as(hold, "bot")
    yield made
    made.close()


def test_a_wait_for_an_answer_ends_with_it(hold: HomeForTests) -> None:
    for words, answer, code in ((["main"], "main", 0), (["--deny"], None, 4)):
        ask = hold.host.ask("Which branch?").id
        answering = threading.Timer(0.2, lambda: hold("answer", ask, *words))  # noqa: B023  (joined below)
        answering.start()
        done = hold("wait", "--for", f"answer={ask}", "--timeout", "60", "--json")
        answering.join()
        assert (done.code, done.json["event"], done.json["detail"]["answer"]) == (code, "answer", answer)
    ask = hold.host.ask("Which branch?").id
    late = hold("wait", "--for", f"answer={ask}", "--timeout", "0.1", "--json")
    assert (late.code, late.json["event"], late.json["detail"]["state"]) == (124, "timeout", "open")
    for words, code in ((["--for", "answer=ask_none"], 3), (["--for", "answer="], 2), (["--for", "exit"], 2)):
        wrong = hold("wait", *words)
        assert (wrong.code, wrong.err.count("\n")) == (code, 1)


def test_from_python_too(hold: HomeForTests) -> None:
    ask = hold.host.ask("Which branch?").id
    assert hold.host.wait(answer=ask, timeout=0).event == "timeout"
    hold.host.answer(ask, "main")
    shell = hold.run("bash", "--norc", name="sh")
    for waited in (hold.host.wait(answer=ask, timeout=60), shell.wait(answer=ask, timeout=60)):
        assert (waited.event, waited.detail["answer"]) == ("answer", "main")
    with pytest.raises(HoldfastError):
        shell.wait(answer=ask, exit=True)


def test_exec_with_a_timeout_returns_while_a_person_is_asked(hold: HomeForTests, bot: Host, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    exec_ = ["exec", "sh", "--timeout", "0.2", "--json", "--", f"echo danger | tee -a {seen}"]
    first = hold(*exec_, HOLDFAST_OPERATOR="bot")
    told = first.json
    assert (first.code, told["state"], told["exit_code"], told["output"]) == (124, "waiting_for_approval", None, "")
    (item,) = hold.host.inbox()
    assert (told["ask"], hold(*exec_, HOLDFAST_OPERATOR="bot").json["exec_id"]) == (item.id, told["exec_id"])
    plain = hold(*(word for word in exec_ if word != "--json"), HOLDFAST_OPERATOR="bot")
    assert (plain.code, item.id in plain.err, plain.err.count("\n")) == (124, True, 1)
    mine = bot.session("sh").exec(exec_[-1], timeout=0.1)
    assert (mine.state, mine.ask, mine.exec_id) == ("waiting_for_approval", item.id, told["exec_id"])
    assert hold("exec-result", "sh", told["exec_id"], "--json").json["state"] == "waiting_for_approval"
    assert [i.id for i in hold.host.inbox()] == [item.id]
    assert not seen.exists()
    hold.host.answer(item.id, approve=True)
    assert hold("wait", "sh", "--for", f"done={told['exec_id']}", "--timeout", "60").code == 0
    done = bot.session("sh").exec(exec_[-1], timeout=60)
    assert (done.state, done.output, done.exec_id) == ("exited", "danger\n", told["exec_id"])
    assert seen.read_text() == "danger\n"


def test_another_operators_same_command_is_another_request(hold: HomeForTests, bot: Host, tmp_path: Path) -> None:
    enrol(hold, "other", verbs=["view", "exec"], sessions=["sh"])
    other, seen = acting_as(hold, "other"), tmp_path / "seen"
    mine = bot.session("sh").exec(f"echo danger >> {seen}", timeout=0)
    theirs = other.session("sh").exec(f"echo danger >> {seen}", timeout=0)
    assert mine.ask != theirs.ask
    assert bot.session("sh").exec(f"echo danger >>  {seen}", timeout=0).ask != mine.ask, "as it is written"
    hold("operator", "revoke", "bot")
    hold.host.answer(str(mine.ask), approve=True)  # a yes gives nobody a right that they do not have
    hold.host.answer(str(theirs.ask), approve=True)
    until(lambda: seen.exists() and seen.read_text() == "danger\n", 30)
    assert other.session("sh").exec(f"echo danger >> {seen}", timeout=60).exit_code == 0
    assert seen.read_text() == "danger\n"
    other.close()


def test_what_its_asker_takes_back_is_not_run(hold: HomeForTests, bot: Host, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    asked = bot.session("sh").exec(f"echo danger >> {seen}", timeout=0)
    bot.withdraw(str(asked.ask))
    assert hold("answer", str(asked.ask), "--approve").code == 5
    with pytest.raises(HoldfastError) as e:
        bot.session("sh").exec(f"echo danger >> {seen}", timeout=60)
    assert (e.value.code, seen.exists()) == ("not_allowed", False)
