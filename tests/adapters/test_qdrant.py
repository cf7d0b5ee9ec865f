"""Qdrant: the embedded engine for real; a server's road through a small one on this machine, which speaks its REST."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from clinsafe.adapters.hnsw import HnswIndex
from clinsafe.adapters.qdrant import KEY, QdrantIndex
from clinsafe.errors import ClinsafeError, ModelError, UsageError

pytest.importorskip("qdrant_client")


def unit(n, seed=0, dim=8):
    rows = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


NAMES = [f"notes/ü {i}.txt#0" for i in range(40)]


def agrees(index):
    """The same as exact search, whatever it is kept in."""
    own = HnswIndex(exact=True)
    own.add(NAMES, unit(40))
    for query in unit(5, 3):
        found, wanted = index.search(query, 7), own.search(query, 7)
        assert [name for name, _ in found] == [name for name, _ in wanted]
        assert [s for _, s in found] == pytest.approx([s for _, s in wanted], abs=1e-5)
    return True


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the library's, at a locked folder
def test_a_folder_keeps_what_it_is_given_and_is_free_after_closing(tmp_path):
    with QdrantIndex("chunks", path=tmp_path) as index:
        assert len(index) == 0
        index.add(NAMES[:25], unit(40)[:25])
        index.add(NAMES[25:], unit(40)[25:])
        assert len(index) == 40
        assert agrees(index)
        with pytest.raises(UsageError, match="another program has it open"):
            QdrantIndex("chunks", path=tmp_path)
    with QdrantIndex("chunks", path=tmp_path) as index:
        assert len(index) == 40
        assert agrees(index)
        assert len(index.search(unit(1)[0], 500)) == 40


def test_an_id_that_is_there_gets_its_new_vector(tmp_path):
    with QdrantIndex("c", path=tmp_path) as index:
        index.add(["a", "b"], unit(2))
        index.add(["a"], unit(2)[1:])
        assert len(index) == 2
        assert index.search(unit(2)[1], 2) == [
            ("a", pytest.approx(1, abs=1e-5)),
            ("b", pytest.approx(1, abs=1e-5)),
        ]


def test_what_cannot_be_kept_or_found_is_refused(tmp_path):
    with QdrantIndex("c", path=tmp_path) as index:
        with pytest.raises(UsageError, match="no collection"):
            index.search(unit(1)[0], 1)
        bad = unit(2)
        bad[1, 0] = np.nan
        with pytest.raises(ModelError, match="row 1"):
            index.add(["a", "b"], bad)
        assert len(index) == 0
        for ids, rows, said in ((["a"], unit(2), "one for each"), (["a", "a"], unit(2), "twice")):
            with pytest.raises(UsageError, match=said):
                index.add(ids, rows)
        index.add(["a"], unit(1))
        with pytest.raises(UsageError, match="8 numbers, not 4"):
            index.add(["b"], unit(1, dim=4))
        for vector, k, said in (
            (unit(1)[0], 0, "k is 0"),
            (np.full(8, np.nan), 1, "NaN"),
            (unit(1, dim=4)[0], 1, "vectors of 8"),
        ):
            with pytest.raises(UsageError, match=said):
                index.search(vector, k)
        with pytest.raises(UsageError, match="keeps its vectors itself"):
            index.save(str(tmp_path))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "a path"),
        ({"path": "x", "url": "http://localhost:1"}, "not both"),
        ({"url": "localhost:6333"}, "http or https"),
        ({"url": "ftp://host"}, "http or https"),
        ({"url": "http://[bad"}, "http or https"),
        ({"url": "http://host:99999999"}, "http or https"),
        ({"url": "https://me:s3cret@host:6333"}, "password"),
        ({"url": "http://far.example:6333"}, "over http"),
    ],
)
def test_an_address_that_is_none_or_would_show_a_secret_is_refused(monkeypatch, options, said):
    monkeypatch.setenv(KEY, "k3y")
    with pytest.raises(UsageError, match=said) as caught:
        QdrantIndex("c", **options)
    assert "s3cret" not in str(caught.value)
    assert "k3y" not in str(caught.value)


# ── a server ───────────────────────────────────────────────────────────────────────────────────


class Server(BaseHTTPRequestHandler):
    """As much of Qdrant's REST interface as the adapter uses; scores are inner products of what was sent."""

    def do_GET(self):
        self.server.keys.append(self.headers.get("api-key"))
        name, _, rest = self.path.removeprefix("/collections/").partition("/")
        there = self.server.collections.get(name)
        if rest == "exists":
            return self.answer({"exists": there is not None})
        params = {"vectors": {"size": there["size"], "distance": "Cosine"}}
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizer = {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        }
        config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
        return self.answer(
            {
                "status": "green",
                "optimizer_status": "ok",
                "segments_count": 1,
                "config": config,
                "payload_schema": {},
            }
        )

    def do_PUT(self):
        name, _, rest = self.path.partition("?")[0].removeprefix("/collections/").partition("/")
        body = self.body()
        if not rest:
            self.server.collections[name] = {"size": body["vectors"]["size"], "points": {}}
            return self.answer(True)
        for point in body["points"]:
            self.server.collections[name]["points"][point["id"]] = point
        return self.answer({"operation_id": 1, "status": "completed"})

    def do_POST(self):
        if self.server.status != 200:
            self.body()
            return self.send(self.server.status, b"secret details")
        name, _, rest = self.path.partition("?")[0].removeprefix("/collections/").partition("/")
        body, points = self.body(), self.server.collections[name]["points"].values()
        if rest == "points/count":
            return self.answer({"count": len(points)})
        scored = [(float(np.dot(p["vector"], body["query"]["nearest"])), p) for p in points]
        scored.sort(key=lambda pair: -pair[0])
        best = [
            {"id": p["id"], "version": 0, "score": s, "payload": p["payload"]}
            for s, p in scored[: body["limit"]]
        ]
        return self.answer({"points": best})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def answer(self, result):
        self.send(200, json.dumps({"result": result, "status": "ok", "time": 0.1}).encode())

    def send(self, status, data):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    made.collections, made.keys, made.status = {}, [], 200
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_a_server_is_asked_by_the_same_code(server):
    with QdrantIndex("chunks", url=f"http://127.0.0.1:{server.server_port}") as index:
        index.add(NAMES, unit(40))
        assert len(index) == 40
        assert agrees(index)
    assert set(server.keys) == {None}


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_what_a_server_refuses_is_one_line_without_its_words(server, status):
    with QdrantIndex("chunks", url=f"http://127.0.0.1:{server.server_port}") as index:
        index.add(NAMES, unit(40))
        server.status = status
        with pytest.raises(ClinsafeError) as caught:
            index.search(unit(1)[0], 3)
    assert "secret" not in str(caught.value)
    assert "Qdrant" in str(caught.value)


def test_no_server_is_one_line():
    with (
        QdrantIndex("chunks", url="http://127.0.0.1:9") as index,
        pytest.raises(ClinsafeError, match="does not answer"),
    ):
        index.search(unit(1)[0], 3)


def test_the_key_of_the_environment_reaches_the_server_and_no_message(server, monkeypatch):
    monkeypatch.setenv(KEY, "k3y")
    with QdrantIndex("chunks", url=f"http://127.0.0.1:{server.server_port}") as index:
        index.add(NAMES, unit(40))
        assert "k3y" not in repr(index)
        server.status = 401
        with pytest.raises(ClinsafeError) as caught:
            index.search(unit(1)[0], 3)
    assert set(server.keys) == {"k3y"}
    assert "k3y" not in str(caught.value)
