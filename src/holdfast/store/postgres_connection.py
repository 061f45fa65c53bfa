"""One connection to PostgreSQL for one thread: prepared statements, as many as are known in one round trip.

It is libpq's pipeline mode, through psycopg's public `pq`. What is sent up to a Sync is one transaction.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

from ..model.errors import HoldfastError
from ..model.work.store_setting import without_password
from .base import Query, Row, quoted

try:
    import psycopg
    from psycopg import pq
    from psycopg.conninfo import make_conninfo
except ImportError:
    raise HoldfastError(
        "failed",
        "a PostgreSQL store needs the package psycopg, which is not installed where the host runs",
        "pip install 'holdfast[postgres]', then hold down",
    ) from None

TASKS = "holdfast_tasks"  # the channel on which hosts hear of each other's tasks
_MARKS = {
    "{now}": "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
    "{for_update}": "FOR UPDATE",
    "{for_share}": "FOR SHARE",
    "{news_tasks}": f"pg_notify('{TASKS}', '')",
}
_CONNECT_S = 10  # one attempt to connect; a server that starts answers sooner, with a refusal
_STATEMENTS_KEPT = 256  # prepared on each connection: more than the work plane has
_LOCK_TIMEOUT = "30s"  # as the server writes it
SETTINGS = {
    # A host that is stopped in the middle of a transaction keeps a row lock; the server takes it away after this, so
    # that other hosts are not stopped with it.
    "idle_in_transaction_session_timeout": "10000",
    "lock_timeout": _LOCK_TIMEOUT,  # longer than the above: what is still locked then is a person's open psql
    # A plan that was made while a table was empty is kept: without this it would scan the table once it is full.
    "enable_seqscan": "off",
}
# A server that vanishes with its machine is noticed within half a minute.
_GIVEN: dict[str, str | int | None] = {
    "application_name": "holdfast",
    "connect_timeout": _CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_INTS, _BYTES, _BOOL, _FLOATS, _NUMERIC = frozenset({20, 21, 23}), 17, 16, frozenset({700, 701}), 1700
_DENIED = ("authentication failed", "no pg_hba.conf entry", "role ", "permission denied", "no password supplied")
_OK = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Away(Exception):
    """The server goes, is going, or is coming back: wait. What was under way may have been committed."""


class Refused(Exception):
    """The server's word on a statement; nothing of its transaction was kept."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def translate(sql: str, host: str | None = None) -> str:
    """Our SQL in PostgreSQL's words: numbered placeholders, and the marks."""
    for mark, word in {**_MARKS, "{host}": quoted(host)}.items():
        sql = sql.replace(mark, word)
    head, *tails = sql.split("?")
    return head + "".join(f"${n}{tail}" for n, tail in enumerate(tails, 1))


class Connection:
    """`ask` sends statements and returns the rows of each."""

    def __init__(self, url: str, host: str | None = None) -> None:
        """Raises `Away`, or a HoldfastError where waiting would not help."""
        self._host = host
        self._prepared: dict[str, bytes] = {}
        self._count = 0
        try:
            # Only here is psycopg's own connection used: it reads the URL and waits for the server with a time limit.
            made = psycopg.connect(make_conninfo(url, **_GIVEN), autocommit=True)
        except psycopg.OperationalError as e:
            raise _unreachable(url, e) from None
        except (psycopg.Error, ValueError) as e:
            raise HoldfastError("store_unreachable", f"{without_password(url)}: {_first(e)}", _URL) from None
        self._made = made
        self._pg = made.pgconn
        # A pooler lends a server's connection for one transaction, so nothing can be set or prepared for longer.
        own = self._simple("SELECT pg_backend_pid()")
        self.pooled = own is None or int(own) != self._pg.backend_pid
        self.settings = [_local(self.pooled)]
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)
        if not self.pooled:
            self.ask(self.settings)

    def _simple(self, sql: str) -> bytes | None:
        result = self._pg.exec_(sql.encode())
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise Away(_message(result.error_message))
        return result.get_value(0, 0)

    @property
    def opening(self) -> list[Query]:
        """What a transaction has to begin with."""
        return self.settings if self.pooled else []

    def ask(self, queries: Sequence[Query]) -> list[list[Row]]:
        """The rows of each. Where no BEGIN came before, these are a transaction of their own.

        Each call ends with a Sync, also within a transaction: only then does the server see that it waits for us, and
        ends a transaction whose host was stopped.
        """
        try:
            return self._ask(queries)
        except psycopg.Error as e:
            raise Away(_first(e)) from None

    def _ask(self, queries: Sequence[Query]) -> list[list[Row]]:
        expected, new = list[bool](), list[str]()
        for query in queries:
            if self._send(query):
                new.append(query.sql)
                expected.append(False)
            expected.append(True)
        self._pg.pipeline_sync()
        self._flush()
        rows, error = list[list[Row]](), None
        for wanted in expected:
            result = self._result()
            if result.status not in _OK:
                error = error or _refused(result)  # the first; those behind it were skipped for it
            elif wanted:
                rows.append(_rows(result))
            self._pg.get_result()  # None: the end of this statement's results
        if error is not None and (error.code in _AWAY or error.code.startswith("08")):
            raise Away(str(error))
        self._synced()
        if error is not None:
            for text in new:  # perhaps never prepared; the next time under another name
                self._prepared.pop(text, None)
            if self._pg.transaction_status != pq.TransactionStatus.IDLE:
                self._ask([Query("ROLLBACK")])
            raise error
        return rows

    def _synced(self) -> None:
        while self._result().status != pq.ExecStatus.PIPELINE_SYNC:
            pass

    def _send(self, query: Query) -> bool:
        """Whether it is prepared with this."""
        formats = [1 if isinstance(value, bytes) else 0 for value in query.args]
        params = [_text(value) for value in query.args]
        name, new = self._prepared.get(query.sql), False
        if name is None:
            text = translate(query.sql, self._host)
            if self.pooled or len(self._prepared) >= _STATEMENTS_KEPT:
                self._pg.send_query_params(text.encode(), params, param_formats=formats)
                return False
            self._count += 1
            name, new = b"s%d" % self._count, True
            self._pg.send_prepare(name, text.encode())
            self._prepared[query.sql] = name
        self._pg.send_query_prepared(name, params, param_formats=formats)
        return new

    def _flush(self) -> None:
        while self._pg.flush():
            self._poll.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
            for _, seen in self._poll.poll():
                if seen & ~select.POLLOUT:
                    self._pg.consume_input()
            self._poll.modify(self._pg.socket, select.POLLIN)

    def _result(self) -> Any:
        pg = self._pg
        while True:
            if pg.is_busy():
                # Asleep: between three parties on a small machine, one that stays awake is in the others' way.
                self._poll.poll()
                pg.consume_input()
                continue
            result = pg.get_result()
            if result is not None:
                return result
            if pg.status != pq.ConnStatus.OK:
                raise Away(_message(pg.error_message))

    def listen(self, channel: str) -> None:
        self.ask([Query(f"LISTEN {channel}")])

    def notified(self) -> bool:
        """Wait for a notification; then all that came are one."""
        while True:
            try:
                self._pg.consume_input()
                if self._pg.notifies() is not None:
                    while self._pg.notifies() is not None:
                        pass
                    return True
                if self._pg.status != pq.ConnStatus.OK:
                    raise Away("the connection ended")
                self._poll.poll()
            except psycopg.Error as e:
                raise Away(_first(e)) from None

    def close(self) -> None:
        self._made.close()

    def shut(self) -> None:
        """From another thread: wake the one that waits here; it finds the connection ended."""
        import socket

        try:
            with socket.socket(fileno=self._pg.socket) as mine:
                mine.shutdown(socket.SHUT_RDWR)
                mine.detach()
        except (OSError, psycopg.Error):
            pass  # it has ended by itself


_URL = "check the store's URL: hold store use"
# shutting down, crashed, starting, idle in a transaction for too long, too many connections
_AWAY = frozenset({"57P01", "57P02", "57P03", "25P03", "53300"})


def _local(pooled: bool) -> Query:
    """Acknowledged means on disk, also where the server's default says otherwise; stricter settings are kept."""
    local = "true" if pooled else "false"
    values = [f"set_config('{name}', '{value}', {local})" for name, value in SETTINGS.items()]
    current = "current_setting('synchronous_commit')"
    values.append(f"set_config('synchronous_commit', CASE {current} WHEN 'off' THEN 'on' ELSE {current} END, {local})")
    return Query("SELECT " + ", ".join(values))


def _text(value: Any) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if value is True or value is False:
        return b"t" if value else b"f"
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else str(value).encode()


def _rows(result: Any) -> list[Row]:
    read = [_READERS.get(result.ftype(n), bytes.decode) for n in range(result.nfields)]
    value = result.get_value
    return [
        tuple(None if (v := value(r, n)) is None else as_(v) for n, as_ in enumerate(read))
        for r in range(result.ntuples)
    ]


_READERS: dict[int, Any] = {
    **dict.fromkeys(_INTS, int),
    **dict.fromkeys(_FLOATS, float),
    _BYTES: lambda v: bytes.fromhex(v[2:].decode()),
    _BOOL: lambda v: v == b"t",
    _NUMERIC: lambda v: float(v) if b"." in v else int(v),
}


def _refused(result: Any) -> Refused:
    code = result.error_field(pq.DiagnosticField.SQLSTATE)
    return Refused((code or b"").decode(), _message(result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""))


def _unreachable(url: str, error: psycopg.OperationalError) -> Exception:
    told = _first(error)
    if any(word in told for word in _DENIED):
        return HoldfastError("store_denied", f"{without_password(url)}: {told}", "check user and password")
    if "invalid integer value" in told or "invalid port number" in told:
        return HoldfastError("store_unreachable", f"{without_password(url)}: its port is no number", _URL)
    if 'database "' in told and "does not exist" in told:
        return HoldfastError("store_unreachable", f"{without_password(url)}: {told}", _URL)
    return Away(told)


def as_ours(error: psycopg.Error) -> Exception:
    """An error of psycopg's own connection: `Refused`, or `Away`."""
    return Away(_first(error)) if error.sqlstate is None else Refused(error.sqlstate, _first(error))


def _message(text: bytes) -> str:
    """One line of it, without the severity in the server's language."""
    return (text.decode("utf-8", "replace").splitlines() or [""])[0].strip() or "the connection was lost"


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__
