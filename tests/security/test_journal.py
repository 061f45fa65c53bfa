"""The journal: everything that was done is in it, nothing that was typed is, and no change of it goes unseen."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from holdfast.model import journal_chain as chain
from holdfast.model.errors import HoldfastError
from holdfast.model.home import Home
from holdfast.system import signing_keys
from tests.support.home import HomeForTests, until
from tests.support.keeperline import KeeperLine
from tests.support.operators import acting_as, enrol, journal, refusals

Json = dict[str, Any]
SECRET = "correct-horse-battery-staple"


def filled(hold: HomeForTests, entries: int = 150) -> None:
    """A journal with some signed heads in it, and no daemon."""
    hold.run("sleep", "600", name="s0")
    done = len(journal(hold))
    for n in range(done, entries):
        hold.host.call("rename", session=f"s{n - done}", name=f"s{n - done + 1}")
    assert hold("journal", "verify", "--json").json["ok"]
    assert hold("down").code == 0


def tamper(hold: HomeForTests, change: Callable[[sqlite3.Connection], object]) -> None:
    db = sqlite3.connect(hold.path / "host.db")
    change(db)
    db.commit()
    db.close()


def verdict(hold: HomeForTests, *options: str) -> Json:
    done = hold("journal", "verify", "--json", *options)
    found: Json = done.json
    assert done.code == (0 if found["ok"] else 1)
    return found


def rechained(db: sqlite3.Connection, host: str, sign: Callable[[bytes], bytes], body_of: int, why: str) -> None:
    """Change one entry, then make every hash after it fit again, and sign every head anew."""
    previous = chain.first_hash(host)
    for n, body in db.execute("SELECT n, body FROM entries ORDER BY n").fetchall():
        if n == body_of:
            body = chain.canonical({**json.loads(body), "why": why})  # noqa: PLW2901
        previous = chain.next_hash(previous, body)
        db.execute("UPDATE entries SET body = ?, hash = ? WHERE n = ?", (body, previous, n))
        at = db.execute("SELECT at FROM heads WHERE n = ?", (n,)).fetchone()
        if at:
            signed = sign(chain.head_bytes(chain.head(host, n, previous, at[0]))).hex()
            db.execute("UPDATE heads SET hash = ?, signature = ? WHERE n = ?", (previous.hex(), signed, n))


# -- what is in it --------------------------------------------------------------------------------------------------


def test_every_act_has_operator_epoch_offset_and_reason(hold: HomeForTests) -> None:
    me = hold.host.whoami()["id"]
    hold("run", "-d", "-n", "web", "--why", "w-run", "--", "bash")
    hold("exec", "web", "--why", "w-exec", "--", "echo hello")
    hold("send", "web", "echo sent", "--enter", "--why", "w-send")
    hold("take", "web", "--why", "w-take")
    hold("release", "web", "--why", "w-release")
    hold("kill", "web", "-s", "WINCH", "--why", "w-kill")
    hold("rename", "web", "net")
    hold("stop", "net", "--why", "w-stop")
    hold("rm", "net")
    entries = journal(hold)
    by_kind = {e["kind"]: e for e in entries}
    assert [e["n"] for e in entries] == list(range(1, len(entries) + 1))
    for kind, why in (
        ("start", "w-run"),
        ("exec", "w-exec"),
        ("send", "w-send"),
        ("take", "w-take"),
        ("release", "w-release"),
        ("signal", "w-kill"),
        ("stop", "w-stop"),
    ):
        assert (by_kind[kind]["why"], by_kind[kind]["operator"]) == (why, me), kind
    assert by_kind["exec"]["text"] == "echo hello"
    assert by_kind["send"]["text"] == "echo sent\r"
    assert by_kind["exec"]["epoch"] >= 1
    assert by_kind["take"]["epoch"] > by_kind["exec"]["epoch"]
    assert by_kind["send"]["offset"] > 0
    assert {"rename", "remove", "ended"} <= set(by_kind)
    assert verdict(hold)["entries"] >= len(entries)


def test_typing_is_one_entry_without_content_or_length(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    me = hold.host.whoami()
    with KeeperLine(Home(str(hold.path)), session.id, operator=me["id"], name=me["name"], attach=True) as line:
        for letter in "keystroke":
            line.type(letter.encode())
    entries = until(lambda: journal(hold, "input"), 30)
    assert len(entries) == 1
    assert entries[0]["operator"] == me["id"]
    assert not {"text", "length", "data", "hash", "bytes"} & set(entries[0])
    assert "keystroke" not in json.dumps(journal(hold))


def test_a_secret_is_nowhere_in_the_home(hold: HomeForTests) -> None:
    shell = hold.run("bash", name="web", env={"PS1": "$ "})
    shell.send("read -rs answer; echo got ${#answer}", enter=True)
    assert shell.wait(input=True, timeout=60).event != "timeout"
    hold("send", "web", "--enter", "--stdin", stdin=SECRET.encode())  # unmarked: the terminal does not echo
    assert shell.wait(text=f"got {len(SECRET)}", timeout=60).event != "timeout"
    plain = hold.run("cat", name="cat")
    assert plain.wait(input=True, timeout=60).event != "timeout"
    hold("send", "web", "--secret", "--stdin", stdin=SECRET.encode())
    assert [e.get("secret") for e in journal(hold, "send")][-2:] == [True, True]
    hold("journal", "head")
    assert hold("down").code == 0
    shown = b"\n".join(p.read_bytes() for p in hold.path.rglob("*") if p.is_file() and "out" not in p.parts)
    assert SECRET.encode() not in shown


def test_input_that_ends_the_program_was_sent_all_the_same(hold: HomeForTests) -> None:
    for _ in range(5):
        session = hold.run("head", "-n1")
        session.send("the last line\n")
        assert session.wait(exit=True, timeout=60).event != "timeout"
    assert len(journal(hold, "send")) == 5


def test_what_was_acknowledged_survives_the_daemons_death(hold: HomeForTests) -> None:
    hold.run("bash", name="web")
    for n in range(5):
        hold.host.session("web").exec(f"echo {n}", timeout=60)
        hold.kill_daemon()
    assert [e["text"] for e in journal(hold, "exec")] == [f"echo {n}" for n in range(5)]
    assert verdict(hold)["ok"]


def test_what_a_keeper_recorded_without_a_host_is_fetched_once(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    me = hold.host.whoami()
    hold.kill_daemon()
    with KeeperLine(Home(str(hold.path)), session.id, operator=me["id"], name=me["name"]) as line:
        line.act("take")
        line.act("release")
    for _ in range(3):
        until(lambda: journal(hold, "release"), 30)
        hold.kill_daemon()
    spooled = [(e["session"], e["generation"], e["spool"]) for e in journal(hold) if "spool" in e]
    assert len(spooled) == len(set(spooled))
    assert [e["kind"] for e in journal(hold, "take", "release")] == ["take", "release"]


def test_a_session_that_ended_without_a_host_is_in_the_journal(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    me = hold.host.whoami()
    hold.kill_daemon()
    with KeeperLine(Home(str(hold.path)), session.id, operator=me["id"], name=me["name"]) as line:
        line.act("stop", grace_s=1)
        until(lambda: not (hold.path / "sessions" / session.id / "keeper.json").exists(), 30)
    until(lambda: journal(hold, "ended"), 30)
    assert journal(hold, "stop")[-1]["operator"] == me["id"]
    assert hold("rm", "web").code == 0
    assert verdict(hold)["ok"]


def test_many_hands_at_once_make_one_chain(hold: HomeForTests) -> None:
    sessions = [hold.run("cat") for _ in range(4)]

    def work(index: int) -> None:
        with Host(str(hold.path)) as host:
            for _ in range(10):
                host.call("send", session=sessions[index].id, data="eAo=")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert len(journal(hold, "send")) == 40
    assert verdict(hold)["ok"]


def test_the_timeline_reads_like_a_story(hold: HomeForTests) -> None:
    hold("run", "-d", "-n", "web", "--", "bash")
    enrol(hold, "bot", verbs=["view"], sessions=["web"])
    hold("exec", "web", "--why", "check the build", "--", "test -d /tmp")
    hold("take", "web")
    me = hold.host.whoami()["name"]
    story = hold("timeline").out
    for sentence in (
        f"{me} started web with “bash”",
        f"{me} enrolled bot (agent)",
        f"{me} ran “test -d /tmp” in web: “check the build”",
        f"{me} took the controls",
    ):
        assert sentence in story
    only = hold("timeline", "web", "--json").json
    assert {e["kind"] for e in only} >= {"start", "exec", "take"}
    assert {e["session_name"] for e in only} == {"web"}
    assert hold("timeline", "nothing").code == 3
    assert len(hold("timeline", "-n", "2", "--json").json) == 2


def test_others_entries_are_not_for_those_who_may_not_view(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="private")
    enrol(hold, "bot")
    with acting_as(hold, "bot") as bot:
        mine = bot.run(["sleep", "600"], env={})
        assert {e["session"] for e in bot.timeline()["entries"]} == {mine.id}
        with pytest.raises(HoldfastError) as refused:
            bot.timeline("private")
        assert refused.value.code == "not_found"
        with pytest.raises(HoldfastError) as denied:
            bot.call("journal_verify")
        assert denied.value.code == "not_allowed"


# -- what cannot be done to it ---------------------------------------------------------------------------------------


def test_an_entry_whose_type_was_changed_is_found_as_well(hold: HomeForTests) -> None:
    filled(hold)
    tamper(hold, lambda db: db.execute("UPDATE entries SET body = replace(body, 'o', '0') WHERE n = 77"))
    assert verdict(hold)["bad"] == 77


def test_a_flipped_bit_is_found_where_it_is(hold: HomeForTests) -> None:
    filled(hold)

    def flip(db: sqlite3.Connection) -> None:
        body = bytearray(db.execute("SELECT body FROM entries WHERE n = 77").fetchone()[0])
        body[len(body) // 2] ^= 1
        db.execute("UPDATE entries SET body = ? WHERE n = 77", (bytes(body),))

    tamper(hold, flip)
    assert verdict(hold)["bad"] == 77


def test_a_removed_entry_is_found(hold: HomeForTests) -> None:
    filled(hold)
    tamper(hold, lambda db: db.execute("DELETE FROM entries WHERE n = 50"))
    found = verdict(hold)
    assert (found["bad"], "missing" in found["reason"]) == (50, True)


def test_an_entry_filed_under_another_session_is_found(hold: HomeForTests) -> None:
    filled(hold)
    tamper(hold, lambda db: db.execute("UPDATE entries SET session = NULL WHERE n = 33"))
    assert verdict(hold)["bad"] == 33


def test_a_cut_tail_is_found_by_the_head_beside_it(hold: HomeForTests) -> None:
    filled(hold)
    last = json.loads((hold.path / "journal.head").read_text())["n"]

    def cut(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM entries WHERE n > ?", (last - 3,))
        db.execute("DELETE FROM heads WHERE n > ?", (last - 3,))

    tamper(hold, cut)
    assert verdict(hold)["bad"] is not None
    hold.host.call("rename", session=hold.host.sessions()[0].id, name="later")  # what is written on top hides nothing
    assert verdict(hold)["bad"] is not None
    assert hold("down").code == 0
    assert not verdict(hold)["ok"]
    found = {f["name"]: f["status"] for f in hold("doctor", "--json").json["checks"]}
    assert found["journal"] == "fail"


def test_a_tail_cut_under_a_running_daemon_is_found(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web")
    entries = verdict(hold)["entries"]
    tamper(hold, lambda db: db.execute("DELETE FROM entries WHERE n = ?", (entries,)))
    assert not verdict(hold)["ok"]


def test_a_journal_written_anew_is_found_by_a_head_kept_elsewhere(hold: HomeForTests, tmp_path: Path) -> None:
    filled(hold)
    kept = tmp_path / "head.json"
    kept.write_text(hold("journal", "head", "--json").out)
    host = hold.host.whoami()["host"]
    assert verdict(hold, "--head", str(kept))["ok"]
    assert hold("down").code == 0
    seed = signing_keys.load(str(hold.path / "keys"), host)  # whoever has this key can do it: only elsewhere is safe
    tamper(hold, lambda db: rechained(db, host, lambda m: signing_keys.sign(seed, m), 20, "invented"))
    (hold.path / "journal.head").unlink()
    assert verdict(hold)["ok"]
    assert not verdict(hold, "--head", str(kept))["ok"]


def test_an_old_entry_signed_by_another_key_is_found(hold: HomeForTests) -> None:
    filled(hold)
    host = json.loads((hold.path / "host.json").read_text())["id"]
    tamper(hold, lambda db: rechained(db, host, lambda m: signing_keys.sign(b"x" * 32, m), 20, "invented"))
    found = verdict(hold)
    assert (found["bad"], "signed" in found["reason"]) == (64, True)


def test_heads_that_were_taken_away_are_missed(hold: HomeForTests) -> None:
    filled(hold)
    tamper(hold, lambda db: db.execute("DELETE FROM heads"))
    (hold.path / "journal.head").unlink()
    assert verdict(hold)["bad"] == 64


def test_a_head_of_another_host_or_nonsense_proves_nothing(hold: HomeForTests, tmp_path: Path) -> None:
    filled(hold, 5)
    head = hold("journal", "head", "--json").json
    kept = tmp_path / "head.json"
    kept.write_text(json.dumps({**head, "host": "hst_other"}))
    assert not verdict(hold, "--head", str(kept))["ok"]
    for text in ("", "[]", "{}", '{"n": 0}'):
        kept.write_text(text)
        assert hold("journal", "verify", "--head", str(kept)).code == 2
    assert hold("journal", "verify", "--head", str(tmp_path / "none")).code == 2


def test_a_flood_of_refusals_is_a_few_entries_with_a_count(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    before = len(journal(hold))
    with acting_as(hold, "bot") as bot:
        for _ in range(300):
            with pytest.raises(HoldfastError):
                bot.call("down")
        for n in range(300):
            with pytest.raises(HoldfastError):
                bot.call("operator_add", name=f"x{n}", id=f"op_x{n}", kind="agent", key="00")
    assert len(journal(hold)) - before < 50
    assert hold("down").code == 0
    assert sum(e.get("repeated") or 0 for e in refusals(hold)) + len(refusals(hold)) >= 600


def test_a_backup_holds_keys_ledger_and_head(hold: HomeForTests, tmp_path: Path) -> None:
    hold.run("sleep", "600", name="web")
    bot = enrol(hold, "bot")
    hold("journal", "head")
    assert hold("backup", str(tmp_path / "kept.tar.gz")).code == 0
    other = HomeForTests(tmp_path / "other")
    try:
        assert other("restore", str(tmp_path / "kept.tar.gz")).code == 0
        assert verdict(other)["ok"]
        assert other("operator", "whoami", "--json", HOLDFAST_OPERATOR="bot").json["id"] == bot["id"]
        assert journal(other, "start")[0]["session_name"] == "web"
        assert (other.path / "keys" / f"{bot['id']}.key").stat().st_mode & 0o777 == 0o600
    finally:
        other.close()
