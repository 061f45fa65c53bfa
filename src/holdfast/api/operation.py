"""What an operation is: its fields are the request, its type parameter is the reply, its keywords are its row.

Each client loads this, so it loads neither `typing` nor `msgspec`, which takes 18 ms.
"""

from __future__ import annotations

from types import GenericAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

    from .values import Word

    R = TypeVar("R")
    P = TypeVar("P")
    C = TypeVar("C")
    Q = TypeVar("Q", bound="Operation[Any]")
    Right = Literal["", "view", "start", "request_control", "type", "signal", "resize", "exec", "stop", "work", "enrol"]
    On = Literal["connection", "anyone", "own", "each", "session", "new", "host"]
    Repeat = Literal["always", "never", "request", "ask", "hash"]
    Durable = Literal["", "journal", "ledger", "work"]
    Subject = Literal["list", "tasks", "log", "parked"]
    Approve = Literal["", "run", "exec", "send", "contract"]
else:  # what the type checker alone needs
    R = "R"

    class Generic:
        __class_getitem__ = classmethod(GenericAlias)

    def dataclass_transform(**_):
        return lambda kind: kind


# Files of rows, those of the commonest commands first: `find` loads them in this order.
ROOMS = (
    "observe",
    "sessions",
    "controls",
    "channels",
    "exec",
    "host",
    "inbox",
    "operators",
    "journal",
    "change_feed",
    "web",
    "work.runs",
    "work.steps",
    "work.tasks",
    "work.projects",
    "work.checkpoints",
    "work.memory",
    "work.artifacts",
    "work.claims",
    "work.briefs",
)


class Row:
    """What is true of an operation, whatever is asked. Each column is enforced, or something is made from it.

    right, on   the right that it needs, and on what: `session` is the one that the request names, `each` every session
                that it shows or acts on (the one that the request names, where it names one), `new` one that is about
                to be, `own` what is the caller's own, `host` the host itself (a grant on `*`), `anyone` each
                caller that is identified, `connection` one that is not identified yet
    also        a right that it needs on the host besides
    repeat      `always`: asking twice is asking once; a field's name: a repeat is known by that field, which the client
                fills in; `never`: a lost reply leaves open whether it was done
    durable     what is on disk before the reply: an entry of the journal, a change of the ledger, a commit of the work
    frees       it ends something and so makes room: it is done also where the disk is too full to record it
    changes     what is different after it, for those who wait for changes
    isolated    a program inside an isolated session may ask it
    approve     the kind of rule in config.toml by which a person is asked first
    thread_ok   a step thread may answer it
    """

    __slots__ = (
        "also",
        "approve",
        "changes",
        "durable",
        "frees",
        "isolated",
        "on",
        "op",
        "repeat",
        "right",
        "thread_ok",
    )

    def __init__(
        self,
        op: str,
        right: Right = "",
        on: On = "anyone",
        also: Right = "",
        repeat: Repeat = "never",
        durable: Durable = "",
        frees: bool = False,
        changes: tuple[Subject, ...] = (),
        isolated: bool = False,
        approve: Approve = "",
        thread_ok: bool = False,
    ) -> None:
        self.op, self.right, self.on, self.also, self.repeat = op, right, on, also, repeat
        self.durable, self.frees, self.changes = durable, frees, changes
        self.isolated, self.approve, self.thread_ok = isolated, approve, thread_ok

    @property
    def recorded(self) -> bool:
        """Whether it is refused where it cannot be recorded. Durable work is nothing but writing, and is tried."""
        return self.durable in ("journal", "ledger") and not self.frees


OPERATIONS: dict[str, type[Operation[Any]]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Operation(Generic[R]):
    """A request. What was given is kept and travels; for the rest the class has the default."""

    row: ClassVar[Row]
    fields: ClassVar[frozenset[str]] = frozenset()

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            op: str = "",
            right: Right = "",
            on: On = "anyone",
            also: Right = "",
            repeat: Repeat = "never",
            durable: Durable = "",
            frees: bool = False,
            changes: tuple[Subject, ...] = (),
            isolated: bool = False,
            approve: Approve = "",
            thread_ok: bool = False,
        ) -> None: ...

    else:

        def __init_subclass__(cls, **columns):
            cls.fields = cls.fields.union(cls.__annotations__)
            if columns:  # a base (Act, Once) has none
                row = cls.row = Row(**columns)
                if row.repeat not in ("always", "never") and row.repeat not in cls.fields:
                    raise TypeError(f"{row.op} has no field {row.repeat} that a repeat could be known by")
                if OPERATIONS.setdefault(row.op, cls) is not cls:
                    raise TypeError(f"two operations are called {row.op}")

        def __init__(self, **given):
            self.__dict__.update(given)

    @classmethod
    def answered(cls: type[Q], handler: Callable[[P, C, Q], Awaitable[R]]) -> Callable[[P, C, Q], Awaitable[R]]:
        """Mark the function that carries it out."""
        handler.operation = cls  # type: ignore[attr-defined]
        return handler


class Act(Operation[R]):
    """One that changes something; `why` is kept in the record."""

    why: str | None = None


class Once(Act[R]):
    """An act whose `request` tells a repeat from a second wish."""

    request: Word | None = None


def find(op: str) -> type[Operation[Any]] | None:
    """The class of an operation. Rooms are loaded until it is there: a short command loads one or two of them."""
    for room in ROOMS:
        if op in OPERATIONS:
            break
        __import__(f"{__package__}.{room}")  # importlib would be one more thing to load
    return OPERATIONS.get(op)


def load_all() -> dict[str, type[Operation[Any]]]:
    """Every operation, by its name."""
    for room in ROOMS:
        __import__(f"{__package__}.{room}")
    return OPERATIONS
