"""Encoders by name, real and fake; the lexical baseline; the offline switch."""

from __future__ import annotations

import socket
import subprocess
import sys

import numpy as np
import pytest

from clinsafe import plugins
from clinsafe.adapters.encoders import load_encoder
from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.reference import FakeEncoder, LookupEncoder
from clinsafe.errors import MissingDependency, ModelError, OfflineError, UnknownModel, UsageError


def test_minilm_is_the_real_model(minilm):
    """Real weights tell topics apart and hardly tell a statement from its negation."""
    a, b, c = minilm.encode(
        ["The patient has diabetes", "The patient does not have diabetes", "Take the lift"]
    )
    assert a.dtype == np.float32
    assert a.shape == (384,)
    assert np.linalg.norm(a) == pytest.approx(1, abs=1e-5)
    assert 0.7 < a @ b < 0.99
    assert a @ c < 0.4
    assert minilm.identity.settings["dtype"] == "float32"
    assert minilm.identity.settings["dimension"] == "384"
    assert minilm.identity.settings["pooling"] == "mean"


def test_no_verdict_can_depend_on_the_batch(minilm):
    texts = [f"Potassium {i / 10} mmol/L, repeat in {i} hours." * (1 + i % 4) for i in range(40)]
    together = minilm.encode(texts)
    alone = np.vstack([minilm.encode([t]) for t in texts])
    assert np.abs((together * alone).sum(1) - 1).max() < 1e-5
    pairs = np.abs(together @ together.T - alone @ alone.T)
    assert pairs.max() < 1e-5


def test_fakes_mark_themselves_and_are_deterministic():
    for kind in ("hash", "words", "constant"):
        encoder = load_encoder(f"fake:{kind}")
        assert encoder.identity.fake
        assert np.array_equal(encoder.encode(["a b"]), FakeEncoder(kind).encode(["a b"]))
    words = FakeEncoder("words")
    assert words.encode(["fall caused bleed"])[0] @ words.encode(["bleed caused fall"])[0] == pytest.approx(1)
    assert FakeEncoder("hash").encode([]).shape == (0, 64)
    assert LookupEncoder({"x": (3, 4)}, (1, 0)).encode(["x"])[0] == pytest.approx([0.6, 0.8])


def test_an_unknown_fake_lists_the_known_ones():
    with pytest.raises(UnknownModel, match="constant, hash, words"):
        load_encoder("fake:nothing")


def test_a_colon_is_only_a_plugin_prefix_where_there_is_such_a_plugin():
    with pytest.raises(UnknownModel):
        load_encoder("C:\\models\\x")


def test_a_folder_that_is_no_model_is_one_line(tmp_path):
    with pytest.raises(ModelError) as caught:
        load_encoder(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_plugins_are_listed_and_explained():
    assert {"sentence-transformers", "fake"} <= set(plugins.available("encoders"))
    with pytest.raises(UsageError, match="sentence-transformers"):
        plugins.load("encoders", "nothing")
    with pytest.raises(UsageError, match="none installed"):
        plugins.load("judges", "nothing")


def test_a_plugin_whose_package_is_missing_says_how_to_install_it(monkeypatch):
    class Point:
        name, dist = "broken", None

        def load(self):
            raise ModuleNotFoundError("No module named 'gone'", name="gone")

    monkeypatch.setattr(plugins, "available", lambda kind: {"broken": Point()})
    with pytest.raises(MissingDependency, match="pip install gone"):
        plugins.load("encoders", "broken")


def test_without_sentence_transformers_the_install_line_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"pip install 'clinsafe\[audit\]'"):
        load_encoder("minilm", offline=True)


def test_jaccard_counts_words_not_meaning():
    pairs = [("has fever", "has no fever"), ("A b", "b a"), ("x", "y"), ("...", "!!!")]
    assert TokenJaccard().score(pairs) == pytest.approx([2 / 3, 1, 0, 0])


PROBE = """
import socket
from clinsafe.adapters.offline import refuse_connections
from clinsafe.errors import OfflineError
server = socket.create_server(("127.0.0.1", 0))
refuse_connections()
socket.create_connection(server.getsockname()).close()          # loopback stays open
socket.getaddrinfo("localhost", 80)
for attempt in (
    lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
    lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80)),
    lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
    lambda: socket.getaddrinfo("example.org", 443),
    lambda: socket.gethostbyname("example.org"),
):
    try:
        attempt()
    except OfflineError:
        continue
    raise SystemExit("a connection got out")
import urllib.request
try:
    urllib.request.urlopen("http://192.0.2.1/")
except Exception as error:
    assert "--offline" in str(error), error
else:
    raise SystemExit("urllib got out")
print("refused")
"""


def test_offline_refuses_every_way_out_and_keeps_loopback():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "refused", done.stderr


def test_the_offline_switch_can_be_turned_off_again():
    from clinsafe.adapters.offline import refuse_connections

    refuse_connections()
    try:
        with pytest.raises(OfflineError):
            socket.getaddrinfo("example.org", 443)
    finally:
        refuse_connections(False)
