"""What a session remembers of its commands: one file that survives cuts, is bounded, and reads what older ones left."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.host.exec.results_file import Results
from holdfast.model import limits


def begun(name: str) -> dict[str, object]:
    return {"exec_id": name, "token": "0" * 32, "state": "running", "exit_code": None, "from": 0}


def over(name: str, code: int = 0) -> dict[str, object]:
    return {"exec_id": name, "state": "exited", "exit_code": code}


def test_what_is_said_last_of_a_command_is_what_is_known(tmp_path: Path) -> None:
    results = Results(str(tmp_path / "exec"))
    results.add(begun("exe_a"))
    assert Results(str(tmp_path / "exec")).all()["exe_a"]["state"] == "running"
    results.add(over("exe_a", 3))
    known = Results(str(tmp_path / "exec")).all()["exe_a"]
    assert (known["state"], known["exit_code"], known["token"]) == ("exited", 3, "0" * 32)


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    Results(str(tmp_path / "exec")).add(begun("exe_a"))
    assert (tmp_path / "exec" / "results.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_spoils_only_itself(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    results.add(begun("exe_a"))
    with open(tmp_path / "results.jsonl", "ab") as f:
        f.write(b'\n{"exec_id":"exe_b","tok')
    results.add(over("exe_a"))
    assert {name: r["state"] for name, r in results.all().items()} == {"exe_a": "exited"}


def test_the_oldest_make_room_and_the_running_stay(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    results.add(begun("exe_first"))
    for n in range(limits.EXECS_KEPT * 3):
        results.add(begun(f"exe_{n}"))
        results.add(over(f"exe_{n}"))
    known = results.all()
    assert "exe_first" in known
    assert limits.EXECS_KEPT <= len(known) <= limits.EXECS_KEPT * 2 + 2
    assert f"exe_{limits.EXECS_KEPT * 3 - 1}" in known
    assert "exe_0" not in known


def test_commands_of_an_older_version_are_found(tmp_path: Path) -> None:
    (tmp_path / "exe_a.json").write_text(json.dumps(begun("exe_a")))
    (tmp_path / "exe_a.done.json").write_text(json.dumps({**begun("exe_a"), **over("exe_a", 5)}))
    (tmp_path / "exe_b.json").write_text(json.dumps(begun("exe_b")))
    known = Results(str(tmp_path)).all()
    assert (known["exe_a"]["exit_code"], known["exe_b"]["state"]) == (5, "running")


def test_whether_a_command_is_known_is_answered_without_reading_the_rest(tmp_path: Path) -> None:
    """Each command asks whether its id is new: that must not cost more with each that ran before."""
    results = Results(str(tmp_path))
    results.add(begun("exe_a"))
    assert results.get("exe_new") is None
    results.add(begun("exe_b"))
    results.add(over("exe_b", 4))
    (tmp_path / "results.jsonl").rename(tmp_path / "aside")
    assert results.get("exe_c") is None
    (tmp_path / "aside").rename(tmp_path / "results.jsonl")
    known = results.get("exe_b")
    assert known is not None
    assert known["exit_code"] == 4
    for n in range(limits.EXECS_KEPT * 2):
        results.add(begun(f"exe_{n}"))
        results.add(over(f"exe_{n}"))
    assert results.get("exe_b") is None
    assert results.get("exe_a") is not None
