"""Policies and backends: how a project's tasks are tried. Versioned data, checked here. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ..errors import invalid
from ..limits import (
    ATTEMPTS_MAX,
    CHECK_TIMEOUT_MAX_S,
    LIST_MAX,
    POLICY_BYTES_MAX,
    RUN_LEASE_MAX_S,
    RUN_LEASE_S,
    STUCK_AFTER,
    TASK_TIMEOUT_S,
)
from .task_contract import _check, _name_faults, _time_faults, bad, command_faults
from .task_states import CONVERGENCES, FAILURE_TYPES, check_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Json = dict[str, Any]

BUILTIN = ("claude", "codex", "shell")  # backends that need no entry
_KEYS = frozenset({"retry", "routing", "backends", "verification", "timeout_s", "lease_s", "overlap"})
OVERLAPS = ("wait", "allow")  # what becomes of a task whose files another attempt may be changing
_COUNTS = {"attempts_max": ATTEMPTS_MAX, "stuck_after": STUCK_AFTER, "escalate_after": 1}
_COUNT_MAX = 1000  # attempts at one task: more is a loop
_TEXT_MAX = 4000  # characters of a classification's detail or focus: a person reads them


def default() -> Json:
    """The policy of a project without one: version 0."""
    return {
        "retry": {**_COUNTS, "delay_s": 0.0},
        "routing": [],
        "backends": [],
        "verification": {"profiles": {}},
        "timeout_s": TASK_TIMEOUT_S,
        "lease_s": RUN_LEASE_S,
        "overlap": OVERLAPS[0],
    }


def check(given: object) -> Json:
    """Check a policy and fill in defaults; reports all errors in one line."""
    if not isinstance(given, dict):
        raise invalid("a policy must be a table of rules", "see docs/tasks.md for an example")
    if len(repr(given)) > POLICY_BYTES_MAX:
        raise invalid(f"a policy has at most {POLICY_BYTES_MAX:,} bytes", "remove some rules")
    made, faults = default(), [f"unknown: {str(k)[:40]!r}" for k in sorted(set(map(str, given)) - _KEYS)]
    retry, more = _retry(given.get("retry", {}))
    made["retry"], faults = retry, faults + more
    made["routing"], more = _routing(given.get("routing", []))
    faults += more
    made["backends"], more = _names("backends", given.get("backends", []))
    faults += more
    made["verification"], more = _profiles(given.get("verification", {}))
    faults += more
    for name in ("timeout_s", "lease_s"):
        if given.get(name) is not None:
            faults += _time_faults(name, given[name])
            made[name] = given[name]
    if given.get("overlap") is not None:
        made["overlap"] = given["overlap"]
        faults += [] if given["overlap"] in OVERLAPS else [f"overlap is one of {', '.join(OVERLAPS)}"]
    if not faults and made["lease_s"] > RUN_LEASE_MAX_S:
        faults.append(f"lease_s is at most {RUN_LEASE_MAX_S:g}")
    if faults:
        raise bad("the policy", faults)
    return made


def _retry(found: object) -> tuple[Json, list[str]]:
    made: Json = {**_COUNTS, "delay_s": 0.0}
    if not isinstance(found, dict):
        return made, ["retry must be a table"]
    faults = [f"retry has an unknown key: {str(k)[:40]!r}" for k in sorted(set(map(str, found)) - made.keys())]
    for name, value in found.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        if name in _COUNTS and not (whole and 1 <= value <= _COUNT_MAX):
            faults.append(f"retry.{name} is a whole number from 1 to {_COUNT_MAX}")
        elif name == "delay_s" and not (
            isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= CHECK_TIMEOUT_MAX_S
        ):
            faults.append(f"retry.delay_s is a number of seconds up to {CHECK_TIMEOUT_MAX_S:g}")
    return {**made, **{k: v for k, v in found.items() if k in made}}, faults


def _names(name: str, found: object) -> tuple[list[str], list[str]]:
    if not isinstance(found, list) or len(found) > LIST_MAX:
        return [], [f"{name} is a list of backends' names"]
    return found, [fault for one in found for fault in _name_faults("backend", one)]


def _routing(found: object) -> tuple[list[Json], list[str]]:
    if not isinstance(found, list) or len(found) > LIST_MAX:
        return [], [f"routing is a list of at most {LIST_MAX} rules"]
    made: list[Json] = []
    faults: list[str] = []
    for n, rule in enumerate(found, 1):
        match = rule.get("match", {}) if isinstance(rule, dict) else None
        known = isinstance(match, dict) and set(match) <= {"phase", "id"} and set(rule) <= {"match", "backends"}
        if not known or not all(isinstance(v, str) for v in match.values()):  # type: ignore[union-attr]
            faults.append(f"routing[{n}] is {{match: {{phase, id}}, backends: […]}}")
            continue
        names, more = _names(f"routing[{n}].backends", rule.get("backends", []))
        faults += more
        made.append({"match": match, "backends": names})
    return made, faults


def _profiles(found: object) -> tuple[Json, list[str]]:
    empty: Json = {"profiles": {}}
    if not isinstance(found, dict) or set(found) - {"profiles"} or not isinstance(found.get("profiles", {}), dict):
        return empty, ["verification is {profiles: {NAME: [commands]}}"]
    made: Json = {}
    faults: list[str] = []
    for name, commands in found.get("profiles", {}).items():
        faults += _name_faults("verification profile", name)
        if not isinstance(commands, list) or not commands or len(commands) > LIST_MAX:
            faults.append(f"profile {str(name)[:40]!r} is a list of commands")
            continue
        checks = [_check(one, f"profile {str(name)[:40]}[{n}]") for n, one in enumerate(commands, 1)]
        faults += [fault for _, more in checks for fault in more]
        faults += [f"profile {str(name)[:40]!r} names a profile" for one, _ in checks if "profile" in one]
        made[name] = [one for one, _ in checks]
    return {"profiles": made}, faults


# -- backends ----------------------------------------------------------------------------------------------------------


def check_backend(name: object, template: object, env: object, timeout_s: object, terminal: object = False) -> Json:
    """Check a backend: the command line that does a task, with {contract} {brief} {task} in its arguments."""
    check_id(name, "a backend's name")
    faults = command_faults("template", template) if isinstance(template, list) else ["template is a list of words"]
    if env is not None and not (
        isinstance(env, dict)
        and all(isinstance(k, str) and k and "=" not in k for k in env)
        and all(isinstance(v, str) and "\0" not in v for v in env.values())
    ):
        faults.append("env is a table of names and text")
    faults += _time_faults("timeout_s", timeout_s)
    if not isinstance(terminal, bool):
        faults.append("terminal is true or false")
    if faults:
        raise bad(f"backend {name}", faults)
    return {"template": template, "env": env or {}, "timeout_s": timeout_s, "terminal": terminal}


def backends(contract: Mapping[str, Any], policy: Mapping[str, Any], phase: str, id: str) -> list[str]:
    """The backends of a task, the preferred one first: the contract's, then routing, then the policy's order."""
    order = [contract["backend"]] if contract.get("backend") else []
    for rule in policy["routing"]:
        match = rule["match"]
        if fnmatchcase(phase, match.get("phase", "*")) and fnmatchcase(id, match.get("id", "*")):
            order += rule["backends"]
            break
    return list(dict.fromkeys([*order, *policy["backends"]]))


# -- what became of attempts -------------------------------------------------------------------------------------------


def check_classification(found: object, *, detail: str = "", earlier: int = 0) -> Json:
    """A complete classification; without one, only `detail` is known."""
    if found is not None and not isinstance(found, dict):
        raise invalid("a classification must be a table", 'as {"failure_type": "test_failure", "failure_detail": "…"}')
    given = {k: v for k, v in (found or {}).items() if v is not None}
    for name, words in (("failure_type", FAILURE_TYPES), ("convergence", CONVERGENCES)):
        if given.get(name, words[0]) not in words:
            raise invalid(f"no such {name}: {str(given[name])[:40]!r}", "one of " + ", ".join(words))
    for name in ("failure_detail", "suggested_focus"):
        if len(str(given.get(name, ""))) > _TEXT_MAX:
            raise invalid(f"{name} has at most {_TEXT_MAX:,} characters", "store the rest as an artifact")
    return {
        "failure_type": "unknown",
        "failure_detail": detail,
        "suggested_focus": "",
        "convergence": "steady" if earlier else "first",
        "signature": None,
        "failing": [],
        **given,
    }


def spent(policy: Mapping[str, Any], used: int, classifications: Sequence[Mapping[str, Any] | None]) -> str | None:
    """Why a failed task is not tried again, or None. `classifications`: of its failures, the latest last."""
    retry = policy["retry"]
    if classifications and (classifications[-1] or {}).get("convergence") == "stuck":
        return "it is stuck: attempts fail in the same way"
    last = [(c or {}).get("signature") for c in classifications[-retry["stuck_after"] :]]
    if len(last) == retry["stuck_after"] > 1 and last[0] and len(set(last)) == 1:
        return f"it is stuck: {len(last)} attempts failed in the same way"
    if used >= retry["attempts_max"]:
        return f"{used} of {retry['attempts_max']} attempts are used up"
    return None
