"""Whether a verification accepts a task: what was reported against what the contract wants. Pure."""

from __future__ import annotations

from typing import Any

from ...model.errors import HoldfastError, invalid
from ...model.work.task_states import CHECK_STATES

Json = dict[str, Any]


def check_results(results: object) -> list[Json]:
    """What a verification reported, as far as a decision rests on it."""
    if not isinstance(results, list) or not all(isinstance(r, dict) and "command" in r for r in results):
        raise invalid("results are a list of {command, exit_code, state, …}", "client/verification makes them")
    for result in results:
        words = result["command"] if isinstance(result["command"], list) else [result["command"]]
        if not all(isinstance(word, str) for word in words):
            raise invalid("a result's command is source, or a program and its arguments", "as the contract has it")
        if result.get("state") not in CHECK_STATES:
            raise invalid(f"a result's state is one of {', '.join(CHECK_STATES)}", f"not {result.get('state')!r}")
        if result["state"] == "passed" and result.get("exit_code") != 0:
            raise invalid("a command passed if its exit code was seen to be 0", f"not {result.get('exit_code')!r}")
    return results


def judged(version: int, results: list[Json], checks: list[Json]) -> Json:
    """The record of a verification: passed, if the contract's own commands ran, all of them, and each succeeded."""
    told = [r["command"] for r in results] == [c["command"] for c in checks]
    passed = told and all(r["state"] == "passed" for r in results)
    return {"contract_version": version, "passed": passed, "results": results}


def accept(id: str, version: int, record: Json | None) -> None:
    """Refuse what was not verified, or not as the contract in force wants it."""
    if record is None:
        raise HoldfastError("failed", f"task {id} was not verified", f"hold task done {id} runs its verification")
    if record["contract_version"] != version:
        raise HoldfastError(
            "failed",
            f"task {id} was verified by contract version {record['contract_version']}, not {version}",
            f"hold task done {id} verifies it again",
        )
    if not record["passed"]:
        bad = next((r for r in record["results"] if r["state"] != "passed"), None)
        what = "other commands ran than the contract has" if bad is None else failed_line(bad)
        raise HoldfastError("failed", f"task {id} is not done: {what}", look_at(bad, id))


def failed_line(result: Json) -> str:
    command = result["command"] if isinstance(result["command"], str) else " ".join(result["command"])
    odd = {"timeout": "took too long", "unknown": "ended unseen"}.get(result["state"])
    return f"{command[:200]!r} {odd or 'failed with exit code ' + str(result['exit_code'])}"


def look_at(result: Json | None, id: str) -> str:
    session = (result or {}).get("session")
    return f"hold logs {session}" if session else f"hold task show {id}"
