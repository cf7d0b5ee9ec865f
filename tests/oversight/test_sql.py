"""The log in SQLite: what somebody with the database file can do to it is seen and named."""

from __future__ import annotations

import sqlite3
import stat

import pytest

from clinsafe.errors import ClinsafeError, MissingDependency, UsageError
from clinsafe.oversight.base import BrokenLog
from clinsafe.oversight.sql import SqlLog
from tests.oversight.kit import KEY, OTHER, decision, ticking, together


@pytest.fixture
def log(tmp_path):
    made = SqlLog(f"sqlite:///{tmp_path}/log.db", KEY, clock=ticking())
    made.create()
    yield made
    made.close()


def filled(log, n=9):
    for number in range(n):
        log.append(decision(number))
    return log


def execute(tmp_path, *statements):
    raw = sqlite3.connect(tmp_path / "log.db")
    with raw:
        for statement in statements:
            raw.execute(statement)
    raw.close()


ATTACKS = {
    "record changed": (["update clinsafe_log set record = replace(record, '\"n\":4', '\"n\":5')"], "changed", 6),
    "blank added": (["update clinsafe_log set record = record || ' ' where seq = 6"], "changed", 6),
    "code changed": (["update clinsafe_log set mac = upper(mac) where seq = 6"], "changed", 6),
    "link changed": (["update clinsafe_log set prev = mac where seq = 6"], "changed", 6),
    "time column changed": (["update clinsafe_log set time = '2020-01-01T00:00:00.000Z' where seq = 6"], "changed", 6),
    "field of another type": (["update clinsafe_log set record = x'00' where seq = 6"], "unreadable", 6),
    "deleted": (["delete from clinsafe_log where seq = 6"], "missing", 6),
    "first deleted": (["delete from clinsafe_log where seq = 1"], "missing", 1),
    "last deleted": (["delete from clinsafe_log where seq = 10"], "missing", 10),
    "all deleted": (["delete from clinsafe_log"], "missing", 1),
    "renumbered": (["update clinsafe_log set seq = 70 where seq = 6"], "missing", 6),
    "swapped": ([
        "update clinsafe_log set seq = 99 where seq = 6", "update clinsafe_log set seq = 6 where seq = 7",
        "update clinsafe_log set seq = 7 where seq = 99"], "changed", 6),
    "copied to the end": ([
        "insert into clinsafe_log select 11, prev, mac, record, time from clinsafe_log where seq = 6"], "changed", 11),
    "put before the first": ([
        "insert into clinsafe_log select 0, prev, mac, record, time from clinsafe_log where seq = 6"], "inserted", 1),
    "head row gone": (["delete from clinsafe_log_head"], "changed", 11),
    "head row set back": (["update clinsafe_log_head set seq = 9"], "changed", 11),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_named_and_stops_the_log(log, tmp_path, name):
    statements, kind, seq = ATTACKS[name]
    filled(log)
    assert log.verify() == ()
    execute(tmp_path, *statements)
    fault = log.inspect().fault
    assert fault is not None
    assert (fault.kind, fault.seq) == (kind, seq), fault


@pytest.mark.parametrize("name", ["last deleted", "all deleted", "copied to the end", "head row gone",
                                  "head row set back"])  # fmt: skip
def test_nothing_is_appended_to_a_broken_end(log, tmp_path, name):
    filled(log)
    execute(tmp_path, *ATTACKS[name][0])
    other = SqlLog(f"sqlite:///{tmp_path}/log.db", KEY)
    with pytest.raises(BrokenLog):
        other.append(decision(1))
    other.close()


def test_a_tail_cut_with_its_head_row_is_seen_by_the_process_that_wrote_it(log, tmp_path):
    filled(log)
    execute(tmp_path, "delete from clinsafe_log where seq > 8",
            "update clinsafe_log_head set seq = 8, mac = (select mac from clinsafe_log where seq = 8)")  # fmt: skip
    assert log.verify() == ()  # why checkpoints are there
    with pytest.raises(BrokenLog, match="gone"):
        log.append(decision(1))


def test_a_log_is_opened_once_and_its_file_is_private(log, tmp_path):
    assert stat.S_IMODE((tmp_path / "log.db").stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="already"):
        log.create()
    empty = SqlLog(f"sqlite:///{tmp_path}/none.db", KEY)
    for use in (lambda: empty.append(decision(1)), empty.verify):
        with pytest.raises(ClinsafeError, match="log init"):
            use()
    empty.close()


def test_a_changed_key_goes_on_in_the_same_chain(log, tmp_path):
    filled(log)
    log.rotate(OTHER)
    log.append(decision(9))
    assert log.verify() == ()
    old = SqlLog(f"sqlite:///{tmp_path}/log.db", KEY)
    assert "wrong key" in old.verify()[0]
    with pytest.raises(BrokenLog):
        old.append(decision(1))
    old.close()


def lost(orig="OperationalError"):
    from sqlalchemy.exc import OperationalError

    cause = type(orig, (Exception,), {})("connection to user=secret-user password=s3cr3t lost")
    return OperationalError("select s3cr3t", {"a": "s3cr3t"}, cause)


@pytest.mark.parametrize("when", ["before", "after the commit"])
def test_a_lost_connection_is_tried_once_more_and_nothing_is_written_twice(log, monkeypatch, when):
    usual, calls = SqlLog._attempt, []

    def breaks(self, make, made, *, new):
        calls.append(1)
        if len(calls) == 1 and when == "before":
            raise lost()
        rows = usual(self, make, made, new=new)
        if len(calls) == 1:
            raise lost()
        return rows

    filled(log, 2)
    monkeypatch.setattr(SqlLog, "_attempt", breaks)
    assert log.append(decision(7)).startswith("4:")
    assert len(calls) == 2
    monkeypatch.undo()
    assert log.inspect().count == 4
    assert log.verify() == ()
    assert log.append(decision(8)).startswith("5:")


def test_a_connection_that_stays_lost_is_one_line_without_a_secret(log, monkeypatch):
    calls = []

    def breaks(self, make, made, *, new):
        calls.append(1)
        raise lost()

    monkeypatch.setattr(SqlLog, "_attempt", breaks)
    with pytest.raises(ClinsafeError) as caught:
        log.append(decision(1))
    assert len(calls) == 2
    said = str(caught.value)
    assert "cannot be written" in said
    assert "s3cr3t" not in said
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_database_that_stays_locked_is_one_line_after_a_while(log, tmp_path):
    raw = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    hasty = SqlLog(f"sqlite:///{tmp_path}/log.db", KEY, patience=0.1)
    with pytest.raises(ClinsafeError, match="SQLITE_BUSY"):
        hasty.append(decision(1))
    assert hasty.verify() == ()  # reading waits for nobody
    raw.rollback()
    raw.close()
    hasty.append(decision(1))
    hasty.close()


@pytest.mark.parametrize("url", [
    "nonsense", "mysql://u:s3cr3t@h/b", "sqlite://", "sqlite:///:memory:", "postgresql:s3cr3t", "http://u:s3cr3t@h:x/",
    "postgresql://u:s3cr3t@h:notaport/b",
])  # fmt: skip
def test_an_address_that_is_none_is_refused_and_not_quoted(url):
    with pytest.raises(UsageError) as caught:
        SqlLog(url, KEY)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_no_secret_in_repr_or_place():
    made = SqlLog("postgresql://user:s3cr3t@h:5/base?password=hidden", KEY)
    for shown in (repr(made), made.where, str(made)):
        assert "s3cr3t" not in shown
        assert "hidden" not in shown
        assert "h:5/base" in shown


def test_a_missing_package_says_the_install_line(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependency, match=r"clinsafe\[postgres\]"):
        SqlLog("postgresql://user:x@h/base", KEY)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingDependency, match=r"clinsafe\[log\]"):
        SqlLog("sqlite:///x.db", KEY)


SCRIPT = """
from clinsafe.oversight.sql import SqlLog
from tests.oversight.kit import KEY
log = SqlLog(sys.argv[1], KEY)
for n in range(50):
    log.append({"event": "decision", "process": int(sys.argv[2]), "n": n})
log.close()
"""


@pytest.mark.slow
def test_four_processes_write_one_chain(log, tmp_path):
    together(SCRIPT, f"sqlite:///{tmp_path}/log.db")
    assert log.inspect().count == 201
    assert log.verify() == ()
    records = [row.record for row in log.rows()][1:]
    for process in range(4):
        assert [r["n"] for r in records if r["process"] == process] == list(range(50))
