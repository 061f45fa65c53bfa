"""What a store is: it runs transactions. A transaction is a generator, so that it is written once for all backends.

A transaction yields queries and is sent the rows. It never sees a connection, a thread or an event loop: SQLite drives
it on its writer thread together with others (group commit), PostgreSQL drives it over a connection. Decisions between
two queries are plain calls of the pure rules in `holdfast.work`.

    def rename(run: str, name: str) -> Transaction[int]:
        held = yield from queries.held(run)            # row lock, and the clock once it is held
        ...                                            # a HoldfastError raised here rolls everything back
        yield Query("UPDATE run SET name = ? WHERE id = ?", (name, run))
        return held.now

    await store.write(lambda: rename("run_…", "new"))  # on disk when this returns

The SQL is the part both understand (placeholders `?`, ON CONFLICT, RETURNING), and three marks for where they differ:

    {now}         the database's clock, in microseconds since 1970
    {for_update}  a row lock. SQLite has one writer, and needs none
    {for_share}   a row lock that others may share

Read the clock *after* the lock: `WITH held AS MATERIALIZED (SELECT … {for_update}) SELECT held.*, {now} FROM held`.
And read what a lock protects in a later query than the lock: PostgreSQL shows a statement what was there when it began.

Columns are text, integers (64 bits) and bytes. Times are microseconds. JSON is text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Query(NamedTuple):
    """One statement; the answer is a list of rows, empty where it returns none."""

    sql: str
    args: tuple[Any, ...] = ()


Transaction = Generator[Query, list[Row], T]


class Store(Protocol):
    """A database that holds the work. Made by `holdfast.store.open.open_store(url)`, migrated when it is returned."""

    url: str

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run it; what it returned is on disk by then. Whatever it raises rolls it back and comes through.

        It may be run more than once: where the answer to a commit was lost, it is asked again. So a transaction
        recognises what it did before (by a request id in the row) and returns that. Other transactions of this store
        may share its commit, never its failure.
        """
        ...

    async def decide(self, change: Change[T]) -> T:
        """Make a change as its rule decides; the answer, once it is on disk. Also run more than once, as `write`."""
        ...

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run it against one consistent state, without locks; it must not write."""
        ...

    def write_now(self, transaction: Callable[[], Transaction[T]]) -> T:
        """`write`, `decide` and `read` for a thread that can wait."""
        ...

    def decide_now(self, change: Change[T]) -> T: ...

    def read_now(self, transaction: Callable[[], Transaction[T]]) -> T: ...

    async def close(self) -> None: ...


# -- records: a row each, in the order of the columns that store/queries.py selects ------------------------------------


class Held(NamedTuple):
    """An attempt under its row lock, and the clock once the lock was held. The attempt carries the lease."""

    attempt: str
    task: str | None
    n: int
    worker: str | None
    instance: str | None  # of the process with that name; None: it holds by its name alone
    epoch: int
    lease_until: int  # microseconds; 0 when nobody holds it
    ended_at: int | None
    now: int


class Run(NamedTuple):
    id: str
    attempt: str
    task: str | None
    state: str
    params: str  # JSON
    items: str | None  # JSON list
    parent: str | None
    forked_from: str | None
    created_at: int
    ended_at: int | None
    outcome: str | None  # JSON
    job: str | None  # what a worker runs for it; None: whoever began it works at it
    waits_for: str | None  # the key of a step in doubt that a worker could not settle
    crashes: int  # workers that died at it
    parked: str | None  # JSON: why no worker takes it until somebody retries it


class Step(NamedTuple):
    run: str
    key: str
    state: str
    effect: str
    action: str | None
    args_hash: str
    args: str | None  # JSON as far as it is kept, for people
    idem_key: str
    epoch: int  # under which it was begun last
    tries: int
    begin_request: str
    end_request: str | None
    begun_at: int
    ended_at: int | None
    result: str | None  # JSON
    error: str | None
    session: str | None  # an exec: whose keeper knows how it ended
    exec_id: str | None
    doubt_since: int | None
    doubt_until: int | None
    doubt_owner: str | None
    settled_by: str | None
    evidence: str | None
    outcome: str | None  # of a settlement: done | not_done


class LogEntry(NamedTuple):
    run: str
    seq: int
    kind: str
    at: int
    by: str | None
    epoch: int
    step: str | None
    body: str  # JSON
    request: str | None = None  # that wrote it, where a repetition has to find it


class Rows(NamedTuple):
    """What a rule decides on: rows of one run as they stand under the lock of its attempt."""

    held: Held
    last: int  # the number of the run's last log entry; 0: there is none
    steps: dict[str, Step]  # those of the named ones that exist, by key
    before: int | None = None  # the number of the entry that this request wrote before


class Put(NamedTuple):
    """What a rule wants written. Where a step is among it, an entry of its run's log is, too: the number of the last
    entry is the version of a run's rows."""

    new: tuple[Step, ...] = ()
    changed: tuple[Step, ...] = ()
    log: tuple[LogEntry, ...] = ()

    def __add__(self, other: tuple[Any, ...]) -> Put:
        """This, then the other."""
        new, changed, log = other
        return Put(self.new + new, self.changed + changed, self.log + log)


class Change(NamedTuple, Generic[T]):
    """One change of a run's steps and log: which rows it is decided on, and the rule that decides.

    `decide` is pure: the answer and what is to be written, or a HoldfastError and nothing is.
    """

    run: str
    keys: tuple[str, ...]
    decide: Callable[[Rows], tuple[T, Put]]
    request: str | None = None  # whose entry of the log is looked for


class Ref(NamedTuple):
    """An artifact: a name of an owner for some content, and where it came from."""

    owner: str
    name: str
    sha256: str
    size: int
    media: str | None
    made_by: str | None
    sources: str  # JSON list
    at: int
