"""The words of tasks: transitions, phases, contracts, policies; and the examples of the documentation hold."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work import policy as policies
from holdfast.model.work import task_contract, task_states

DOCS = Path(__file__).parents[4] / "docs" / "tasks.md"


def refused(call: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(HoldfastError) as seen:
        call(*args, **options)
    line = seen.value.line()
    assert "\n" not in line
    return line


def test_every_transition_leads_to_a_status_and_what_is_not_listed_is_refused() -> None:
    for event, table in task_states.TRANSITIONS.items():
        assert set(table) <= set(task_states.STATUSES)
        assert set(table.values()) <= set(task_states.STATUSES)
        for status in task_states.STATUSES:
            if status in table:
                assert task_states.after(event, status, "1") == table[status]
            else:
                assert f"task 1 is {status}" in refused(task_states.after, event, status, "1")


def test_done_is_final_and_everything_else_can_be_left() -> None:
    assert not [e for e, table in task_states.TRANSITIONS.items() if "done" in table]
    for status in set(task_states.STATUSES) - {"done"}:
        assert [e for e, table in task_states.TRANSITIONS.items() if table.get(status, status) != status]


@pytest.mark.parametrize(
    ("used", "unfinished", "active"),
    [
        ("", "", "a"),
        ("a", "a", "a"),
        ("a", "", "b"),
        ("abc", "bc", "b"),
        ("abc", "c", "c"),
        ("abc", "", None),
        ("b", "b", "b"),
        ("bc", "c", "c"),
        ("ac", "", None),
        ("ab", "", "c"),
    ],
)
def test_the_active_phase_is_the_first_with_something_left(used: str, unfinished: str, active: str | None) -> None:
    assert task_states.active_phase(["a", "b", "c"], used, unfinished) == active


def test_a_circle_is_told_as_a_path() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": [], "d": []}
    assert task_states.find_cycle("a", ["b"], {**edges, "d": ["a"]}) == ["a", "b", "d", "a"]
    assert task_states.find_cycle("a", ["a"], {}) == ["a", "a"]
    assert task_states.find_cycle("e", ["a", "c"], edges) is None
    assert task_states.find_cycle("e", ["a"], {"a": ["b"], "b": ["a"]}) is None  # a circle elsewhere is not this one's


def test_ids_are_plain_words() -> None:
    for good in ("1", "1.5", "login-form", "A_b+2"):
        assert task_states.check_id(good) == good
    for bad in ("", "a/b", "a b", "-x", ".x", "ä", "x" * 65, "a\n", None, 5):
        refused(task_states.check_id, bad)
    assert task_states.split("demo/1.5") == ("demo", "1.5")
    assert task_states.split("1.5") == (None, "1.5")
    for bad in ("a/b/c", "/x", "x/"):
        refused(task_states.split, bad)


def test_all_faults_of_a_contract_are_told_at_once() -> None:
    bad = {
        "goal": "",
        "scope": ["ok", "../up"],
        "constraints": "x",
        "colour": 1,
        "timeout_s": True,
        "verification": ["", {"command": ["x", 1]}, {"command": "y", "timeout_s": 0, "often": 1}],
    }
    line = refused(task_contract.check, bad, title="t", whole=True)
    for fault in (
        "goal is",
        "'../up'",
        "constraints must be a list",
        "'colour'",
        "timeout_s",
        "verification[1]",
        "verification[2]",
    ):
        assert fault in line
    assert "more" in line  # a line has an end


def test_a_new_version_keeps_what_is_not_given() -> None:
    first, _ = task_contract.check({"goal": "g", "constraints": ["c"], "verification": ["x"]}, title="t")
    second, needs = task_contract.check({"acceptance": ["a"], "depends_on": ["1"]}, before=first)
    assert second == {**first, "acceptance": ["a"]}
    assert needs == ["1"]
    assert task_contract.check({}, title="t")[0]["goal"] == "t"


def test_a_program_that_is_not_there_makes_verification_impossible() -> None:
    def look(path: str) -> str | None:
        return None if path in ("/bin/true", "/root/there") else "is not there"

    def faults(*commands: Any, artifacts: tuple[str, ...] = ()) -> list[str]:
        body, _ = task_contract.check({"verification": list(commands), "artifacts": list(artifacts)}, title="t")
        return task_contract.impossible(body, "/root", look)

    assert faults("/bin/true x", ["/bin/true"], "./there", "pytest -q", "A=1 ./there", "cd x && ./y", "$HOME/x") == []
    assert len(faults("/no/such", ["./no"], "A=1 ./no arg", "'./n o'")) == 4
    assert faults("./made", "sub/made", artifacts=("made", "./sub/made")) == []
    assert faults("echo 'unbalanced") == []  # a shell will say so


def test_the_documented_examples_are_valid() -> None:
    found = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(found) == 2
    contract = task_contract.parse(found[0], "the example")
    body, needs = task_contract.check(contract, title="Log in by mail", whole=True)
    assert (needs, len(body["verification"]), set(body)) == (["1.1"], 4, set(task_contract.KEYS))
    policy = policies.check(tomllib.loads(found[1]))
    assert [c["command"] for c in task_contract.expand(body, policy)][-2:] == ["pytest -q tests/slow", "make e2e"]
    assert policies.backends(body, policy, "ship", "2.7") == ["claude", "codex"]
    assert policies.backends({"backend": None}, policy, "ship", "2.7") == ["codex", "claude"]
    assert policies.backends({"backend": None}, policy, "build", "2.7") == ["claude", "codex"]


def test_a_policy_is_filled_up_and_its_faults_are_told_at_once() -> None:
    assert policies.check({}) == policies.default()
    assert policies.check({"retry": {"attempts_max": 9}})["retry"]["stuck_after"] == 3
    line = refused(policies.check, {"retry": {"attempts_max": 0, "odd": 1}, "backends": "x", "lease_s": -1, "new": 2})
    for fault in ("attempts_max", "'odd'", "backends is a list", "lease_s", "'new'"):
        assert fault in line


@pytest.mark.parametrize(
    ("used", "signatures", "over"),
    [
        (1, ["a"], False),
        (2, ["a", "a"], False),
        (2, ["a", "b"], False),
        (3, ["a", "b", "a"], True),
        (9, [], True),
        (2, [None, None], False),
    ],
)
def test_attempts_are_used_up_or_go_in_circles(used: int, signatures: list[str | None], over: bool) -> None:
    found = policies.spent(policies.default(), used, [{"signature": s} for s in signatures])
    assert (found is not None) == over


def test_the_same_signature_three_times_is_stuck_although_attempts_are_left() -> None:
    policy = policies.check({"retry": {"attempts_max": 10}})
    same: list[dict[str, Any]] = [{"signature": "x"}] * 3
    assert "stuck" in (policies.spent(policy, 3, same) or "")
    assert policies.spent(policy, 3, [{"signature": "y"}, *same[:2]]) is None
    assert "stuck" in (policies.spent(policy, 1, [{"convergence": "stuck"}]) or "")
