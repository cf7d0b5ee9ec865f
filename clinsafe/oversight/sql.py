"""A log in a database: SQLite for one machine, PostgreSQL for a team. SQLAlchemy Core, no ORM.

One database (or schema) holds one log. Appends wait for one another at the head row: ``SELECT … FOR UPDATE`` in
PostgreSQL, ``BEGIN IMMEDIATE`` in SQLite.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.errors import ClinsafeError, MissingDependency, UsageError
from clinsafe.oversight.base import BrokenLog, ChainLog, Make
from clinsafe.oversight.chain import Row, Unreadable
from clinsafe.oversight.keys import LogKey

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

BATCH = 1_000  # rows fetched at a time


class SqlLog(ChainLog):
    """See `ChainLog`. A lost connection is tried once more; an append whose answer got lost is not written twice.

    Args:
        url: SQLAlchemy's (``sqlite:////var/lib/clinsafe/log.db``, ``postgresql://user:password@host/base``). Neither
            user nor password ever stands in a message or a repr.
        key: see `ChainLog`.
        old: see `ChainLog`.
        patience: seconds to wait while other processes append.
        clock: see `ChainLog`.

    Raises:
        UsageError: not the address of a database of these kinds.
        MissingDependency: SQLAlchemy or the driver is not installed.
    """

    def __init__(
        self, url: str, key: LogKey, old: Sequence[LogKey] = (), *, patience: float = 30.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:  # fmt: skip
        super().__init__(key, old, clock)
        with _needs():
            import sqlalchemy as sa
        self._url, self._patience = _address(url), patience
        meta = sa.MetaData()
        self._rows = sa.Table(
            "clinsafe_log", meta,
            sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("prev", sa.String(64), nullable=False),
            sa.Column("mac", sa.String(64), nullable=False),
            sa.Column("record", sa.Text, nullable=False),
            sa.Column("time", sa.String(24), nullable=False),
        )  # fmt: skip
        self._head = sa.Table(
            "clinsafe_log_head", meta,
            sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("seq", sa.BigInteger, nullable=False),
            sa.Column("mac", sa.String(64), nullable=False),
        )  # fmt: skip
        self._meta, self._open, self._process = meta, False, os.getpid()
        self._engine = self._connect()

    @property
    def where(self) -> str:
        """Kind, host and name of the database."""
        url = self._url
        host = f"{url.host}{f':{url.port}' if url.port else ''}" if url.host else ""
        return f"{url.get_backend_name()}://{host}/{url.database or ''}"

    def __repr__(self) -> str:
        return f"SqlLog({self.where})"

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def rows(self) -> Iterator[Row | Unreadable]:
        """All rows of one moment, by number; then, where it disagrees, what the head row says."""
        import sqlalchemy as sa

        with self._told("read"), self._engine.connect() as plain:
            postgres = self._url.get_backend_name() == "postgresql"
            options: dict[str, Any] = (
                {"isolation_level": "REPEATABLE READ"} if postgres else {"begin": "BEGIN"}
            )
            connection = plain.execution_options(**options)
            with connection.begin():
                if not sa.inspect(connection).has_table(self._rows.name):
                    raise UsageError(f"{self.where}: holds no log; run `clinsafe log init`")
                head = connection.execute(sa.select(self._head.c.seq, self._head.c.mac)).all()
                seq, mac = 0, ""
                every = sa.select(self._rows).order_by(self._rows.c.seq).execution_options(yield_per=BATCH)
                for found in connection.execute(every):
                    row = _row(found)
                    yield row
                    seq, mac = found.seq, found.mac
                last = head[0].seq if len(head) == 1 and isinstance(head[0].seq, int) else 0
                if [tuple(one) for one in head] != [(seq, mac)]:
                    said = f"names record {last} as the last" if last else "is not there once"
                    why = f"the head row {said}, and the last record is {seq}"
                    yield Unreadable("head row", why, "missing" if last > seq else "changed")

    def _write(self, make: Make, *, new: bool = False) -> Sequence[Row]:
        from sqlalchemy.exc import DBAPIError

        made: list[Row] = []
        try:
            return self._attempt(make, made, new=new)
        except DBAPIError as error:
            if not _lost(error):
                raise self._failure(error, "written") from None
        self._engine.dispose()
        try:
            return self._attempt(make, made, new=new)
        except DBAPIError as error:
            raise self._failure(error, "written") from None

    def _attempt(self, make: Make, made: list[Row], *, new: bool) -> Sequence[Row]:
        import sqlalchemy as sa

        if (
            self._process != os.getpid()
        ):  # a server that forks: two processes on one connection mix up their answers
            self._engine.dispose(close=False)
            self._process = os.getpid()
        with self._engine.begin() as connection:
            if new:
                self._meta.create_all(connection)
            elif not self._open and not sa.inspect(connection).has_table(self._head.name):
                raise BrokenLog(f"{self.where}: no log was opened there; run `clinsafe log init`")
            self._open = True
            last = self._last(connection)
            if made and self._is_there(connection, made[-1]):
                return made  # the connection was lost after the commit, and the answer with it
            if new and last is not None:
                raise UsageError(f"{self.where}: holds a log already; name another database for a new one")
            made[:] = make(last)
            rows = [
                {"seq": r.seq, "prev": r.prev, "mac": r.mac, "record": r.text, "time": _time(r.text)}
                for r in made
            ]
            connection.execute(sa.insert(self._rows), rows)
            values = {"seq": made[-1].seq, "mac": made[-1].mac}
            if new:
                connection.execute(sa.insert(self._head).values(id=1, **values))
            else:
                connection.execute(sa.update(self._head).where(self._head.c.id == 1).values(**values))
            return list(made)

    def _last(self, connection: Connection) -> Row | None:
        """Lock the head row and find the last record, which both must agree on."""
        import sqlalchemy as sa

        head = connection.execute(
            sa.select(self._head).where(self._head.c.id == 1).with_for_update()
        ).one_or_none()
        last = connection.execute(
            sa.select(self._rows).order_by(self._rows.c.seq.desc()).limit(1)
        ).one_or_none()
        if head is None and last is None:
            return None
        row = None if last is None else _row(last)
        if head is None or not isinstance(row, Row) or (head.seq, head.mac) != (row.seq, row.mac):
            raise BrokenLog(
                f"{self.where}: its head row and its last record disagree; nothing was appended: run "
                "`clinsafe log verify`"
            )
        return row

    def _is_there(self, connection: Connection, row: Row) -> bool:
        import sqlalchemy as sa

        return connection.scalar(sa.select(self._rows.c.mac).where(self._rows.c.seq == row.seq)) == row.mac

    def _connect(self) -> Engine:
        with _needs():
            import sqlalchemy as sa

            sqlite = self._url.get_backend_name() == "sqlite"
            wait = {"timeout": self._patience} if sqlite else {"connect_timeout": max(2, int(self._patience))}
            engine = sa.create_engine(self._url, hide_parameters=True, connect_args=wait)
        if sqlite:
            _private(self._url)
            _prepare_sqlite(engine)
        else:

            @sa.event.listens_for(engine, "begin")
            def limit(connection: Connection) -> None:
                connection.exec_driver_sql(
                    f"SET LOCAL lock_timeout = '{max(1, int(1000 * self._patience))}ms'"
                )

        return engine

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError

        try:
            yield
        except DBAPIError as error:
            raise self._failure(error, what) from None

    def _failure(self, error: Any, what: str) -> ClinsafeError:
        # The kind and the SQLSTATE alone: the driver's message may name the user, the statement or its values.
        kind = type(error.orig).__name__ if error.orig is not None else type(error).__name__
        state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "sqlite_errorname", None)
        return ClinsafeError(
            f"{self.where}: cannot be {what} ({kind}{f', {state}' if state else ''}); see that the database runs and "
            "that the account may use the tables clinsafe_log and clinsafe_log_head"
        )


def _address(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        found = make_url(url)
        backend = found.get_backend_name()
    except (ArgumentError, ValueError):  # neither message nor cause: they quote the address, and its password
        backend = ""
    if backend in ("postgres", "postgresql"):
        return found.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and found.database and found.database != ":memory:":
        return found.set(drivername="sqlite")
    raise UsageError(
        "not the address of a log's database; give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/BASE"
    )


@contextmanager
def _needs() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        package = (error.name or "a package").partition(".")[0]
        extra = "postgres" if package == "psycopg" else "log"
        raise MissingDependency("a log in a database", package, f"pip install 'clinsafe[{extra}]'") from error


def _private(url: URL) -> None:
    """A new database file is readable by its owner alone."""
    path = Path(str(url.database))
    try:
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); name another place") from None


def _prepare_sqlite(engine: Engine) -> None:
    import sqlalchemy as sa

    @sa.event.listens_for(engine, "connect")
    def settings(connection: Any, _: object) -> None:
        connection.isolation_level = None  # BEGIN is ours: the driver's own takes the lock too late
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # a record that was acknowledged survives a power cut
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN IMMEDIATE"))


def _lost(error: Any) -> bool:
    """Whether the connection broke, rather than the statement."""
    from sqlalchemy.exc import InterfaceError

    state = str(getattr(error.orig, "sqlstate", None) or "")
    # 08: connection; 57P: the server is stopped or told the session to go. A refused connection has no state at all.
    broke = bool(error.connection_invalidated) or state.startswith(("08", "57P"))
    refused = type(error.orig).__name__ == "OperationalError" and not state
    return (
        broke
        or isinstance(error, InterfaceError)
        or (refused and not hasattr(error.orig, "sqlite_errorcode"))
    )


def _time(text: str) -> str:
    import json

    return str(json.loads(text).get("time", ""))[:24]


def _row(found: Any) -> Row | Unreadable:
    place = f"row {found.seq}"
    values = (found.prev, found.mac, found.record, found.time)
    if not isinstance(found.seq, int) or not all(isinstance(value, str) for value in values):
        return Unreadable(place, "a field holds no text")  # SQLite keeps whatever it is given
    try:
        same = _time(found.record) == found.time
    except (ValueError, AttributeError, RecursionError):
        same = False
    # The column is for people's queries and no part of the code: where it differs, the row does not count as genuine.
    return Row(found.seq, found.prev, found.mac if same else "", found.record, place)
