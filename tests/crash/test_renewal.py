"""After an upgrade: the daemon that runs the old code is told of and replaced, and its sessions go on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.support.home import HomeForTests, alive

_TODAY = 'return {"removed": removed}'
_OTHER = 'return {"gone": removed}'  # an answer to `prune` that no client of today can read
_ROW = 'removed.append({"id": session.id, "name": session.name})'
_OTHER_ROW = 'removed.append({"id": session.id})'


@pytest.fixture
def site(hold: HomeForTests, tmp_path: Path) -> Iterator[Path]:
    """An installation of its own, whose daemon answers `prune` in another way; `hold` uses it with PYTHONPATH."""
    made = tmp_path / "site"
    shutil.copytree(Path(holdfast.__file__).parent, made / "holdfast")
    replaced(made, _TODAY, _OTHER)
    yield made
    hold.close()


def replaced(site: Path, old: str, new: str) -> None:
    """As an upgrade does: a new file under the old name."""
    path = site / "holdfast" / "host" / "sessions" / "ops.py"
    text = path.read_text()
    assert old in text
    (path.parent / "new").write_text(text.replace(old, new))
    os.replace(path.parent / "new", path)


def test_the_first_command_after_an_upgrade_replaces_the_daemon(hold: HomeForTests, site: Path) -> None:
    there = str(site)
    assert hold("up", PYTHONPATH=there).code == 0
    old = hold.daemon_pid()
    kept = hold.host.call("run", command=["cat"], name="kept", cwd="/", env=dict(os.environ))
    assert hold("ls", PYTHONPATH=there).err == ""  # nothing has changed
    replaced(site, _OTHER, _TODAY)
    assert "build\tthe daemon is older" in hold("doctor", PYTHONPATH=there).out
    assert hold.daemon_pid() == old  # a doctor changes nothing
    done = hold("prune", PYTHONPATH=there)
    assert (done.code, done.err.count("the daemon was older than this command")) == (0, 1), done.err
    hold.host.close()
    assert hold.daemon_pid() != old
    assert not alive(old)
    assert {s.name: s.pid for s in hold.host.sessions()}["kept"] == kept["pid"]
    assert hold("ls", PYTHONPATH=there).err == ""
    assert "ok\tbuild" in hold("doctor", PYTHONPATH=there).out


def test_another_installations_daemon_is_left_alone_and_its_answers_are_one_line(
    hold: HomeForTests, site: Path
) -> None:
    assert hold("up", PYTHONPATH=str(site)).code == 0
    old = hold.daemon_pid()
    done = hold("prune")
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert "the host's answer cannot be read: it has no 'removed'" in done.err
    assert hold("down").code == 0
    replaced(site, _OTHER, _TODAY)
    replaced(site, _ROW, _OTHER_ROW)
    assert hold("up", PYTHONPATH=str(site)).code == 0
    old = hold.daemon_pid()
    assert hold.run("true").wait(exit=True, timeout=30).event != "timeout"
    done = hold("prune")
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert "the daemon is of another build" in done.err
    assert hold.daemon_pid() == old
    done = hold("up")
    assert (done.code, done.err.count("another installation")) == (0, 1)
    hold.host.close()
    assert hold.daemon_pid() != old
    assert hold("prune").code == 0


def test_an_agent_that_may_not_replace_the_daemon_says_so_and_goes_on(hold: HomeForTests, site: Path) -> None:
    there = str(site)
    assert hold("up", PYTHONPATH=there).code == 0
    assert hold("operator", "add", "bot", "--kind", "agent", PYTHONPATH=there).code == 0
    old = hold.daemon_pid()
    replaced(site, _OTHER, _TODAY)
    done = hold("ls", HOLDFAST_OPERATOR="bot", PYTHONPATH=there)
    assert done.code == 0
    assert "a person does that with hold up" in done.err
    assert hold.daemon_pid() == old
