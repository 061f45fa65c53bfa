"""What became of a command, for a step that was begun and not ended: the record decides, and closes the question."""

from __future__ import annotations

from typing import Any

from ...model.errors import HoldfastError
from ...model.limits import EXECS_KEPT
from .results_file import Results, ended

Json = dict[str, Any]


def known(record: Json) -> str:
    """ended | running | never | unknown"""
    if not ended(record):
        return "running"
    if record.get("void"):
        return "never"
    return "unknown" if record["exit_code"] is None else "ended"


def call_off(results: Results, exec_id: str, generation: int, now: float, sure: bool) -> Json:
    """Nobody has heard of it: it was not typed, because the record comes before the typing. Whoever still means to
    start it is too late from here on, so that the answer stays true. Unless the record may have been dropped, or lost
    with the machine's power: `sure` is that the keeper has lived since before the command was meant to begin."""
    if not sure or sum(map(ended, results.all().values())) >= EXECS_KEPT:
        return {"known": "unknown", "exec_id": exec_id, "exit_code": None}
    results.add(
        {
            "exec_id": exec_id,
            "token": "",
            "state": "shell_ended",
            "exit_code": None,
            "from": 0,
            "start": 0,
            "end": 0,
            "cwd": None,
            "prompt": None,
            "duration_ms": 0,
            "started_at": now,
            "ended_at": now,
            "generation": generation,
            "void": True,
            "called_off": True,
            "source": "",
        }
    )
    return {"known": "never", "exec_id": exec_id, "exit_code": None}


def may_begin(record: Json) -> bool:
    """Whether a command that has a record may still begin: nothing of it was typed, and nobody was told "never"."""
    return bool(record.get("void")) and not record.get("called_off")


def refuse_called_off(results: Results, exec_id: str) -> None:
    if (results.get(exec_id) or {}).get("void"):
        raise HoldfastError(
            "conflict", f"{exec_id} was called off before it began: its step was settled as not done", "begin it again"
        )
