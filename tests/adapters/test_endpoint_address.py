"""The address of an endpoint, its key, proxies, and ``--offline``."""

from __future__ import annotations

import traceback

import pytest

from clinsafe.adapters import endpoint
from clinsafe.adapters.offline import only_this_machine
from clinsafe.errors import OfflineError, UsageError
from tests.adapters import embedding_server as es
from tests.adapters.embedding_server import KEY, REMOTE

pytestmark = pytest.mark.usefixtures("clean_environment", "certificates_read_once")


# ── the address, proxies, --offline ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8080/v1",
        "ftp://localhost/v1",
        "file:///etc/passwd",
        "http:///v1",
        "http://localhost:port/v1",
        "http://localhost:99999/v1",
        f"https://user:{KEY}@example.org/v1",
        f"https://{KEY}@example.org/v1",
        f"{KEY}:{KEY}@example.org/v1",
        f"https://example.org/v1?api-key={KEY}",
        f"https://example.org/v1#{KEY}",
        f"https://exa mple.org/\n{KEY}",
    ],
)
def test_an_unusable_address_is_refused_and_not_repeated(address):
    with pytest.raises(UsageError) as caught:
        endpoint.load(es.MODEL, base_url=address)
    shown = "".join(traceback.format_exception(caught.value))
    assert "--base-url http" in shown
    assert KEY not in shown
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown", "loopback"),
    [
        ("http://LOCALHOST/v1/", "localhost", True),
        ("https://[::1]:8443/v1", "[::1]:8443", True),
        ("http://127.9.9.9:1/v1", "127.9.9.9:1", True),
        ("https://user.example.org:443/v1", "user.example.org", False),
        ("http://localhost.example.org:8080/v1", "localhost.example.org:8080", False),
        ("http://127.0.0.1.example.org/v1", "127.0.0.1.example.org", False),
    ],
)
def test_the_address_is_read_as_the_http_library_reads_it(address, shown, loopback):
    url = endpoint.parse_address(address)
    assert url.netloc.decode() == shown
    assert url.path == "/v1/embeddings"
    assert endpoint.on_this_machine(url) is loopback


@pytest.mark.parametrize("options", [
    {"timeout": 0}, {"timeout": float("nan")}, {"timeout": float("inf")}, {"batch_size": 0}, {"revision": "main"},
    {"name": ""}, {"name": "a\nb"},
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(server, connect, options):
    with pytest.raises(UsageError):
        connect(**options)
    assert server.requests == []


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(server, connect, monkeypatch):
    for key in (f"{KEY} {KEY}", f"{KEY}\n{KEY}", f"{KEY}é"):
        monkeypatch.setenv("CLINSAFE_API_KEY", key)
        with pytest.raises(UsageError) as caught:
            connect()
        assert KEY not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


@pytest.mark.parametrize("proxy", ["http://user:pw@192.0.2.1:9", "socks5://192.0.2.1:9", "nonsense://x"])
def test_no_proxy_stands_between_this_machine_and_itself(server, connect, monkeypatch, proxy):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    assert connect().encode(["a b"]).shape == (1, 64)
    assert connect(base_url=server.url.replace("127.0.0.1", "localhost")).encode(["a b"]).shape == (1, 64)


def test_a_proxy_is_used_for_other_machines_and_an_unusable_one_is_not_repeated(server, connect, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.origin)
    connect(base_url="http://embeddings.invalid/v1")
    assert server.requests[0].path == "http://embeddings.invalid/v1/embeddings"
    monkeypatch.setenv("HTTP_PROXY", f"nonsense://user:{KEY}@host")
    with pytest.raises(UsageError) as caught:
        connect(base_url="http://embeddings.invalid/v1")
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_offline_leaves_this_machine_open(connect):
    with only_this_machine(True):
        assert connect(offline=True).encode(["a b"]).shape == (1, 64)


def test_offline_refuses_another_machine_once_even_through_a_proxy_here(server, connect, waits, monkeypatch):
    with only_this_machine(True), pytest.raises(OfflineError) as caught:
        connect(base_url=REMOTE)  # by the switch alone
    assert "192.0.2.1" in str(caught.value)
    monkeypatch.setenv("HTTP_PROXY", server.origin)
    with pytest.raises(OfflineError):
        connect(base_url=REMOTE, offline=True)
    assert server.requests == []
    assert waits == []
