"""What a durable run cannot take: one line with what to do, a documented code, and nothing is lost. On both stores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from holdfast.model.limits import REQUEST_BYTES_MAX
from tests.support.home import HomeForTests
from tests.support.postgres import Server
from tests.support.small import small_home


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, hold: HomeForTests, monkeypatch: pytest.MonkeyPatch) -> HomeForTests:
    """A home whose work is in the one or the other."""
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        hold.env["HOLDFAST_STORE"] = server.url()
        monkeypatch.setenv("HOLDFAST_STORE", hold.env["HOLDFAST_STORE"])
    return hold


@pytest.fixture
def host(stored: HomeForTests) -> Iterator[Host]:
    with Host(str(stored.path)) as host:
        yield host


def refused(hold: HomeForTests, *words: str | bytes, code: int, says: str) -> None:
    done = hold(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1), done.err
    assert says in done.err
    assert "; " in done.err  # what is wrong, and what to do


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_steps_and_settlements_that_cannot_be(stored: HomeForTests) -> None:
    run = stored("work", "begin").out.strip()
    assert stored("step", "begin", run, "a", "--args", '["a"]').code == 0
    assert stored("step", "end", run, "a", "--result", "1").code == 0
    refused(stored, "step", "end", run, "a", "--result", "2", code=5, says="has ended already")
    refused(stored, "step", "begin", run, "a", "--args", '["b"]', code=5, says="other arguments")
    refused(stored, "step", "begin", run, b"k\xff", code=2, says="not valid UTF-8")
    refused(stored, "step", "begin", run, "n", "--args", "NaN", code=2, says="which has no NaN")
    refused(stored, "step", "begin", run, "d", "--args", "[" * 5000 + "]" * 5000, code=2, says="nested too deeply")
    assert stored("step", "begin", run, "u", "--effect", "unsafe").code == 0
    assert stored("step", "fail", run, "u", "--unknown", "--error", "the line was lost").code == 0
    for nothing in ("", "  ", "\n\t"):
        refused(stored, "step", "settle", run, "u", "--done", "--evidence", nothing, code=2, says="needs evidence")
    states = {s["key"]: s["state"] for s in stored("step", "ls", run, "--json").json}
    assert states == {"a": "done", "u": "in_doubt"}
    assert stored("step", "settle", run, "u", "--done", "--evidence", "in the list").code == 0


def test_values_that_no_json_has_are_refused_in_one_line_and_the_run_goes_on(host: Host) -> None:
    with host.work.run(params={}) as run:
        for say in (
            lambda: run.log(nested(3000)),
            lambda: run.checkpoint(context={"deep": nested(3000)}),
            lambda: run.step("deep", len, nested(3000)),
            lambda: host.work.run(params={"deep": nested(3000)}),
            lambda: run.log("\udcff"),
        ):
            with pytest.raises(HoldfastError) as seen:
                say()
            assert seen.value.code == "invalid"
            assert seen.value.hint
        assert run.checkpoint(goal="on")["seq"] == 1
        assert run.step("after", len, [1]) == 1


def test_a_message_that_is_far_too_large_is_to_be_kept_as_an_artifact(host: Host) -> None:
    with host.work.run(params={}) as run:
        with pytest.raises(HoldfastError, match="bytes") as seen:
            run.log("x" * (REQUEST_BYTES_MAX + 1), kind="message")
        assert (seen.value.code, seen.value.hint) == ("invalid", "keep it as an artifact and pass its name")
        assert run.note("goes on") > 0


def test_a_number_that_json_has_not_is_refused_before_it_is_sent(hold: HomeForTests) -> None:
    with Host(str(hold.path)) as host, host.work.run(params={}) as run:
        with pytest.raises(HoldfastError, match="cannot be written as JSON") as seen:
            run.log({"rate": float("nan")})
        assert seen.value.code == "invalid"


def test_a_port_that_is_no_number_is_told_in_our_words(hold: HomeForTests) -> None:
    done = hold("work", "ls", "--json", HOLDFAST_STORE="postgresql://me:hidden@127.0.0.1:port/work")
    error = done.json["error"]
    assert (done.code, error["code"]) == (1, "store_unreachable")
    assert error["message"].endswith("its port is no number")
    assert "hidden" not in done.out


def test_a_full_disk_is_told_by_its_code_also_where_a_command_writes_by_itself(tmp_path: Path) -> None:
    with small_home(tmp_path, 16) as hold:
        run = hold("work", "begin").out.strip()
        assert run.startswith("run_")
        for n in range(20):  # what the host frees meanwhile is filled as well
            _fill(tmp_path / "small" / "ballast")
            done = hold(
                "operator", "add", f"bot{n}", "--kind", "agent", "--json"
            )  # its key is a file of the command's own
            if done.code:
                break
        assert (done.code, json.loads(done.out)["error"]["code"], done.err) == (1, "store_full", "")
        (tmp_path / "small" / "ballast").unlink()
        assert hold("operator", "add", "bot", "--kind", "agent").code == 0
        assert hold("work", "status", run).code == 0


def _fill(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while os.write(fd, bytes(4096)):
            pass
    except OSError:
        pass
    finally:
        os.close(fd)
