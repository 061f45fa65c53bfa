"""The store is the home's setting: the variables count when the home is made, and no request names another."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.home import HOLD, HomeForTests
from tests.support.postgres import Server
from tests.support.redis import Redis


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOLDFAST_STORE", "HOLDFAST_CACHE"):
        monkeypatch.delenv(name, raising=False)


def written(hold: HomeForTests) -> dict[str, object]:
    return tomllib.loads((hold.path / "config.toml").read_text())


def test_the_variable_is_the_setting_of_a_new_home_and_is_compared_from_then_on(
    hold: HomeForTests, tmp_path: Path
) -> None:
    file, other = tmp_path / "kept.db", tmp_path / "other.db"
    url = f"sqlite:///{file}"
    assert hold("ls", HOLDFAST_STORE=url).code == 0  # whichever command makes it
    assert written(hold) == {"store": {"url": url}}
    assert hold.host.work.run(task="t").id
    assert file.exists()
    assert not (hold.path / "work.db").exists()
    assert [r["task"] for r in hold("work", "ls", "--json", HOLDFAST_STORE=url).json] == ["t"]
    assert [r["task"] for r in hold("work", "ls", "--json").json] == ["t"]
    wrong = hold("work", "ls", "--json", HOLDFAST_STORE=f"sqlite:///{other}")
    assert (wrong.code, wrong.json["error"]["code"]) == (5, "store_mismatch")
    assert str(other) in wrong.json["error"]["message"]
    assert not other.exists()
    assert hold("status", "--json").json["host"]["store"] == url
    hold.kill_daemon()
    assert [r["task"] for r in hold("work", "ls", "--json").json] == ["t"]
    late = hold("work", "ls", "--json", HOLDFAST_CACHE="redis://127.0.0.1:1/0")
    assert late.json["error"]["code"] == "store_mismatch"


def test_a_home_that_was_there_is_not_changed_by_a_variable(hold: HomeForTests, tmp_path: Path) -> None:
    assert hold("work", "ls").code == 0
    hold.kill_daemon()
    wrong = hold("work", "ls", "--json", HOLDFAST_STORE=f"sqlite:///{tmp_path}/new.db")
    assert (wrong.code, wrong.json["error"]["code"]) == (5, "store_mismatch")
    assert not (hold.path / "config.toml").exists()
    assert not (tmp_path / "new.db").exists()


def test_a_setting_that_was_written_before_the_home_was_made_stays(hold: HomeForTests, tmp_path: Path) -> None:
    """By hand, or by a host that was killed in the middle of making the home."""
    first, second = f"sqlite:///{tmp_path}/first.db", f"sqlite:///{tmp_path}/second.db"
    (hold.path / "config.toml").write_text(f'# mine\n[store]\nurl = "{first}"\n')
    told = hold("work", "ls", "--json", HOLDFAST_STORE=second)
    assert told.json["error"]["code"] == "store_mismatch"
    assert hold("work", "ls", HOLDFAST_STORE=first).code == 0
    assert written(hold) == {"store": {"url": first}}
    assert not (tmp_path / "second.db").exists()


def test_a_variable_that_is_no_store_makes_no_home(hold: HomeForTests) -> None:
    told = hold("ls", "--json", HOLDFAST_STORE="mysql://me:hidden@x/y")
    assert (told.code, told.json["error"]["code"]) == (2, "invalid")
    assert "hidden" not in told.out
    assert not (hold.path / "host.json").exists()


def test_no_request_names_a_store(hold: HomeForTests, tmp_path: Path) -> None:
    for n, url in enumerate(
        (f"sqlite:///{tmp_path}/a.db", "sqlite:////etc/passwd", "postgresql://x@127.0.0.1:1/y", "")
    ):
        with pytest.raises(HoldfastError, match="contains unknown field `store`"):
            hold.host.call("run_ls", store=url)
        with pytest.raises(HoldfastError, match="contains unknown field `store`"):  # once the store is open, too
            hold.host.call("step_begin", run=f"run_{n}", key="k", store=url)
        hold.host.work.runs()
    assert list(tmp_path.glob("*.db")) == []


def test_only_a_person_outside_of_any_session_changes_it_and_not_while_a_run_is_held(
    hold: HomeForTests, tmp_path: Path
) -> None:
    url, before = f"sqlite:///{tmp_path}/new.db", hold.host.call("store")["store"]
    assert hold("operator", "add", "bot", "--kind", "agent").code == 0
    with Host(str(hold.path), operator="bot") as bot, pytest.raises(HoldfastError) as refused:
        bot.call("store_use", store=url)
    assert refused.value.code == "not_allowed"
    shell = hold.run()
    held = " ".join(HOLD)
    inside = shell.exec(f"{held} store use {url}; {held} store migrate postgresql://me@127.0.0.1:1/x", timeout=60)
    assert inside.output.count("for a person to say, outside of any session") == 2, inside.output
    run = hold.host.work.run(task="t")
    told = hold("store", "use", url, "--json")
    assert (told.code, told.json["error"]["code"]) == (5, "busy")
    run.step("goes on", lambda: 1)
    run.finish()
    for wrong, code in (
        (f"sqlite:///{hold.path}/host.db", 2),
        ("nonsense", 2),
        ("postgresql://u@127.0.0.1:1/d", 1),
        (f"sqlite:///{tmp_path}/no/such/folder.db", 1),
        ("redis://x", 2),
    ):
        told = hold("store", "use", wrong)
        assert (told.code, told.err.count("\n")) == (code, 1), told.err
    assert hold.host.call("store")["store"] == before
    assert hold("store", "use", url, "--why", "more room").code == 0
    assert hold.host.work.runs() == []
    assert "set the store to" in hold("timeline").out
    assert hold("store", "use", before).code == 0
    assert [r["task"] for r in hold.host.work.runs()] == ["t"]
    assert written(hold).get("store", {}) == {}


def test_a_password_is_kept_apart_and_never_shown(hold: HomeForTests, postgres: Server) -> None:
    url = postgres.url()
    assert hold("ls", HOLDFAST_STORE=url).code == 0
    assert "secret" not in (hold.path / "config.toml").read_text()
    kept = hold.path / "store.secret"
    assert "secret" in kept.read_text()
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    assert hold.host.work.run(task="by the host").id  # which has the password from there
    assert postgres.sql("SELECT COUNT(*) FROM run", url) == "1"
    with_it = hold("work", "ls", "--json", HOLDFAST_STORE=url)
    without = hold("work", "ls", "--json", HOLDFAST_STORE=url.replace(":secret@", "@"))
    assert len(with_it.json) == len(without.json) == 1
    shown = (
        hold("status", "--json").out
        + hold("status").out
        + hold("timeline", "--json").out
        + hold("doctor", "--json").out
    )
    assert "postgresql://" in shown
    assert ":secret" not in shown
    assert "secret" not in repr(hold.host.call("store"))


def test_a_setting_that_cannot_be_read_opens_no_store_in_its_place(hold: HomeForTests) -> None:
    (hold.path / "config.toml").write_text("[store]\nurl = 5\n")
    told = hold("work", "ls", "--json")
    assert (told.code, told.json["error"]["code"]) == (2, "invalid")
    assert hold("ls").code == 0
    assert not (hold.path / "work.db").exists()


def test_short_term_memory_goes_where_the_home_says(hold: HomeForTests) -> None:
    server = Redis()
    try:
        assert hold("ls", HOLDFAST_CACHE=server.url).code == 0
        assert hold("status", "--json").json["host"]["cache"] == server.url
        run = hold.host.work.run(task="t")
        hold.host.work.call("memory_append", run=run.id, epoch=run.epoch, message={"role": "user", "content": "m"})
        assert hold.host.work.call("memory_window", run=run.id)["messages"]
        assert server.say(f"EXISTS holdfast:{run.id}:window") == b":1\r\n"
        run.finish()
        assert hold("store", "use", "--cache", "off").code == 0
        assert hold("status", "--json").json["host"]["cache"] is None
    finally:
        server.close()
