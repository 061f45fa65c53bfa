"""Keys in a real keyring: the `keyring` package with a backend that keeps its secrets in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HomeForTests
from tests.support.operators import acting_as, enrol, journal


@pytest.fixture
def ringed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HomeForTests]:
    pytest.importorskip("keyrings.alt")
    monkeypatch.setattr("keyring.core._keyring_backend", None)  # an earlier test of this process may have chosen one
    monkeypatch.setenv("HOLDFAST_KEYRING", "1")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.alt.file.PlaintextKeyring")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    home = HomeForTests(tmp_path / "home")
    yield home
    home.close()


def test_keys_in_a_real_keyring_sign_for_hosts_and_operators_across_restarts(
    ringed: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = ringed.run("bash", "--norc", name="sh")
    assert shell.wait(input=True, timeout=60).event != "timeout"
    enrol(ringed, "bot", verbs=["view", "exec", "type", "request_control"])
    with acting_as(ringed, "bot") as bot:
        assert bot.session("sh").exec("echo hello", timeout=60).output == "hello\n"
    names = sorted(p.name for p in (ringed.path / "keys").iterdir())
    assert len(names) == 3  # the host's, the first human's, the agent's
    assert all(name.endswith(".ring") for name in names)
    stored = (tmp_path / "data" / "python_keyring" / "keyring_pass.cfg").read_text()
    assert stored.count("hst_") + stored.count("op_") >= 1
    before = ringed("journal", "verify", "--json")
    assert before.json["ok"], before.out
    ringed.kill_daemon()
    monkeypatch.delenv("HOLDFAST_KEYRING")  # the next host finds its key where it is, not where new ones would go
    assert ringed("journal", "verify", "--json").json["ok"]
    with acting_as(ringed, "bot") as bot:
        assert bot.session("sh").exec("echo again", timeout=60).output == "again\n"
    assert sorted(p.name for p in (ringed.path / "keys").iterdir()) == names
    assert [e["name"] for e in journal(ringed, "exec")] == ["bot", "bot"]
