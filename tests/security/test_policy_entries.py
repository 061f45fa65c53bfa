"""Changes of what the host allows are entries of the journal, and several hands are judged by the strictest rule."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
from pathlib import Path

from tests.support.home import HOLD, HomeForTests, until
from tests.support.operators import acting_as, enrol, journal

RULE = '[[approve]]\npattern = "danger"\n'


def test_a_change_of_the_rules_is_an_entry_with_both_digests_and_without_content(hold: HomeForTests) -> None:
    config = hold.path / "config.toml"
    hold.run("sleep", "600")
    config.write_text(RULE + '[notify]\nwebhook = "http://127.0.0.1:9/secret-token"\n')
    (first,) = until(lambda: journal(hold, "settings"), 60)
    assert (first["rules"], first["notify"], first["uid"]) == (1, ["webhook"], config.stat().st_uid)
    assert "secret-token" not in str(first)
    config.write_text("# nothing is asked any more\n")
    second = until(lambda: journal(hold, "settings")[1:], 60)[0]
    assert (second["before"], second["rules"]) == (first["after"], 0)
    assert second["after"] == first["before"] != first["after"]
    config.write_text("[[approve]]\npatern = 1\n")
    third = until(lambda: journal(hold, "settings")[2:], 60)[0]
    assert (third["broken"], third["after"]) == (True, hashlib.sha256(config.read_bytes()).hexdigest())
    assert "settings changed" in hold("timeline").out


def test_a_change_that_no_host_saw_is_noted_by_the_next_and_what_stays_is_not(hold: HomeForTests) -> None:
    config = hold.path / "config.toml"
    hold.run("sleep", "600")
    config.write_text(RULE)
    until(lambda: journal(hold, "settings"), 60)
    until((hold.path / "settings.known").exists, 60)
    hold.kill_daemon()
    config.write_text("# another table is nobody's policy\n[other]\nx = 1\n" + RULE)
    assert len(journal(hold, "settings")) == 1
    hold.kill_daemon()
    config.unlink()
    assert until(lambda: journal(hold, "settings")[1:], 60)[0]["rules"] == 0


def test_who_stopped_the_host_is_an_entry(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web")
    assert hold("down", "--why", "to upgrade").code == 0
    (entry,) = journal(hold, "down")
    assert (entry["operator_kind"], entry["why"]) == ("human", "to upgrade")
    pid = hold.host.call("ping")["host"]["pid"]
    os.kill(pid, signal.SIGTERM)
    until(lambda: hold.host.call("ping")["host"]["pid"] != pid, 60)
    assert journal(hold, "down")[1]["signal"] == "SIGTERM"
    assert hold.host.session("web").status().state == "live"


def test_a_shell_that_several_had_their_hands_on_is_judged_by_the_strictest_rule(
    hold: HomeForTests, tmp_path: Path
) -> None:
    """A rule for services alone: an agent that was there first does not hide the service behind it."""
    for name in ("sh", "other"):
        assert hold.run("bash", "--norc", name=name).wait(input=True, timeout=60).event != "timeout"
    verbs = ["view", "start", "type", "exec", "request_control"]
    enrol(hold, "bot", verbs=verbs)
    enrol(hold, "cron", kind="service", verbs=verbs)
    for name in ("bot", "cron"):
        with acting_as(hold, name) as who:
            assert who.session("sh").exec("true", timeout=60).exit_code == 0
    (hold.path / "config.toml").write_text('[[approve]]\npattern = "danger"\nkinds = ["service"]\ntimeout = "600s"\n')
    script = tmp_path / "script"
    script.write_text(f"exec {shlex.join(HOLD)} exec other -- 'touch {tmp_path}/danger'\n")
    with acting_as(hold, "bot") as bot:
        assert bot.session("sh").exec(f"sh {script} > {tmp_path}/out 2>&1 &", timeout=60).exit_code == 0
    (item,) = until(hold.host.inbox, 60)
    assert (item.kind, item.asker["name"] if item.asker else None) == ("approval", "cron")
    hold.host.answer(item.id, approve=False)
    until(lambda: "said no" in (tmp_path / "out").read_text(), 60)
    assert not (tmp_path / "danger").exists()
