"""The inbox: ask, look, follow, answer. Who may answer depends on the item."""

from __future__ import annotations

from .operation import Act, Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import AskKind, Base64, Dialog, Json, Seconds, Whole, Word


class AskPerson(Act["Json"], op="ask", repeat="ask", durable="journal", isolated=True):
    """Ask a person; with `held` answered when they have, or after so many seconds."""

    ask: Word | None = None
    text: str
    session: Word | None = None
    options: list[str] | None = None
    kind: AskKind = "question"
    held: Seconds | None = None
    dialog: Dialog | None = None


class Asked(Operation["Json"], op="asked", repeat="always", isolated=True):
    """One item, once it is no longer open or the time is up."""

    ask: Word
    timeout: Seconds | None = None


class Withdraw(Operation["Json"], op="withdraw", repeat="always", durable="ledger", frees=True):
    """Take an item of one's own back; one that is over stays as it is."""

    ask: Word


class Decided(Operation["Json"], op="decided", durable="ledger", frees=True, isolated=True):
    """A conversation of the caller's went on: the dialogs that it has left behind were decided at its terminal."""

    conversation: Word
    agent: Word | None = None
    call: Word | None = None
    began: Seconds | None = None


class Inbox(Operation["Json"], op="inbox", repeat="always"):
    """What waits for a person; with `follow` what changed after a number, once something has."""

    all: bool = False
    follow: bool = False
    after: Whole | None = None


class Answer(Once["Json"], op="answer", repeat="request", durable="journal"):
    """Answer an item: with a text, or with yes or no."""

    ask: Word
    data: Base64 | None = None
    approve: bool | None = None
