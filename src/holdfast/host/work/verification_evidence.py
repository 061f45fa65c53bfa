"""Results of a verification that an agent reports: believed where a session of this host really ran it.

A person may say of their own task what they like. An agent is asked for evidence: the session that ran the commands of
the contract, in the project's root, since the attempt began, and what its own record says of each.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import Any

from ...model.errors import HoldfastError
from ...model.work import verification_record
from ...system import programs
from ...system.owner_trust import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..sessions.registry import Registry
    from ..sessions.session import Session

Json = dict[str, Any]
_STDERR = 2  # the stream of the record


def check(registry: Registry, results: object, shown: Json) -> None:
    """Raise unless these are the results of a verification of this task; `shown` is the task whole. Reads a log."""
    if not isinstance(results, list) or not all(isinstance(r, dict) for r in results):
        return  # refused where results are checked
    ids = {str(r.get("session")) for r in results}
    session = registry.sessions.get(ids.pop()) if len(ids) == 1 else None
    wrong = "they name no session of this host" if session is None else _wrong(session, results, shown)
    if wrong is not None:
        raise HoldfastError(
            "failed",
            f"these results of task {shown['task_id']} are not believed: {wrong}",
            f"hold task done {shown['task_id']} runs the verification",
        )


def _wrong(session: Session, results: list[Json], shown: Json) -> str | None:
    m = session.manifest
    ran = verification_record.commands([str(word) for word in m["command"]])
    if ran is None or not _ours(str(m["command"][0]), str(m["command"][2])) or m["generation"] != 1:
        return "that session ran no verification"
    if os.path.realpath(m["cwd"]) != os.path.realpath(shown["root"]):
        return "it ran elsewhere"
    attempt = shown["attempts"][-1] if shown["attempts"] else None
    if attempt and attempt["ended_at"] is None and m["created_at"] < _seconds(attempt["begun_at"]):
        return "it ran before the attempt began"
    if session.live and session.exit is None:
        return "it has not ended"
    start, end = session.reader.bounds()
    pieces = session.reader.pieces(max(start, end - verification_record.READ_BYTES), end)
    said = b"".join(piece.data for piece in pieces if piece.data is not None and piece.stream == _STDERR)
    return None if verification_record.agree(results, ran, said) else "its record says otherwise"


def _ours(python: str, program: str) -> bool:
    """The program is ours, whichever installation it was started from, and an interpreter like ours runs it."""
    try:
        with open(open_regular(program), "rb") as theirs, open(programs.VERIFIER, "rb") as own:
            mine = own.read()
            same = theirs.read(len(mine) + 1) == mine
    except OSError:
        return False
    return same and os.path.basename(os.path.realpath(python)) == os.path.basename(os.path.realpath(sys.executable))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
