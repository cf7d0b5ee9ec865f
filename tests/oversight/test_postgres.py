"""The log in a real PostgreSQL: one chain for several processes, a restart, a wrong password."""

from __future__ import annotations

import pytest

from clinsafe.errors import ClinsafeError
from clinsafe.oversight.base import BrokenLog
from clinsafe.oversight.sql import SqlLog
from tests.oversight.conftest import PASSWORD
from tests.oversight.kit import KEY, OTHER, decision, together
from tests.oversight.test_sql import SCRIPT

pytestmark = pytest.mark.server


@pytest.fixture
def url(cluster, request):
    return cluster.base(request.node.name)


@pytest.fixture
def log(url):
    made = SqlLog(url, KEY)
    made.create()
    yield made
    made.close()


def execute(url, statement):
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(statement)


def test_it_keeps_a_chain_and_names_what_was_done_to_it(log, url):
    for n in range(5):
        log.append(decision(n))
    assert log.inspect().count == 6
    assert log.verify() == ()
    execute(url, "update clinsafe_log set record = replace(record, '\"n\":2', '\"n\":3')")
    assert "record 4 (row 4): changed" in log.verify()[0]
    execute(url, "delete from clinsafe_log where seq > 4")
    with pytest.raises(BrokenLog):
        log.append(decision(9))


def test_a_changed_key_goes_on(log):
    log.rotate(OTHER)
    log.append(decision(1))
    assert log.verify() == ()


def test_four_processes_write_one_chain(log, url):
    together(SCRIPT, url)
    assert log.inspect().count == 201
    assert log.verify() == ()
    records = [row.record for row in log.rows()][1:]
    for process in range(4):
        assert [r["n"] for r in records if r["process"] == process] == list(range(50))


def test_a_session_that_the_server_ended_is_opened_again(log, url):
    log.append(decision(1))
    execute(url, "select pg_terminate_backend(pid) from pg_stat_activity "
                 "where datname = current_database() and pid <> pg_backend_pid()")  # fmt: skip
    log.append(decision(2))
    assert log.inspect().count == 3
    assert log.verify() == ()


def test_a_server_that_is_down_is_one_line_and_a_restart_is_survived(log, cluster):
    log.append(decision(1))
    cluster.stop()
    try:
        with pytest.raises(ClinsafeError, match="cannot be written") as caught:
            log.append(decision(2))
        assert PASSWORD not in str(caught.value)
    finally:
        cluster.start()
    log.append(decision(3))
    assert log.inspect().count == 3
    assert log.verify() == ()


def test_a_wrong_password_is_not_repeated(log, cluster, url):
    wrong = SqlLog(cluster.url(url.rpartition("/")[2], "wr0ng-s3cr3t"), KEY)
    for use in (lambda: wrong.append(decision(1)), wrong.verify):
        with pytest.raises(ClinsafeError) as caught:
            use()
        for secret in ("wr0ng-s3cr3t", PASSWORD, "clinsafe:"):
            assert secret not in str(caught.value)
    wrong.close()


def test_a_lock_that_another_session_keeps_ends(log, url):
    import psycopg

    hasty = SqlLog(url, KEY, patience=0.2)
    with psycopg.connect(url) as connection:
        connection.execute("select * from clinsafe_log_head for update")
        with pytest.raises(ClinsafeError, match="55P03"):  # lock_not_available
            hasty.append(decision(1))
        connection.rollback()
    hasty.append(decision(1))
    hasty.close()
