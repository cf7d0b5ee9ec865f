"""ONNX folders: which file is run, what is hashed, what is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.onnx import OnnxEncoder
from clinsafe.content import sha256_file
from clinsafe.errors import MissingDependency, ModelError, UntrustedModel
from tests.adapters.test_cross_encoder import WORDS
from tests.adapters.tiny_onnx import (
    TABLE,
    TEXTS,
    WIDTH,
    graph,
    onnx_model,
)

# ── which file ─────────────────────────────────────────────────────────────────────────────────


def test_the_usual_names_win_and_a_single_file_may_be_called_anything(tmp_path):
    for number, file in enumerate(("model.onnx", "onnx/model.onnx", "exported.onnx")):
        found = load_model(str(onnx_model(tmp_path / str(number), file=file)))
        assert file in found.identity.files
    both = onnx_model(onnx_model(tmp_path / "both", file="onnx/model.onnx"), file="onnx/model_O3.onnx")
    found = load_model(str(both))
    assert "onnx/model.onnx" in found.identity.files
    assert "onnx/model_O3.onnx" not in found.identity.files


def test_several_files_are_named_and_the_path_of_one_is_a_spec(tmp_path):
    folder = onnx_model(tmp_path / "several", file="onnx/a.onnx")
    onnx_model(folder, graph(table=TABLE.astype(np.float16)), file="onnx/b.onnx")
    with pytest.raises(ModelError, match=r"onnx/a\.onnx, onnx/b\.onnx; give the path"):
        load_model(str(folder))
    found = load_model(str(folder / "onnx" / "b.onnx"))
    assert found.identity.name == "several/onnx/b.onnx"
    assert found.identity.settings["dtype"] == "fp16 (not fp32)"
    assert "onnx/b.onnx" in found.identity.files
    assert "onnx/a.onnx" not in found.identity.files


def test_everything_that_shapes_the_vectors_is_hashed_and_nothing_else(tmp_path):
    folder = onnx_model(tmp_path / "model")
    (folder / "vocab.txt").write_text("x")
    (folder / "picture.png").write_bytes(b"x")
    found = load_model(str(folder)).identity
    assert set(found.files) == {
        "model.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "1_Pooling/config.json",
    }  # fmt: skip
    assert found.files["model.onnx"] == sha256_file(folder / "model.onnx")
    assert str(tmp_path) not in json.dumps([found.name, dict(found.files), dict(found.settings)])


# ── bad folders ────────────────────────────────────────────────────────────────────────────────


def _cut(folder: Path) -> None:
    file = folder / "model.onnx"
    file.write_bytes(file.read_bytes()[:150])


def _external(folder: Path, location: str = "model.onnx_data") -> None:
    onnx.save_model(
        graph(), folder / "model.onnx", save_as_external_data=True, location=location, size_threshold=0
    )


def _lost(folder: Path) -> None:
    _external(folder)
    (folder / "model.onnx_data").unlink()


def _outside(folder: Path) -> None:
    _external(folder)
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../../model.onnx_data"
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def _custom(folder: Path) -> None:
    model = graph()
    model.graph.node[0].domain = "somebody.else"
    model.opset_import.append(helper.make_opsetid("somebody.else", 1))
    onnx.save_model(model, folder / "model.onnx")


def _asks(*names: str) -> Any:
    return lambda folder: onnx.save_model(graph(asks=names), folder / "model.onnx")


def _two_outputs(folder: Path) -> None:
    model = graph("sentence_embedding")
    model.graph.node.append(helper.make_node("Identity", ["mean"], ["second"]))
    model.graph.node[-2].output[0] = model.graph.output[0].name = "first"
    model.graph.output.append(helper.make_tensor_value_info("second", TensorProto.FLOAT, ["batch", WIDTH]))
    onnx.save_model(model, folder / "model.onnx")


def _dense(folder: Path) -> None:
    module = {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}
    (folder / "modules.json").write_text(json.dumps([module]))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "damaged tokenizer.json"),
        (lambda f: (f / "model.onnx").write_bytes(b""), "cannot be loaded by onnxruntime"),
        (lambda f: (f / "model.onnx").write_bytes(b"hello"), "damaged ONNX file"),
        (_cut, "damaged ONNX file"),
        (_lost, r"model\.onnx_data"),
        (_outside, "outside its folder"),
        (_custom, "custom operators.*never loaded"),
        (_asks("input_ids", "position_ids"), "asks for position_ids"),
        (_asks("input_ids", "past_key_values.0.key"), "asks for past_key_values"),
        (_two_outputs, "gives first, second"),
        (_dense, "module 'Dense'"),
    ],
)
def test_a_bad_folder_is_one_line(tmp_path, spoil, words, capfd):
    folder = onnx_model(tmp_path / "model")
    assert isinstance(load_model(str(folder)), OnnxEncoder)
    spoil(folder)
    with pytest.raises(ModelError, match=words) as caught:
        load_model(str(folder))
    assert "\n" not in str(caught.value)
    assert "'model'" in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_tokenizer_that_does_not_fit_fails_on_the_text_and_not_silently(tmp_path):
    """The lookup refuses an id beyond its table; scoring then calls the case not measured."""
    folder = onnx_model(tmp_path / "model", graph(table=TABLE[:-1]))
    encoder = load_model(str(folder))
    assert encoder.encode(["no fever"]).shape == (1, WIDTH)
    with pytest.raises(Exception, match="out of data bounds"):
        encoder.encode([f"no fever {WORDS[-1]}"])


@pytest.mark.parametrize("linked", [False, True])
def test_external_data_is_hashed_and_found_behind_links(tmp_path, linked):
    """The hub's cache keeps files elsewhere and links them into the folder."""
    folder = onnx_model(tmp_path / "model")
    _external(folder)
    if linked:
        blobs = tmp_path / "blobs"
        blobs.mkdir()
        for name in ("model.onnx", "model.onnx_data"):
            (folder / name).rename(blobs / name)
            (folder / name).symlink_to(os.path.relpath(blobs / name, folder))
    found = load_model(str(folder))
    assert found.identity.files["model.onnx_data"] == sha256_file(folder / "model.onnx_data")
    assert found.encode(TEXTS).shape == (len(TEXTS), WIDTH)


def test_external_data_of_any_name_is_hashed(tmp_path):
    folder = onnx_model(tmp_path / "model")
    _external(folder, location="numbers")
    assert "numbers" in load_model(str(folder)).identity.files


def test_pickles_and_code_beside_a_graph_are_refused(tmp_path):
    folder = onnx_model(tmp_path / "model")
    (folder / "weights.pkl").write_bytes(b"\x80")
    with pytest.raises(UntrustedModel, match="pickled weights"):
        load_model(str(folder / "model.onnx"))
    (folder / "weights.pkl").unlink()
    (folder / "custom.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UntrustedModel, match="Python code"):
        load_model(str(folder))
    assert load_model(str(folder), ModelOptions(trust_remote_code=True)).identity.trusted_code


@pytest.mark.parametrize("package", ["onnxruntime", "onnx", "tokenizers"])
def test_a_missing_package_says_how_to_install_it(tmp_path, monkeypatch, package):
    folder = onnx_model(tmp_path / "model")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"{package}.*pip install 'clinsafe\[onnx\]'"):
        load_model(str(folder))
