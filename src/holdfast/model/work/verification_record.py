"""Reads the record of a verification's results, which verifier.py writes. Pure."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
READ_BYTES = 4 << 20  # of the log's end, where the record is: 64 commands with 4 KiB each, escaped, fit


def told(said: bytes) -> dict[int, Json]:
    """The result of each command by its number; without commands whose end is unknown."""
    found: dict[int, Json] = {}
    for line in said.splitlines():
        try:
            about = json.loads(line)
        except ValueError:
            continue  # the beginning is missing, or it was killed while writing
        if isinstance(about, dict) and isinstance(about.get("results"), list):
            found |= dict(enumerate(about["results"]))
        elif isinstance(about, dict) and "result" in about:
            found[about["n"]] = about["result"]
    return found


def commands(words: list[str]) -> list[Any] | None:
    """The commands that a verification's session was started to run; None if it is not one."""
    if len(words) != 4 or words[1] != "-I":
        return None
    try:
        return [check["command"] for check in json.loads(words[3])]
    except (ValueError, TypeError, KeyError):
        return None


def agree(results: list[Json], ran: list[Any], said: bytes) -> bool:
    """Whether results match the session's own record for exactly these commands."""
    found = told(said)
    kept = [(found.get(n, {}).get("state", "unknown"), found.get(n, {}).get("exit_code")) for n in range(len(ran))]
    return [r.get("command") for r in results] == ran and [
        (r.get("state"), r.get("exit_code")) for r in results
    ] == kept
