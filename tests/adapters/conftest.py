"""Fixtures of the endpoint tests: a scripted server, and an encoder that waits without taking time."""

from __future__ import annotations

import functools

import pytest

from clinsafe.adapters import endpoint
from clinsafe.adapters.endpoint import Patience
from tests.adapters import embedding_server as es


@pytest.fixture
def clean_environment(monkeypatch):
    for name in ("CLINSAFE_API_KEY", "CLINSAFE_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def certificates():
    import httpx2

    return functools.cache(httpx2.create_ssl_context)


@pytest.fixture
def certificates_read_once(certificates, monkeypatch):
    """Reading them takes 50 ms, most of a test."""
    monkeypatch.setattr("httpx2.create_ssl_context", certificates)


@pytest.fixture
def server():
    with es.EmbeddingServer().running() as running:
        yield running


@pytest.fixture
def waits():
    """The seconds that were not slept."""
    return []


@pytest.fixture
def connect(server, waits, clean_environment, certificates_read_once):
    """Load an encoder for the server; waiting takes no time."""

    def load(name=es.MODEL, *, base_url=None, patience=None, **options):
        patience = Patience(**{"sleep": waits.append, **(patience or {})})
        return endpoint.load(name, base_url=base_url or server.url, patience=patience, **options)

    return load
