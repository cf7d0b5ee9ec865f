"""``--backend onnx``: exports that give torch's cosines, are kept once and are never trusted unseen."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from clinsafe.adapters import onnx_export
from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.onnx import OnnxEncoder
from clinsafe.content import sha256_file
from clinsafe.errors import ModelError
from tests.adapters.tiny_onnx import (
    graph,
    onnx_model,
    quantised,
    tiny_sentence_transformer,
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


LIKE_TORCH = ["no fever", "the patient has no pain", "the patient denies fever . " * 20, "", "a"]


def cosines(encoder: Any, texts: list[str]) -> np.ndarray:
    rows = np.asarray(encoder.encode(texts), dtype=np.float64)
    return rows @ rows.T


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_an_export_gives_torchs_cosines_and_is_made_once(tmp_path, monkeypatch, pooling):
    folder = tiny_sentence_transformer(tmp_path / "model", pooling=pooling)
    torch_side = load_model(str(folder))
    exported = load_model(str(folder), ModelOptions(backend="onnx"))
    assert isinstance(exported, OnnxEncoder)
    assert np.abs(cosines(torch_side, LIKE_TORCH) - cosines(exported, LIKE_TORCH)).max() < 1e-5
    settings = exported.identity.settings
    assert settings["dtype"] == "float32"
    assert settings["max_tokens"] == torch_side.identity.settings["max_tokens"]
    assert "exported to ONNX with torch" in settings["origin"]
    assert {"model.safetensors", "exported.onnx"} <= set(exported.identity.files)
    monkeypatch.setattr(onnx_export, "_trace", lambda *_: pytest.fail("exported again"))
    again = load_model(str(folder), ModelOptions(backend="onnx"))
    assert again.identity == exported.identity
    assert np.array_equal(again.encode(LIKE_TORCH), exported.encode(LIKE_TORCH))


def test_a_damaged_export_is_made_again_and_other_weights_have_another(tmp_path):
    folder = tiny_sentence_transformer(tmp_path / "model")
    load_model(str(folder), ModelOptions(backend="onnx"))
    (kept,) = onnx_export.cache_folder().rglob("*.onnx")
    kept.write_bytes(kept.read_bytes()[:-1] + b"\x00\x01")
    exported = load_model(str(folder), ModelOptions(backend="onnx"))
    assert exported.identity.files["exported.onnx"] == sha256_file(kept)
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    load_model(str(folder), ModelOptions(backend="onnx"))
    assert len({file.parent for file in onnx_export.cache_folder().rglob("*.onnx")}) == 2
    assert all(file.is_file() for file in onnx_export.cache_folder().rglob("*.onnx"))
    assert not list(onnx_export.cache_folder().rglob("tmp*"))


def test_an_export_that_differs_from_torch_is_never_kept(tmp_path, monkeypatch):
    folder = tiny_sentence_transformer(tmp_path / "model")
    monkeypatch.setattr(
        onnx_export, "_trace", lambda _encoder, target, _name: onnx.save_model(graph(), str(target))
    )
    with pytest.raises(ModelError, match=r"other cosines as ONNX than with torch.*--backend torch"):
        load_model(str(folder), ModelOptions(backend="onnx"))
    assert not list(onnx_export.cache_folder().rglob("*.onnx"))


def test_a_module_that_the_graph_would_leave_out_is_refused(tmp_path):
    folder = tiny_sentence_transformer(tmp_path / "model", dense=True)
    assert load_model(str(folder)).encode(["fever"]).shape == (1, 8)
    with pytest.raises(ModelError, match=r"module 'Dense'.*--backend torch"):
        load_model(str(folder), ModelOptions(backend="onnx"))


def test_a_shipped_fp32_file_is_used_and_a_quantised_one_is_not(tmp_path, monkeypatch):
    folder = tiny_sentence_transformer(tmp_path / "model")
    onnx_model(tmp_path / "other", quantised())
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes((tmp_path / "other" / "model.onnx").read_bytes())
    assert "exported.onnx" in load_model(str(folder), ModelOptions(backend="onnx")).identity.files
    onnx.save_model(graph(), folder / "onnx" / "model.onnx")
    monkeypatch.setattr(onnx_export, "_export", lambda *_: pytest.fail("exported"))
    shipped = load_model(str(folder), ModelOptions(backend="onnx")).identity
    assert "onnx/model.onnx" in shipped.files
    assert "model.safetensors" not in shipped.files
    by_torch = load_model(str(folder)).identity
    assert "model.safetensors" in by_torch.files
    assert "onnx/model.onnx" not in by_torch.files


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = tiny_sentence_transformer(tmp_path / "model")
    with pytest.raises(ModelError, match="XDG_CACHE_HOME"):
        load_model(str(folder), ModelOptions(backend="onnx"))


def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(sys, "platform", "linux")
    assert onnx_export.cache_folder() == tmp_path / ".cache" / "clinsafe" / "onnx"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert onnx_export.cache_folder() == tmp_path / "Library" / "Caches" / "clinsafe" / "onnx"


def test_pooling_that_leaves_the_prompt_out_is_refused_only_with_a_prompt(tmp_path):
    folder = tiny_sentence_transformer(tmp_path / "model", include_prompt=False)
    options = ModelOptions(backend="onnx")
    assert load_model(str(folder), options).encode(["fever"]).shape == (1, 16)
    with pytest.raises(ModelError, match="--backend torch"):
        load_model(str(folder), replace(options, query_prompt="query : "))


@pytest.mark.slow
def test_minilm_gives_the_same_pair_cosines_over_the_whole_suite(minilm, suite):
    exported = load_model("minilm", ModelOptions(backend="onnx", offline=True))
    texts = [text for case in suite for text in (case.a, case.b, case.a_same, case.b_same)]
    both = [np.asarray(side.encode(texts), dtype=np.float64) for side in (minilm, exported)]
    by_torch, by_onnx = (rows.reshape(len(suite), 4, -1) for rows in both)
    off = float(np.abs(by_torch @ by_torch.mT - by_onnx @ by_onnx.mT).max())
    print(f"largest change of a pair cosine: {off:.2e}")
    assert off < 1e-5
