"""What a person laid down about the work, and an agent wants otherwise: refused, or shown to a person first.

What a task is for, and what proves that it is done, is the person's word. An agent adds tasks, edits what agents wrote,
and proposes the rest: with `ask`, or, where a rule of config.toml covers it (`verbs = ["contract"]`), by asking for a
yes to the very edit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...model.errors import HoldfastError
from ...model.work import policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.service import Work
    from ..inbox.approval_gate import Gate

Json = dict[str, Any]
_SHOWN = ("contract", "title", "after", "phase", "root")  # of an edit, besides its policy
_PLACE = ("project", "cwd")


class Edit(NamedTuple):
    """What an agent wants to change: whose word it is, and how to say it to a person."""

    what: str
    whose: str
    name: str  # what a rule's glob is compared with
    lines: list[str]


async def check(
    work: Work, call: str, args: Json, actors: Sequence[Json], gate: Gate, is_person: Callable[[str], bool]
) -> None:
    """Returns when the call may go on; `actors` are those behind it, none of them a person."""
    edit = await _edit(work, call, args, is_person)
    if edit is None:
        return
    key = f"contract:{args['request']}" if args.get("request") else None
    told = {"why": str(args["why"])[:500]} if args.get("why") else {}
    actor, *others = actors
    text = "\n".join(edit.lines).encode("utf-8", "backslashreplace")
    if await gate.approve("contract", actor, edit.name, text, detail=told, request=key, others=others) is None:
        raise HoldfastError(
            "not_allowed",
            f"{edit.what} is {edit.whose}'s word, and {actor['name']} ({actor['kind']}) is no person",
            'propose it: hold ask; or a person has each such edit shown: verbs = ["contract"] in [[approve]]',
        )


async def _edit(work: Work, call: str, args: Json, is_person: Callable[[str], bool]) -> Edit | None:
    """The edit, where it is about something that a person laid down."""
    place = {k: args[k] for k in _PLACE if args.get(k) is not None}
    if call == "task_contract":
        shown = await work.call("task_show", task=args.get("task"), **place)
        persons = [v["by"] for v in shown["contract_versions"] if is_person(str(v["by"]))]
        key = f"{shown['project']}/{shown['task_id']}"
        return Edit(f"the contract of task {key}", persons[-1], key, _lines(args, shown)) if persons else None
    if call == "policy_set":
        held = await work.call("policy_show", **place)
        persons = [by for by in held["authors"] if is_person(by)]
        wanted = policy.check(args.get("policy"))["verification"]
        if not persons or wanted == held["policy"]["verification"]:
            return None
        what = f"how {held['project']} is verified"
        line = f"{what}: {_said(held['policy']['verification'])} -> {_said(wanted)}"
        return Edit(what, persons[0], held["project"], [line])
    if args.get("root") is None:
        return None
    state = await work.call("project_show", **place)
    return Edit(f"the root of project {state['project_name']}", "a person", state["project_name"], _lines(args, state))


def _lines(args: Json, now: Json) -> list[str]:
    """Each field that is given, as it is and as it would be."""
    known = {**now, **(now.get("contract") or {}), "after": now.get("depends_on")}
    given = {k: args[k] for k in _SHOWN if args.get(k) is not None}
    contract = given.pop("contract", {})
    wanted = {**given, **(contract if isinstance(contract, dict) else {"contract": contract})}
    head = f"task {now['project']}/{now['task_id']}" if "task_id" in now else f"project {now['project_name']}"
    return [head, *(f"{name}: {_said(known.get(name))} -> {_said(value)}" for name, value in wanted.items())]


def _said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
