"""Who is calling: keys, proofs, and where a process stands. What cannot be resolved is refused, never human."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

from holdfast.client._io.blocking_socket import HostConnection, connect_socket
from holdfast.model.errors import HoldfastError
from holdfast.system import signing_keys
from holdfast.wire import key_proof
from tests.support.home import HomeForTests, until, wait_fd
from tests.support.operators import INSIDE, acting_as, enrol, refusals


def ask(wire: HostConnection, **request: object) -> dict[str, object]:
    wire.send(request)
    return wire.receive()[0]


def test_the_os_user_is_the_first_human_without_ceremony(hold: HomeForTests) -> None:
    me = hold("operator", "whoami", "--json").json
    assert me["kind"] == "human"
    assert me["grants"][0]["sessions"] == ["*"]
    files = sorted((hold.path / "keys").iterdir())
    assert {f.name for f in files} == {f"{me['id']}.key", f"{me['host']}.key"}
    assert {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o600}
    assert stat.S_IMODE((hold.path / "keys").stat().st_mode) == 0o700


def test_the_first_human_keeps_id_and_key_across_daemons(hold: HomeForTests) -> None:
    before = hold.host.whoami()
    hold.kill_daemon()
    after = hold.host.whoami()
    assert (before["id"], before["key"], before["host"]) == (after["id"], after["key"], after["host"])


def test_a_home_from_before_there_were_keys_keeps_its_operator(hold: HomeForTests) -> None:
    kept = {"id": "hst_older", "operator": {"operator": "op_older", "kind": "human", "name": "ada"}}
    (hold.path / "host.json").write_text(json.dumps(kept))
    me = hold.host.whoami()
    assert (me["id"], me["name"], me["host"]) == ("op_older", "ada", "hst_older")
    assert hold("ls", HOLDFAST_OPERATOR="ada").code == 0


def test_a_name_selects_a_key_and_the_key_is_proven(hold: HomeForTests) -> None:
    made = enrol(hold, "bot")
    assert hold("operator", "whoami", "--json", HOLDFAST_OPERATOR="bot").json["id"] == made["id"]
    with acting_as(hold, made["id"]) as bot:
        assert bot.whoami()["name"] == "bot"


def test_a_name_nobody_has_is_refused_and_written_down(hold: HomeForTests) -> None:
    done = hold("ls", "--json", HOLDFAST_OPERATOR="mallory")
    assert (done.code, done.json["error"]["code"]) == (4, "not_allowed")
    assert "mallory" in refusals(hold)[-1]["reason"]


def test_a_name_without_a_readable_key_is_refused(hold: HomeForTests) -> None:
    made = enrol(hold, "bot")
    signing_keys.forget(str(hold.path / "keys"), made["id"])
    assert hold("ls", HOLDFAST_OPERATOR="bot").code == 4


def test_a_forged_key_is_refused_and_written_down(hold: HomeForTests) -> None:
    bot = enrol(hold, "bot")
    folder = hold.path / "keys"
    signing_keys.make(str(folder), "op_forged")
    (folder / "op_forged.key").replace(folder / f"{bot['id']}.key")
    assert hold("ls", HOLDFAST_OPERATOR="bot").code == 4
    assert refusals(hold)[-1]["op"] == "prove"


def test_a_proof_is_worth_nothing_on_another_connection(hold: HomeForTests) -> None:
    bot = enrol(hold, "bot")
    seed = signing_keys.load(str(hold.path / "keys"), bot["id"])
    first, second = HostConnection(connect_socket(hold.host.home)), HostConnection(connect_socket(hold.host.home))
    try:
        about = ask(first, op="identify", operator="bot")["ok"]
        assert isinstance(about, dict)
        signed = signing_keys.sign(
            seed, key_proof.message(about["host"], bytes.fromhex(about["nonce"]), bot["id"])
        ).hex()
        replayed = ask(second, op="prove", operator=bot["id"], signature=signed)
        assert replayed["error"]["code"] == "not_allowed"  # type: ignore[index]
        ask(second, op="identify", operator="bot")
        again = ask(second, op="prove", operator=bot["id"], signature=signed)
        assert again["error"]["code"] == "not_allowed"  # type: ignore[index]
        assert ask(first, op="prove", operator=bot["id"], signature=signed)["ok"]
        twice = ask(first, op="prove", operator=bot["id"], signature=signed)
        assert twice["error"]["code"] == "not_allowed"  # type: ignore[index]
        assert ask(first, op="whoami")["ok"]["name"] == "bot"  # type: ignore[index]
    finally:
        first.close()
        second.close()


def test_a_caller_inside_a_session_acts_as_the_session_whatever_key_it_proves(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    human = hold.host.whoami()["name"]
    shell = hold.run("bash", name="inside", acts_as="bot")
    plain = json.loads(shell.exec(f"{INSIDE} operator whoami --json", timeout=60).output)
    assert (plain["name"], plain["session_name"]) == ("bot", "inside")
    proving = shell.exec(f"HOLDFAST_OPERATOR={human} {INSIDE} operator whoami --json", timeout=60)
    assert json.loads(proving.output)["name"] == "bot"


STEPS = """
from holdfast import Host
with Host().work.run(lease=3600) as run:
    for n in range(4):
        run.step(f"s{n}", lambda: n)
    print(run.id)
"""


def test_the_steps_of_a_worker_inside_a_session_are_the_sessions_also_where_a_thread_answers_them(
    hold: HomeForTests,
) -> None:
    enrol(hold, "bot", verbs=["work"], sessions=["*"])
    done = hold.run(sys.executable, "-c", STEPS, acts_as="bot", pipes=True)
    run = b"".join(chunk.data for chunk in done.output(follow=True)).decode().split()[-1]
    assert {entry["by"] for entry in hold.host.work.call("log_read", run=run) if entry["step"]} == {"bot"}


def test_a_daemonised_child_is_still_inside(hold: HomeForTests, tmp_path: Path) -> None:
    enrol(hold, "bot")
    out = tmp_path / "who"
    script = f"setsid sh -c '{INSIDE} operator whoami --json > {out}.new; mv {out}.new {out}' >/dev/null 2>&1 &"
    hold.run("bash", "-c", f"({script}) ; exec sleep 60", acts_as="bot")
    until(out.exists, 60)
    assert json.loads(out.read_text())["name"] == "bot"


def test_what_outlives_its_keeper_is_not_taken_for_the_human(hold: HomeForTests, tmp_path: Path) -> None:
    enrol(hold, "bot")
    out, go = tmp_path / "who", tmp_path / "go"
    script = f"trap '' HUP; while [ ! -e {go} ]; do sleep 0.1; done; {INSIDE} operator whoami --json > {out}.new; mv {out}.new {out}"
    session = hold.run("setsid", "sh", "-c", script, acts_as="bot", pipes=True)
    keeper = hold.keeper_pid(session)
    fd = os.pidfd_open(keeper)
    os.kill(keeper, signal.SIGKILL)
    wait_fd(fd)
    until(lambda: session.status().state == "lost", 30)
    go.touch()
    until(out.exists, 60)
    assert json.loads(out.read_text())["name"] == "bot"


def test_a_caller_that_has_ended_is_refused(hold: HomeForTests) -> None:
    hold.host.whoami()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:  # connects, gives the connection away, and is gone
        try:
            connection = connect_socket(hold.host.home)
            socket.send_fds(theirs, [b"x"], [connection.fileno()])
        finally:
            os._exit(0)
    theirs.close()
    ours.settimeout(30)
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(child, 0)
    wire = HostConnection(socket.socket(fileno=fds[0]))
    answer = ask(wire, op="ls")
    wire.close()
    ours.close()
    assert answer["error"]["code"] == "not_allowed"  # type: ignore[index]
    assert refusals(hold)[-1]["operator"] is None


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user takes root")
def test_another_uid_is_refused_even_where_it_can_reach_the_socket(hold: HomeForTests) -> None:
    hold.host.whoami()
    os.chmod(hold.path / "host.sock", 0o666)
    folder = os.open(hold.path, os.O_PATH | os.O_DIRECTORY)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresuid(65534, 65534, 65534)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(f"/proc/self/fd/{folder}/host.sock")
            sock.settimeout(20)
            os.write(theirs, json.dumps(HostConnection(sock).receive()[0]).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(child, 0)
    answer = json.loads(os.read(ours, 65536))
    os.close(ours)
    os.close(folder)
    assert answer["error"]["code"] == "not_allowed"
    assert refusals(hold)[-1]["uid"] == 65534


def test_a_shell_acts_no_wider_than_those_who_typed_in_it(hold: HomeForTests) -> None:
    """An agent that may type into a person's shell does not become that person by typing `hold`."""
    shell = hold.run("bash", name="desk")
    other = hold.run("sleep", "600", name="other")
    enrol(hold, "bot", verbs=["view", "type", "exec"], sessions=["desk"])
    assert json.loads(shell.exec(f"{INSIDE} ls --json", timeout=60).output)
    with acting_as(hold, "bot") as bot:
        done = bot.session("desk").exec(f"{INSIDE} stop other", timeout=60)
        assert done.exit_code == 3  # it does not even exist for the bot
        assert other.status().state == "live"
        denied = bot.session("desk").exec(f"{INSIDE} operator add eve --kind human --grant view", timeout=60)
        assert denied.exit_code == 4
    later = shell.exec(f"{INSIDE} stop other", timeout=60)  # the person's own words, in a shell the bot prepared
    assert later.exit_code == 3
    assert hold("stop", "other").code == 0


def test_one_who_was_refused_has_had_no_hands_on_it(hold: HomeForTests) -> None:
    shell = hold.run("bash", name="desk")
    enrol(hold, "bot", verbs=["view", "type", "exec"], sessions=["desk"])
    assert hold("take", "desk").code == 0
    assert hold("send", "desk", "x", HOLDFAST_OPERATOR="bot").code == 5
    assert hold("exec", "desk", "--", "true", HOLDFAST_OPERATOR="bot").code == 5
    me = json.loads(shell.exec(f"{INSIDE} operator whoami --json", timeout=60).output)
    assert me["bound_by"] == []


def test_a_persons_shell_may_speak_for_their_agent(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    shell = hold.run("bash")
    done = shell.exec(f"HOLDFAST_OPERATOR=bot {INSIDE} operator whoami --json", timeout=60)
    assert json.loads(done.output)["name"] == "bot"


def test_a_quick_command_never_loads_the_cryptography(hold: HomeForTests) -> None:
    hold.run("sleep", "600")
    code = (
        "import sys; from holdfast.cli.main import main; code = main(['ls']);"
        "print(code, [m for m in sys.modules if m.split('.')[0] in ('cryptography', 'sqlite3', 'keyring')])"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], env=hold.env, capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().splitlines()[-1] == "0 []"


def test_the_desktops_keyring_is_used_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keyring package is the world around us: a small one that keeps its secrets in a dictionary."""
    (tmp_path / "keyring.py").write_text(
        "kept = {}\n"
        "class Backend:\n    priority = 5\n"
        "def get_keyring():\n    return Backend()\n"
        "def set_password(service, name, value):\n    kept[service, name] = value\n"
        "def get_password(service, name):\n    return kept.get((service, name))\n"
        "def delete_password(service, name):\n    del kept[service, name]\n"
    )
    spec = importlib.util.spec_from_file_location("keyring", tmp_path / "keyring.py")
    assert spec is not None
    assert spec.loader is not None
    ring = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ring)
    monkeypatch.setitem(sys.modules, "keyring", ring)  # for this test alone: the real one is tested elsewhere
    monkeypatch.setenv(signing_keys.KEYRING_ENV, "1")
    folder = str(tmp_path / "keys")
    public = signing_keys.make(folder, "op_ring")
    assert not os.path.exists(signing_keys.path_of(folder, "op_ring"))
    assert signing_keys.public_of(signing_keys.load(folder, "op_ring")) == public
    signing_keys.forget(folder, "op_ring")
    with pytest.raises(HoldfastError, match="no key"):
        signing_keys.load(folder, "op_ring")


def test_an_open_connection_is_checked_at_every_request(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    with acting_as(hold, "bot") as bot:
        assert bot.sessions() == []
        hold.host.revoke("bot")
        with pytest.raises(HoldfastError) as refused:
            bot.sessions()
        assert refused.value.code == "not_allowed"
