"""Commands in a session's shell: run one, ask how it stands."""

from __future__ import annotations

from .operation import Act, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Json, Seconds, Whole, Word, Words


class Exec(Act["Json"], op="exec", right="exec", on="session", durable="journal", isolated=True, approve="exec"):
    """Run a command in the session's shell; answered when it ends, blocks on input, or the time is up."""

    session: Word
    words: Words
    exec_id: Word | None = None
    timeout: Seconds | None = None
    start_only: bool = False
    step: bool = False
    ancestor: Whole | None = None
    standing: bool = False


class ExecResult(Operation["Json"], op="exec_result", right="view", on="session", repeat="always", isolated=True):
    """How a command stands; with `wait`, once it ended or the time is up."""

    session: Word
    exec_id: Word
    wait: bool = False
    timeout: Seconds | None = None


class ExecOutcome(Operation["Json"], op="exec_outcome", right="exec", on="session", repeat="always", isolated=True):
    """For a step that was begun and not ended: `ended`, `running`, `never` (and from now on refused), `unknown`."""

    session: Word
    exec_id: Word
    since: Word = ""
