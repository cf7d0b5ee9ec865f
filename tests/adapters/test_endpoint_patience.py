"""Slow and failing endpoints: what is waited for, for how long, and when an endpoint counts as gone."""

from __future__ import annotations

import datetime
import email.utils
import re
import sys
import time

import pytest

from clinsafe.adapters import endpoint
from clinsafe.adapters.endpoint import (
    AccessRefused,
    BadAnswer,
    EndpointBusy,
    EndpointError,
    EndpointGone,
)
from clinsafe.benchmarks.scoring import score_with_encoder
from clinsafe.errors import MissingDependency, ModelError
from tests.adapters import embedding_server as es
from tests.adapters.embedding_server import REMOTE, fails

pytestmark = pytest.mark.usefixtures("clean_environment", "certificates_read_once")


# ── slow and failing services ───────────────────────────────────────────────────────────────────


def test_rate_limits_and_server_errors_are_waited_out(server, connect, waits):
    server.script = [
        es.status(429, Retry_After="7"),
        es.status(503, Retry_After="86400"),
        es.status(500),
        es.raw(b'{"error": {"code": 502}}'),
        es.ok,
    ]
    assert connect().encode([]).shape == (0, 64)
    assert waits[:2] == [7, 60]
    assert 2 <= waits[2] <= 2.5
    assert 4 <= waits[3] <= 4.5


@pytest.mark.parametrize(
    "header", ["", "soon", "-5", "nan", "inf", "9" * 400, "Thu, 01 Jan 1970 00:00:00 GMT"]
)
def test_a_retry_after_that_says_nothing_leaves_the_usual_wait(server, connect, waits, header):
    server.script = [es.status(429, Retry_After=header)]
    connect()
    assert len(waits) == 1
    assert 0.5 <= waits[0] <= 1


def test_a_retry_after_may_be_a_date(server, connect, waits):
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    server.script = [es.status(429, Retry_After=email.utils.format_datetime(soon, usegmt=True))]
    connect()
    assert waits == [60]


def test_retries_are_bounded(server, connect, waits):
    server.default = es.status(500)
    with pytest.raises(EndpointBusy):
        connect()
    assert len(server.requests) == 6
    assert len(waits) == 5
    assert waits == sorted(waits)


def test_no_wait_goes_beyond_the_deadline(server, connect, waits):
    server.default = es.status(429, Retry_After="30")
    with pytest.raises(EndpointBusy):
        connect(patience={"deadline": 10})
    assert len(server.requests) == 1
    assert waits == []


@pytest.fixture
def clock(monkeypatch):
    """Sleeping moves the clock on and takes no time; the seconds slept so far."""
    real, slept = time.monotonic, []
    monkeypatch.setattr(time, "monotonic", lambda: real() + sum(slept))
    return slept


@pytest.mark.parametrize(("retries", "deadline"), [(5, 600), (1000, 600), (1000, 45)])
def test_a_rate_limit_that_never_ends_is_given_up_within_the_deadline_and_says_so(
    server, connect, clock, retries, deadline
):
    encoder = connect(patience={"sleep": clock.append, "retries": retries, "deadline": deadline})
    server.default = es.status(429, Retry_After="86400")
    with pytest.raises(EndpointBusy) as caught:
        encoder.encode(["a b"])
    assert sum(clock) <= deadline
    line = str(caught.value)
    assert "\n" not in line
    tries = len(server.requests) - 1
    said = re.search(r"429.*86400 s.*given up after (one try|\d+ tries) in (\d+) s", line)
    assert said, line
    assert said[1] == ("one try" if tries == 1 else f"{tries} tries")
    assert abs(int(said[2]) - sum(clock)) <= 2
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_whole_audit_against_it_ends_too(server, connect, clock, few):
    """Each call is given up by itself, and three in a row are the end: no case waits for a day."""
    encoder = connect(patience={"sleep": clock.append})
    server.default = es.status(429, Retry_After="86400")
    with pytest.raises(ModelError, match="given up after"):
        score_with_encoder(encoder, few)
    assert sum(clock) <= 3 * 600


@pytest.mark.parametrize("behaviour", [es.hang, es.drip])
def test_a_service_that_never_finishes_its_answer_times_out(server, connect, behaviour):
    server.default = behaviour
    with pytest.raises(EndpointBusy, match=r"0\.1 s"):
        connect(timeout=0.1, patience={"retries": 1})
    assert len(server.requests) == 2


def test_one_request_ends_with_the_deadline_too(server, connect):
    server.default = es.hang
    with pytest.raises(EndpointBusy, match=r"within 0\."):
        connect(timeout=5, patience={"deadline": 0.1})
    assert len(server.requests) == 1


def test_an_endless_answer_is_cut_off(server, connect, monkeypatch):
    monkeypatch.setattr(endpoint, "MOST_BYTES_PER_TEXT", 100)
    with pytest.raises(BadAnswer, match="too large"):
        connect()


def test_a_service_that_is_not_there_is_told_at_once(server, connect, waits):
    with es.EmbeddingServer().running() as stopped:
        address = stopped.url
    for gone in (address, "http://a..b/v1", f"http://{'a' * 70}.invalid/v1"):
        with pytest.raises(EndpointError, match="cannot be reached"):
            connect(base_url=gone)
    assert waits == []


def test_without_the_libraries_the_install_line_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tenacity", None)
    with pytest.raises(MissingDependency, match=r"pip install 'clinsafe\[endpoint\]'"):
        endpoint.load(es.MODEL, base_url=REMOTE)


# ── the circuit breaker ─────────────────────────────────────────────────────────────────────────


def test_a_dead_service_is_not_asked_for_ever(server, connect):
    encoder = connect(patience={"retries": 1})
    server.default = es.status(500)
    assert [fails(encoder, ["a b"]) for _ in range(6)] == [EndpointBusy] * 3 + [EndpointGone] * 3
    assert len(server.requests) == 1 + 3 * 2 + 1  # load, three calls of two tries, one last question
    server.default = es.ok
    assert fails(encoder, ["a b"]) is EndpointGone


def test_a_service_that_always_answers_never_trips_it(server, connect):
    encoder = connect(batch_size=1)
    assert len(encoder.encode([f"text {i}" for i in range(50)])) == 50
    assert len(server.requests) == 51


def test_failures_must_be_in_a_row(server, connect):
    encoder = connect()
    for _ in range(4):
        server.script = [es.status(403), es.status(403)]
        assert [fails(encoder, ["a b"]) for _ in range(2)] == [AccessRefused] * 2
        encoder.encode(["a b"])


def test_a_service_that_refuses_many_texts_is_not_gone(server, connect):
    encoder = connect()
    for behaviour in (es.status(413), es.nan):
        server.script = [behaviour] * 10
        assert EndpointGone not in {fails(encoder, ["a b"]) for _ in range(10)}


def test_a_text_that_breaks_a_living_service_is_its_own_fault(server, connect):
    """Some services answer 500 to a text that is too long; the long ones come first, one after the other."""
    encoder = connect(patience={"retries": 0})
    server.poison = {f"long {i}": es.status(500) for i in range(5)}
    assert [fails(encoder, [text]) for text in server.poison] == [EndpointBusy] * 5
    assert encoder.encode(["short"]).shape == (1, 64)


def test_but_not_without_end(server, connect):
    encoder = connect(patience={"retries": 0})
    server.poison = {"long": es.status(500)}
    kinds = [fails(encoder, ["long"]) for _ in range(12)]
    assert kinds == [EndpointBusy] * 9 + [EndpointGone] * 3
    assert fails(encoder, ["short"]) is EndpointGone
