"""The work in PostgreSQL: row locks, the server's clock, and a restart of the server is waited out."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from ..model.errors import HoldfastError
from ..model.limits import STORE_WAIT_S
from ..model.work.store_setting import without_password
from . import queries
from .base import Change, Query, Row, Transaction
from .migrations import VERSIONS, all_migrations, outstanding, statements

try:
    import asyncpg
except ImportError:
    raise HoldfastError(
        "failed", "a PostgreSQL store needs the package asyncpg", "pip install 'holdfast[postgres]'"
    ) from None

T = TypeVar("T")
log = logging.getLogger("holdfast.store")

_WORDS = {"int": "BIGINT", "bytes": "BYTEA", "strict": "", "server": ""}
_MARKS = {
    "{now}": "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
    "{for_update}": "FOR UPDATE",
    "{for_share}": "FOR SHARE",
}
_CONNECTIONS_MAX = 8  # of one process: transactions are short, and a server has about a hundred for everybody
_STATEMENTS_KEPT = 256  # prepared on each connection: more than the work plane has
_CONNECT_S = 10.0  # one attempt to connect; a server that starts answers sooner, with a refusal
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0  # between attempts, doubling
_CLASHES_MAX = 10  # a transaction that lost a deadlock is run again so often
_MIGRATION_LOCK = 0x686F6C64  # "hold": two processes that open a new database at once take turns
_LOCK_TIMEOUT = "30s"  # as the server writes it
_SETTINGS = {
    # A worker that is stopped in the middle of a transaction keeps a row lock; the server takes it away after this,
    # so that a standby is not stopped with it.
    "idle_in_transaction_session_timeout": "10000",
    "lock_timeout": _LOCK_TIMEOUT,  # longer than the above: what is still locked then is somebody's open psql
}

# Behind a pooler that lends a connection for one transaction (PgBouncer) nothing can be set for longer than that.
_SETTINGS_LOCAL = "".join(f"; SET LOCAL {name} = '{value}'" for name, value in _SETTINGS.items())
_SYNCHRONOUS = (
    "SELECT set_config('synchronous_commit', 'on', {local}) WHERE current_setting('synchronous_commit') = 'off'"
)

# The server goes, is going, or is coming back: wait. Everything else a repetition would not mend.
AWAY = (
    asyncpg.exceptions.AdminShutdownError,
    asyncpg.exceptions.CrashShutdownError,
    asyncpg.exceptions.CannotConnectNowError,
    asyncpg.exceptions.IdleInTransactionSessionTimeoutError,
    asyncpg.exceptions.TooManyConnectionsError,
    asyncpg.exceptions.PostgresConnectionError,
    asyncpg.exceptions.InterfaceError,
    asyncpg.exceptions.InternalClientError,  # the line broke while the driver was between two states
    ConnectionError,
    TimeoutError,
    OSError,
)
# How a pooler shows itself: it refuses settings at the start, or a statement was prepared on another connection.
_STRANGER = (asyncpg.exceptions.InvalidSQLStatementNameError, asyncpg.exceptions.DuplicatePreparedStatementError)
_CLASH = (asyncpg.exceptions.SerializationError, asyncpg.exceptions.DeadlockDetectedError)


class PostgresStore:
    """`await PostgresStore.open(url)`; belongs to the event loop that opened it."""

    def __init__(self, url: str, wait_s: float = STORE_WAIT_S) -> None:
        self.url = url
        self.shown = without_password(url)
        self.wait_s = wait_s
        self._idle: list[asyncpg.Connection[Any]] = []
        self._gate = asyncio.Semaphore(_CONNECTIONS_MAX)
        self._texts: dict[str, str] = {}
        self._pooled = False  # behind a pooler: only what is within one transaction holds together
        self._closed = False

    @classmethod
    async def open(
        cls, url: str, migrations: list[tuple[int, str]] | None = None, *, wait_s: float = STORE_WAIT_S
    ) -> Self:
        self = cls(url, wait_s)
        known = migrations or all_migrations()
        try:
            async with self._connection() as connection, connection.transaction():
                await self._migrate(connection, known)  # a wrong address is told at once, not waited for
        except AWAY as e:
            raise self._unreachable(e) from None
        except asyncpg.PostgresError as e:
            await self.close()
            raise self._explain(e) from e
        except HoldfastError:
            await self.close()
            raise
        return self

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await self._patiently(transaction, "BEGIN")

    async def decide(self, change: Change[T]) -> T:
        return await self.write(lambda: queries.decided(change))

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await self._patiently(transaction, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.close(timeout=2)
            except (*AWAY, asyncpg.PostgresError):
                connection.terminate()

    def terminate(self) -> None:
        """Close at once, for a caller that cannot wait; what was acknowledged is safe."""
        self._closed = True
        while self._idle:
            self._idle.pop().terminate()

    # -- one transaction -------------------------------------------------------------------------------------------

    async def _patiently(self, transaction: Callable[[], Transaction[T]], begin: str) -> T:
        """Run it; again when it lost a deadlock, and again when the server went away, also in the commit.

        The last is why a transaction recognises what it did before: the commit may have been done.
        """
        clashes, waited_since, pause = 0, 0.0, _PAUSE_S
        while True:
            try:
                async with self._connection() as connection:
                    value = await self._once(connection, transaction, begin)
            except (*_CLASH, *_STRANGER) as e:
                if isinstance(e, _STRANGER):
                    self._behind_pooler()
                clashes += 1
                if clashes > _CLASHES_MAX:
                    raise HoldfastError("busy", f"{self.shown}: {e}", "try again") from None
            except AWAY as e:
                now = time.monotonic()
                if not waited_since:
                    waited_since = now
                    log.warning("%s went away (%s); waiting up to %.0f s for it", self.shown, _first(e), self.wait_s)
                if now - waited_since >= self.wait_s:
                    raise self._unreachable(e) from None
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_MAX_S)
            except asyncpg.PostgresError as e:
                raise self._explain(e) from e
            else:
                if waited_since:
                    log.warning("%s is back after %.1f s", self.shown, time.monotonic() - waited_since)
                return value

    async def _once(
        self, connection: asyncpg.Connection[Any], transaction: Callable[[], Transaction[T]], begin: str
    ) -> T:
        if self._pooled:
            synchronous = "" if "READ ONLY" in begin else "; " + _SYNCHRONOUS.format(local="true")
            begin += _SETTINGS_LOCAL + synchronous
        await connection.execute(begin)
        try:
            value = await self._drive(connection, transaction())
        except (*AWAY, asyncio.CancelledError):
            raise  # the connection is given up, and the server rolls back
        except BaseException:
            await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")
        return value

    async def _drive(self, connection: asyncpg.Connection[Any], transaction: Transaction[T]) -> T:
        try:
            query = next(transaction)
            while True:
                query = transaction.send(await self._execute(connection, query))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            transaction.close()

    async def _execute(self, connection: asyncpg.Connection[Any], query: Query) -> list[Row]:
        text = self._texts.get(query.sql)
        if text is None:
            text = self._texts[query.sql] = translate(query.sql)
        return [tuple(row) for row in await connection.fetch(text, *query.args)]

    # -- connections -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """One that rests, or a new one; given back unless what happened leaves its state in question."""
        if self._closed:
            raise HoldfastError("failed", "the store is closed", "open it again")
        async with self._gate:
            while self._idle and self._idle[-1].is_closed():
                self._idle.pop()
            connection = self._idle.pop() if self._idle else await self._connect()
            pooled = self._pooled
            try:
                yield connection
            except BaseException as e:
                unsound = isinstance(e, (asyncpg.exceptions.InternalClientError, *_STRANGER))
                if unsound or connection.is_closed() or connection.is_in_transaction() or self._closed:
                    connection.terminate()
                else:
                    self._idle.append(connection)
                raise
            if pooled != self._pooled or self._closed:
                connection.terminate()
            else:
                self._idle.append(connection)

    def _behind_pooler(self) -> None:
        if self._pooled:
            return
        log.info("%s is behind a pooler: each transaction brings its own settings", self.shown)
        self._pooled = True
        while self._idle:
            self._idle.pop().terminate()

    async def _connect(self) -> asyncpg.Connection[Any]:
        settings = {"application_name": "holdfast", **({} if self._pooled else _SETTINGS)}
        try:
            connection = await asyncpg.connect(
                self.url,
                timeout=_CONNECT_S,
                server_settings=settings,
                statement_cache_size=0 if self._pooled else _STATEMENTS_KEPT,
            )
        except asyncpg.exceptions.ProtocolViolationError as e:
            if self._pooled or "startup parameter" not in str(e):
                raise
            return await self._connect_pooled()
        except AWAY:
            raise
        except (
            asyncpg.exceptions.InvalidAuthorizationSpecificationError,
            asyncpg.exceptions.InvalidPasswordError,
        ) as e:
            raise HoldfastError(
                "store_denied", f"{self.shown}: {_first(e)}", "check user and password in HOLDFAST_STORE"
            ) from None
        except (asyncpg.PostgresError, ValueError, ssl.SSLError) as e:
            what = "its port is no number" if "int()" in str(e) else _first(e)  # Python's words would help nobody
            hint = "check the URL in HOLDFAST_STORE"
            raise HoldfastError("store_unreachable", f"{self.shown}: {what}", hint) from None
        if not self._pooled:
            # Acknowledged means on disk, also where the server's default says otherwise; stricter settings are kept.
            await connection.execute(_SYNCHRONOUS.format(local="false"))
            try:
                kept = await connection.fetchval("SELECT current_setting('lock_timeout')") == _LOCK_TIMEOUT
            except _STRANGER:
                kept = False
            if not kept:  # somebody in between ignores settings
                connection.terminate()
                return await self._connect_pooled()
        return connection

    async def _connect_pooled(self) -> asyncpg.Connection[Any]:
        self._behind_pooler()
        return await self._connect()

    async def _migrate(self, connection: asyncpg.Connection[Any], known: list[tuple[int, str]]) -> None:
        has = await connection.fetchval("SELECT to_regclass('schema_version') IS NOT NULL")
        version = await connection.fetchval("SELECT MAX(version) FROM schema_version") if has else 0
        if outstanding(version or 0, known, self.shown):
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
            await connection.execute(statements(VERSIONS, _WORDS)[0])
            version = await connection.fetchval("SELECT COALESCE(MAX(version), 0) FROM schema_version")
            for number, sql in outstanding(version, known, self.shown):
                for statement in statements(sql, _WORDS):
                    await connection.execute(statement)
                await connection.execute(translate("INSERT INTO schema_version VALUES (?, {now})"), number)

    # -- words -----------------------------------------------------------------------------------------------------

    def explain(self, error: BaseException) -> HoldfastError:
        """An error of the server or of the way to it, in our words."""
        if isinstance(error, AWAY) or not isinstance(error, asyncpg.PostgresError):
            return self._unreachable(error)
        return self._explain(error)

    def _unreachable(self, error: BaseException) -> HoldfastError:
        return HoldfastError(
            "store_unreachable", f"cannot reach {self.shown}: {_first(error)}", "is the server up, and the URL right?"
        )

    def _explain(self, error: asyncpg.PostgresError) -> HoldfastError:
        exceptions = asyncpg.exceptions
        if isinstance(error, exceptions.DiskFullError):
            return HoldfastError("store_full", f"{self.shown}: the disk is full", "free some space on the server")
        if isinstance(error, exceptions.ReadOnlySQLTransactionError):
            return HoldfastError("store_readonly", f"{self.shown} is read-only", "use the primary server")
        if isinstance(error, exceptions.InsufficientPrivilegeError):
            return HoldfastError("store_denied", f"{self.shown}: {_first(error)}", "grant this user the right")
        if isinstance(error, exceptions.LockNotAvailableError):
            return HoldfastError("busy", f"{self.shown}: somebody holds a lock", "try again; pg_locks says who")
        return HoldfastError("internal", f"{self.shown}: {_first(error)}", "please report it")


def translate(sql: str) -> str:
    """Our SQL in PostgreSQL's words: numbered placeholders, and the marks."""
    for mark, word in _MARKS.items():
        sql = sql.replace(mark, word)
    head, *tails = sql.split("?")
    return head + "".join(f"${n}{tail}" for n, tail in enumerate(tails, 1))


def _first(error: BaseException) -> str:
    """One line of it."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__
