"""Grants: deny what they do not name, only ever narrow, end at once. Every refusal is exit 4 and in the journal."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from holdfast.client import sign_grant
from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from holdfast.model.operators.grants import Grant
from holdfast.system import signing_keys
from tests.support.home import HOLD, HomeForTests, until
from tests.support.operators import INSIDE, acting_as, enrol, journal, refusals


def refused_by(hold: HomeForTests, *words: str, **env: Any) -> str:
    """The message of a command that must be refused, exit 4, and be written down."""
    before = len(refusals(hold))
    done = hold(words[0], "--json", *words[1:], **env)
    assert (done.code, done.json["error"]["code"]) == (4, "not_allowed"), done.out + done.err
    assert len(refusals(hold)) > before
    return str(done.json["error"]["message"])


# -- what an agent sees and may do ---------------------------------------------------------------------------------


def test_other_operators_sessions_are_invisible_without_view(hold: HomeForTests) -> None:
    web = hold.run("sleep", "600", name="web")
    enrol(hold, "bot")
    as_bot: dict[str, Any] = {"HOLDFAST_OPERATOR": "bot"}
    assert hold("ls", "-a", "--json", **as_bot).json == []
    assert hold("ports", "--json", **as_bot).json == []
    for command in (
        ["status", "web"],
        ["logs", "web"],
        ["send", "web", "x"],
        ["stop", web.id],
        ["screen", web.id[:10]],
    ):
        assert hold(*command, **as_bot).code == 3, command
    assert hold("status", "--json", **as_bot).json["sessions"] == []
    assert web.status().state == "live"


def test_an_agent_has_what_it_needs_in_its_own_sessions(hold: HomeForTests) -> None:
    made = enrol(hold, "bot")
    with acting_as(hold, "bot") as bot:
        mine = bot.run(["bash"], name="mine", env={"HOLDFAST_HOME": str(hold.path)})
        assert mine.exec("echo hello", timeout=60).output == "hello\n"
        status = mine.status()
        assert (status.started_by, status.acts_as) == (made["id"], made["id"])
        mine.take()
        mine.release()
        mine.stop(0)
        mine.remove()


def test_verbs_that_were_not_named_are_denied(hold: HomeForTests) -> None:
    hold.run("bash", name="web")
    hold.run("sleep", "600", name="db")
    enrol(hold, "eye", verbs=["view"], sessions=["web"])
    as_eye: dict[str, Any] = {"HOLDFAST_OPERATOR": "eye"}
    assert hold("screen", "web", **as_eye).code == 0
    assert [s["name"] for s in hold("ls", "--json", **as_eye).json] == ["web"]
    for words in (
        ["send", "web", "x"],
        ["exec", "web", "--", "true"],
        ["kill", "web"],
        ["stop", "web"],
        ["take", "web"],
        ["restart", "web"],
        ["rename", "web", "mine"],
        ["run", "-d", "--", "true"],
        ["down"],
    ):
        done = hold(*words, **as_eye)
        assert done.code == 4, (words, done.out, done.err)
    assert {e["op"] for e in refusals(hold)} >= {"send", "exec", "kill", "stop", "take", "restart", "rename", "run"}


def test_a_channel_carries_only_the_rights_of_its_operator(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    enrol(hold, "eye", verbs=["view"], sessions=["web"])
    with acting_as(hold, "eye") as eye:
        channel = eye.session("web").open()
        try:
            with pytest.raises(HoldfastError) as refused:
                channel.send(b"not mine\n")
            assert refused.value.code == "not_allowed"
        finally:
            channel.close()
    assert session.status().output.end == 0


# -- what cannot be granted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bo\x1bt", "b\u043et", "\u0441\u043e\u0441\u043e", "a b", "", "op_bot", "b\u200dot", "x" * 65]
)
def test_a_name_that_could_be_taken_for_another_is_refused(hold: HomeForTests, name: str) -> None:
    refused_by(hold, "operator", "add", name, "--kind", "agent")


def test_a_near_copy_of_a_name_is_refused(hold: HomeForTests) -> None:
    enrol(hold, "deploy-bot")
    refused_by(hold, "operator", "add", "dep1oy-b0t", "--kind", "agent")


@pytest.mark.parametrize(
    "options",
    [
        ["--grant", "view,fly"],
        ["--grant", ""],
        ["--grant", "view", "--session", ""],
        ["--grant", "view", "--session", "we\x07b"],
        ["--grant", "view", "--session", "w\u0435b"],
        ["--grant", "view", "--depth", "99"],
        ["--grant", "approve"],
        ["--grant", "view,delegate"],
        ["--grant", "enrol"],
    ],
)
def test_what_cannot_be_granted_to_an_agent_is_refused(hold: HomeForTests, options: list[str]) -> None:
    refused_by(hold, "operator", "add", "bot", "--kind", "agent", *options)
    assert [o["name"] for o in hold.host.operators()] == [hold.host.whoami()["name"]]
    assert len(list((hold.path / "keys").iterdir())) == 2  # no key is left of one that was not enrolled


def test_an_agent_enrols_and_grants_nobody(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    refused_by(hold, "operator", "add", "friend", "--kind", "agent", HOLDFAST_OPERATOR="bot")
    refused_by(hold, "operator", "grant", "bot", "--grant", "view", "--session", "*", HOLDFAST_OPERATOR="bot")
    refused_by(hold, "operator", "revoke", "bot", HOLDFAST_OPERATOR="bot")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--grant", "stop", "--session", "web-1"], "wider"),
        (["--grant", "view", "--session", "db"], "wider"),
        (["--grant", "view", "--session", "*"], "wider"),
        (["--grant", "view", "--session", "web-1", "--ttl", "2h"], "wider"),
        (["--grant", "view,delegate", "--session", "web-1", "--depth", "1"], "depth"),
    ],
)
def test_a_grant_is_never_wider_than_the_one_it_is_made_from(
    hold: HomeForTests, options: list[str], reason: str
) -> None:
    enrol(hold, "lead", "human", verbs=["view", "type", "delegate"], sessions=["web-*"], ttl=3600, depth=1)
    enrol(hold, "grace", "human")
    words = ["operator", "grant", "grace", *options]
    assert reason in refused_by(hold, *words, HOLDFAST_OPERATOR="lead")
    narrower = ["operator", "grant", "grace", "--grant", "view", "--session", "web-1", "--ttl", "30m"]
    assert hold(*narrower, HOLDFAST_OPERATOR="lead").code == 0


def test_a_grant_cannot_be_passed_on_further_than_its_depth(hold: HomeForTests) -> None:
    enrol(hold, "lead", "human", verbs=["view", "delegate"], depth=1)
    enrol(hold, "grace", "human")
    enrol(hold, "helper")
    with acting_as(hold, "lead") as lead:
        lead.grant("grace", ["view"], sessions=["web"])
    refused_by(hold, "operator", "grant", "helper", "--grant", "view", "--session", "web", HOLDFAST_OPERATOR="grace")


def test_a_grant_that_its_maker_did_not_sign_is_refused(hold: HomeForTests) -> None:
    bot = enrol(hold, "bot")
    me = hold.host.whoami()
    grant = sign_grant.make(me, bot["id"], ["view"], ["*"], None, None, time.time())
    by_bot = signing_keys.sign(
        signing_keys.load(str(hold.path / "keys"), bot["id"]), grant.signed_bytes(me["host"])
    ).hex()
    good = sign_grant.sign(str(hold.path / "keys"), me, grant)
    changed = Grant(**{**grant.as_dict(), "verbs": ["view", "type"]})
    for value, signature in ((grant, by_bot), (grant, ""), (grant, "00" * 64), (changed, good)):
        with pytest.raises(HoldfastError) as refused:
            hold.host.call("operator_grant", grant=value.as_dict(), signature=signature)
        assert refused.value.code == "not_allowed"
    hold.host.call("operator_grant", grant=grant.as_dict(), signature=good)
    with pytest.raises(HoldfastError) as replayed:
        hold.host.call("operator_grant", grant=grant.as_dict(), signature=good)
    assert replayed.value.code == "not_allowed"


def test_a_grant_changed_in_the_ledger_grants_nothing(hold: HomeForTests) -> None:
    import sqlite3

    bot = enrol(hold, "bot", verbs=["view"], sessions=["web"])
    hold.run("sleep", "600", name="web")
    assert len(hold("ls", "--json", HOLDFAST_OPERATOR="bot").json) == 1
    hold.kill_daemon()
    db = sqlite3.connect(hold.path / "host.db")
    ((body,),) = db.execute("SELECT body FROM grants WHERE operator = ?", (bot["id"],)).fetchall()
    wider = json.dumps({**json.loads(body), "sessions": ["*"]}, sort_keys=True, separators=(",", ":"))
    db.execute("UPDATE grants SET body = ? WHERE operator = ?", (wider.encode(), bot["id"]))
    db.commit()
    db.close()
    assert hold("ls", "--json", HOLDFAST_OPERATOR="bot").json == []
    found = {f["name"]: f["status"] for f in hold("doctor", "--json").json["checks"]}
    assert found["grants"] == "fail"


# -- the end of a grant ---------------------------------------------------------------------------------------------


def test_a_grant_ends_by_the_clock(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web")
    enrol(hold, "bot", verbs=["view"], sessions=["web"], ttl=2.0)
    with acting_as(hold, "bot") as bot:
        until(lambda: _code(lambda: bot.session("web")) == "not_found", 30)
        assert [g["state"] for g in bot.whoami()["grants"]] == ["expired"]


def _code(call: Any) -> str:
    try:
        call()
    except HoldfastError as e:
        return e.code
    return ""


def test_revocation_ends_channels_and_requests_at_once(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    enrol(hold, "bot", verbs=["view", "type", "request_control"], sessions=["web"])
    with acting_as(hold, "bot") as bot, acting_as(hold, "bot") as other:
        channel = bot.session("web").open()
        channel.send(b"before\n")
        waiting = other.connection()
        waiting.send({"op": "wait", "session": "web", "until": "exit", "timeout": 100})
        for _ in range(3):  # whatever came before these are answered is under way
            hold.host.call("ping")
        done = hold.host.revoke("bot", why="enough")
        answer: Any = waiting.receive()[0]
        waiting.close()
        assert answer["error"]["code"] == "not_allowed"
        assert (done["channels"] >= 1, done["requests"]) == (True, 1)
        with pytest.raises((HoldfastError, OSError)):
            channel.send(b"after\n")
        channel.close()
        assert _code(bot.sessions) == "not_allowed"
    assert session.status().controls.holder is None
    assert b"after" not in b"".join(c.data for c in session.output())
    assert journal(hold, "revoke")[-1]["why"] == "enough"


def test_revoking_a_grant_takes_what_was_made_from_it(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web")
    enrol(hold, "lead", "human", verbs=["view", "delegate"], sessions=["web"], depth=1)
    enrol(hold, "grace", "human")
    with acting_as(hold, "lead") as lead:
        lead.grant("grace", ["view"], sessions=["web"])
    assert len(hold("ls", "--json", HOLDFAST_OPERATOR="grace").json) == 1
    root = hold.host.operators()
    grant = next(o for o in root if o["name"] == "lead")["grants"][0]["id"]
    hold.host.revoke(grant)
    assert hold("ls", "--json", HOLDFAST_OPERATOR="grace").json == []
    assert hold("ls", "--json", HOLDFAST_OPERATOR="lead").json == []


def test_a_revocation_outlives_the_daemon(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    hold.host.revoke("bot")
    hold.kill_daemon()
    assert hold("ls", HOLDFAST_OPERATOR="bot").code == 4


def test_the_first_human_cannot_be_locked_out(hold: HomeForTests) -> None:
    me = hold.host.whoami()
    refused_by(hold, "operator", "revoke", me["name"])
    assert hold("operator", "revoke", me["grants"][0]["id"]).code == 4


# -- acting for others -----------------------------------------------------------------------------------------------


def test_nobody_starts_a_session_as_someone_they_cannot_speak_for(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    enrol(hold, "other")
    enrol(hold, "grace", "human")
    refused_by(hold, "run", "-d", "--as", "grace", "--", "true")
    refused_by(hold, "run", "-d", "--as", "other", "--", "true", HOLDFAST_OPERATOR="bot")
    assert hold("run", "-d", "--as", "nobody", "--", "true").code == 3
    assert hold("run", "-d", "--as", "bot", "--", "sleep", "600").code == 0


def test_a_replayed_start_of_another_operator_is_refused(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    request: dict[str, Any] = {"request": "req_seen", "command": ["sleep", "600"], "cwd": "/", "env": {}}
    made = hold.host.call("run", **request)
    assert hold.host.call("run", **request)["id"] == made["id"]
    with acting_as(hold, "bot") as bot:
        assert _code(lambda: bot.call("run", **request)) == "not_allowed"


def test_controls_are_handed_over_with_a_note(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    bot = enrol(hold, "bot", verbs=["view", "type", "request_control"], sessions=["web"])
    enrol(hold, "eye", verbs=["view"], sessions=["web"])
    assert hold("take", "web", "--why", "look").code == 0
    refused_by(hold, "hand", "web", "eye")
    done = hold("hand", "web", "bot", "--note", "go on", "--json")
    assert done.json["controls"]["holder"] == bot["id"]
    assert session.status().controls.holder == bot["id"]
    entry = journal(hold, "hand")[-1]
    assert (entry["note"], entry["to"]["name"]) == ("go on", "bot")
    assert hold("hand", "web", "bot").code == 5  # given away: it is not ours to give


def test_an_agent_does_not_take_from_a_human(hold: HomeForTests) -> None:
    hold.run("cat", name="web")
    enrol(hold, "bot", verbs=["view", "type", "request_control"], sessions=["web"])
    assert hold("take", "web").code == 0
    done = hold("take", "web", "--json", HOLDFAST_OPERATOR="bot")
    assert (done.code, done.json["error"]["code"]) == (5, "conflict")


# -- the command line -------------------------------------------------------------------------------------------------


def test_the_commands_say_what_there_is(hold: HomeForTests) -> None:
    added = hold("operator", "add", "bot", "--kind", "agent", "--json").json
    assert added["grants"][0]["sessions"] == ["@own"]
    given = hold("operator", "grant", "bot", "--grant", "view", "--session", "web-*", "--ttl", "1h", "--json").json
    assert (given["verbs"], given["sessions"]) == (["view"], ["web-*"])
    assert {o["name"] for o in hold("operator", "ls", "--json").json} == {"bot", hold.host.whoami()["name"]}
    assert [o["name"] for o in hold("operator", "ls", "--json", HOLDFAST_OPERATOR="bot").json] == ["bot"]
    assert hold("operator", "revoke", given["id"], "--json").json["grant"] == given["id"]
    assert hold("operator", "revoke", "bot").code == 0
    assert "bot" not in hold("operator", "ls").out
    assert "revoked" in hold("operator", "ls", "-a").out
    for words, code in ((["operator", "add", "bot"], 2), (["operator", "grant"], 2), (["operator", "revoke", "x"], 3)):
        assert hold(*words).code == code


def test_the_sdk_enrols_grants_and_revokes(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    made = hold.host.add_operator("helper", "agent", verbs=["view"], sessions=["web"], ttl=600)
    hold.host.grant("helper", ["type", "request_control", "view"], sessions=[session.id])
    with Host(str(hold.path), operator="helper") as helper:
        helper.session("web").send("x\n")
        assert helper.whoami()["id"] == made["id"]
    assert hold.host.revoke("helper")["operator"] == made["id"]


def test_an_agent_inside_its_session_is_held_to_its_grant(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="private")
    enrol(hold, "bot", verbs=["view", "start", "exec", "type"], sessions=["@own"])
    shell = hold.run("bash", name="agent", acts_as="bot")
    seen = shell.exec(f"{INSIDE} ls --json", timeout=60)
    assert [s["name"] for s in json.loads(seen.output)] == ["agent"]
    assert shell.exec(f"{INSIDE} stop agent", timeout=60).exit_code == 4


def test_a_request_on_an_open_connection_ends_with_its_time(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web")
    enrol(hold, "bot", verbs=["view"], sessions=["web"], ttl=3.0)
    waiting = subprocess.run(
        [*HOLD, "wait", "web", "--for", "exit", "--timeout", "100"],
        env={**hold.env, "HOLDFAST_OPERATOR": "bot"},
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert waiting.returncode in (3, 4)  # 3: it came so late that the session was gone for it already
