"""``--backend onnx`` for a sentence-transformers model: its own float32 ONNX file, or one exported here once.

The export is torch's TorchScript exporter: it needs the ``onnx`` package only, where the newer one needs
two more. A traced graph can be wrong for inputs of another shape, so a fresh export counts only if
it gives torch's cosines on texts of many lengths. Exports are kept in the user's cache folder under a key of
everything they depend on, each file named by its own hash: a damaged one is made again, never run.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from clinsafe.adapters.onnx import INPUTS, OnnxEncoder, OnnxSession, choose_pooling
from clinsafe.adapters.onnx_graph import INSTALL, inspect
from clinsafe.adapters.sentence_transformers import SentenceTransformerEncoder, pooling_mode, refuse_modules
from clinsafe.adapters.weights import ModelFolder, choose_graph
from clinsafe.content import sha256_file
from clinsafe.errors import MissingDependency, ModelError

FORMAT = "1"
"""Raise this when the export itself changes, so that older files are not found any more."""

OPSET = 17
TOLERANCE = 1e-5
"""Largest change of a pair cosine against torch: ten times what float32 arithmetic gives, far below any effect."""

CHECK = (
    "",
    "No fever.",
    "The patient has type 2 diabetes and takes metformin 500 mg twice daily.",
    "Ménière's disease; potassium 5.4 mmol/L (↑), repeat in 6 h. " * 4,
    "Chest pain cannot be ruled out as a cause of the admission, " * 60,
)


def onnx_folder(folder: ModelFolder, *, pooling: str | None = None) -> ModelFolder:
    """The folder with a float32 graph: the model's own where it ships one, else exported or from the cache.

    Args:
        folder: vetted files of a sentence-transformers model.
        pooling: what the user gave; a model that does not say its own cannot do without.

    Raises:
        ModelError: modules that a graph would leave out, an unknown pooling, or the export fails or differs
            from torch.
        MissingDependency: torch, sentence-transformers or onnx is not installed.
    """
    refuse_modules(folder.path, folder.name)
    choose_pooling(folder, pooling)  # before the minutes that an export takes
    own = _shipped(folder)
    if own is not None:
        return folder.with_graph(own)
    place = cache_folder() / _key(folder)
    graph = _cached(place) or _export(folder, place)
    origin = f"{folder.origin}, exported to ONNX with torch {_version('torch')}"
    return replace(folder, graph=graph, origin=origin, files={**folder.files, "exported.onnx": graph.stem})


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/clinsafe/onnx``, or the same below the platform's own folder for caches."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG specification ignores relative paths
        home = Path.home()
        base = home / ".cache"
        if sys.platform == "darwin":
            base = home / "Library" / "Caches"
        elif sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return base / "clinsafe" / "onnx"


def _shipped(folder: ModelFolder) -> Path | None:
    try:
        graph = choose_graph(folder.path)
    except ModelError:  # several variants of one model: none of them is *the* model, so export it
        return None
    return graph if graph and inspect(graph, folder.name).dtype == "float32" else None


def _key(folder: ModelFolder) -> str:
    parts = [
        FORMAT,
        str(OPSET),
        *(_version(name) for name in ("torch", "transformers", "sentence-transformers")),
    ]
    parts += [f"{name} {digest}" for name, digest in sorted(folder.files.items())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise MissingDependency(
            "--backend onnx for this model", package, "pip install 'clinsafe[audit]'"
        ) from error


def _cached(place: Path) -> Path | None:
    return next((file for file in sorted(place.glob("*.onnx")) if sha256_file(file) == file.stem), None)


def _export(folder: ModelFolder, place: Path) -> Path:
    encoder = SentenceTransformerEncoder(folder, device="cpu")
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            fresh = Path(scratch) / "model.onnx"
            _trace(encoder, fresh, folder.name)
            # Torch pools as the folder says, or by the library's default where it says nothing.
            default = encoder.identity.settings["pooling"].replace("lasttoken", "last")
            pooling = None if pooling_mode(folder.path) else default
            session = OnnxSession(replace(folder, graph=fresh))
            _compare(encoder, OnnxEncoder(session, pooling=pooling), folder.name)
            kept = place / f"{sha256_file(fresh)}.onnx"
            fresh.replace(kept)
    except OSError as error:
        raise ModelError(
            f"the export of {folder.name!r} cannot be kept in {cache_folder()}: {error.strerror or error}; make it "
            "writable, or set XDG_CACHE_HOME to a folder with room"
        ) from error
    return kept


def _trace(encoder: SentenceTransformerEncoder, target: Path, name: str) -> None:
    """Write the transformer alone, in float32, with batch and length left open."""
    try:
        import onnx  # noqa: F401 - the exporter needs it and says so only after a minute's work
    except ImportError as error:
        raise MissingDependency("--backend onnx for this model", "onnx", INSTALL) from error
    import torch

    class HiddenStates(torch.nn.Module):
        def __init__(self, transformer: Any, names: list[str]) -> None:
            super().__init__()
            self.transformer, self.names = transformer, names

        def forward(self, *values: Any) -> Any:
            return self.transformer(**dict(zip(self.names, values, strict=True))).last_hidden_state

    # Padding in the example: without it some models leave their mask out of the trace.
    example = encoder.tokenizer(list(CHECK[1:3]), padding=True, return_tensors="pt")
    inputs = [entry for entry in INPUTS if entry in example]
    free = {entry: {0: "batch", 1: "tokens"} for entry in (*inputs, "last_hidden_state")}
    module = HiddenStates(encoder.modules[0].auto_model.float(), inputs).eval()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # the trace is checked against torch, whatever it warns of
            torch.onnx.export(
                module,
                tuple(example[entry] for entry in inputs),
                str(target),
                input_names=inputs,
                output_names=["last_hidden_state"],
                dynamic_axes=free,
                opset_version=OPSET,
                dynamo=False,
            )
    except Exception as error:  # an architecture that cannot be traced raises anything
        raise ModelError(
            f"model {name!r} cannot be exported to ONNX ({type(error).__name__}: {str(error)[:200]}); use "
            "--backend torch"
        ) from error


def _compare(torch_side: SentenceTransformerEncoder, onnx_side: OnnxEncoder, name: str) -> None:
    a, b = (np.asarray(side.encode(CHECK), dtype=np.float64) for side in (torch_side, onnx_side))
    off = float(np.abs(a @ a.T - b @ b.T).max()) if a.shape == b.shape else float("inf")
    own = float(np.abs(1 - (a * b).sum(axis=1)).max()) if a.shape == b.shape else float("inf")
    if not max(off, own) <= TOLERANCE:
        raise ModelError(
            f"model {name!r} gives other cosines as ONNX than with torch (by up to {max(off, own):.1e}, allowed "
            f"{TOLERANCE:.0e}); use --backend torch"
        )
