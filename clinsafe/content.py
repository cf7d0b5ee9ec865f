"""Locate, load, validate and hash controlled content: the suite, checklist, mitigations, report templates.

Content is packaged as ``clinsafe/_content/<folder>``; in a checkout it is the top-level folders. An
overlay directory (``--content DIR``) is looked at first, file by file, so that an institution changes
one file without copying the rest. Every file that was read is hashed into the evidence.

YAML is read with ``BaseLoader``: every scalar stays a string and pydantic types it. (``safe_load`` turns
the cue ``no`` into False and ``1:10`` into 70.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from clinsafe.errors import ContentError, UsageError

LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # the same one, in C where it was built
FOLDERS = ("benchmarks", "checklist", "mitigations", "reports")


class Record(BaseModel):
    """Base of everything read from or written to a file: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


R = TypeVar("R", bound=BaseModel)


def packaged_root() -> Path:
    """The installed content tree, or the checkout's."""
    here = Path(__file__).resolve().parent
    inside = here / "_content"
    return inside if inside.is_dir() else here.parent


@dataclass(slots=True)
class Content:
    """The content tree with an optional overlay. Remembers the hash of each file it handed out.

    Args:
        overlay: a directory laid out like the content tree (``checklist/gates.yaml`` …).
    """

    overlay: Path | None = None
    hashes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.overlay is None:
            return
        self.overlay = Path(self.overlay)
        if not self.overlay.is_dir():
            raise UsageError(f"content overlay {self.overlay} is not a directory")
        for entry in sorted(self.overlay.iterdir()):
            if entry.name not in FOLDERS and not entry.name.startswith("."):
                valid = ", ".join(f"{name}/" for name in FOLDERS)
                raise UsageError(
                    f"{entry}: not a part of the content tree; an overlay holds {valid} as the tree does"
                )

    def path(self, name: str) -> Path:
        """Where a content file lies; the overlay wins."""
        for root in (self.overlay, packaged_root()):
            if root is not None and (root / name).is_file():
                return root / name
            if root is not None and (root / name).exists():
                raise ContentError(root / name, None, None, "is not a file")
        raise ContentError(packaged_root() / name, None, None, "content file is missing; reinstall clinsafe")

    def names(self, folder: str, suffix: str) -> tuple[str, ...]:
        """Names (without suffix) of the files in a content folder, an overlay's among them; sorted."""
        roots = (root for root in (self.overlay, packaged_root()) if root is not None)
        return tuple(sorted({path.stem for root in roots for path in (root / folder).glob(f"*{suffix}")}))

    def touch(self, name: str) -> Path:
        """Like `path`, and remember the file's hash."""
        path = self.path(name)
        self.hashes[name] = sha256_file(path)
        return path

    def yaml(self, name: str, model: type[R]) -> R:
        """One YAML file as a validated record; the same one again while the file holds the same text."""
        path = self.touch(name)
        return cast(R, _kept(path, _read(path), model))

    def jsonl(self, name: str, model: type[R]) -> list[R]:
        """A JSON Lines file as validated records."""
        return load_jsonl(self.touch(name), model)


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def load_yaml(path: Path, model: type[R]) -> R:
    """Validate a YAML file.

    Raises:
        ContentError: with file, line and field of the first fault; duplicate keys are faults.
    """
    return _validated(path, _read(path), model)


def _validated(path: Path, text: str, model: type[R]) -> R:
    loader = None
    try:
        loader = LOADER(text)
        tree = loader.get_single_node()
        if tree is None:
            raise ContentError(path, 1, None, "the file is empty")
        _refuse_duplicates(path, tree)
        data = loader.construct_document(tree)  # of the same tree: parsing takes most of the time
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ContentError(path, line, None, f"not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ContentError(path, None, None, f"not valid YAML: {error}") from error
    finally:
        if loader is not None:
            loader.dispose()
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ContentError(path, _line_of(tree, first["loc"]), *_explain(first, model)) from error


# A process asks for the same rule packs again and again: with every guard, and twice an audit. What was valid once is
# taken from here as long as the file holds the same text. Records are frozen.
_kept = lru_cache(maxsize=64)(_validated)


def load_jsonl(path: Path, model: type[R]) -> list[R]:
    """Validate every line of a JSON Lines file; the first fault stops, with line and field."""
    records = []
    for number, line in _lines(path):
        try:
            data = json.loads(line, object_pairs_hook=_no_duplicates)
            records.append(model.model_validate(data))
        except ValidationError as error:
            raise ContentError(path, number, *_explain(error.errors()[0], model)) from error
        except (ValueError, RecursionError) as error:
            raise ContentError(path, number, None, f"not a JSON object on one line: {error}") from error
    if not records:
        raise ContentError(path, None, None, "the file holds no record")
    return records


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ContentError(
            path, None, None, f"not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
    except OSError as error:
        raise ContentError(path, None, None, f"cannot be read: {error.strerror or error}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    # split("\n"), not splitlines(): U+2028 and form feeds may stand inside a JSON string.
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"field {twice!r} is given twice")
    return dict(pairs)


def _refuse_duplicates(path: Path, node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ContentError(path, key.start_mark.line + 1, None, "a key must be plain text")
            if key.value in seen:
                raise ContentError(path, key.start_mark.line + 1, str(key.value), "the key is given twice")
            seen.add(key.value)
            _refuse_duplicates(path, value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicates(path, item)


def _line_of(node: yaml.Node, loc: Sequence[int | str]) -> int:
    """1-based line of the deepest part of `loc` that exists in the tree."""
    line = node.start_mark.line + 1
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = (node.value[step], node.value[step])
        else:
            found = None
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def _explain(error: Any, model: type[BaseModel]) -> tuple[str | None, str]:
    """(field, message) of a pydantic error, naming the valid fields where a key is unknown."""
    name = ".".join(str(step) for step in error["loc"]) or None
    message = str(error["msg"])
    if error["type"] == "extra_forbidden":
        valid = f"; valid at the top level: {', '.join(model.model_fields)}" if len(error["loc"]) == 1 else ""
        message = f"unknown field{valid}"
    elif error["type"] not in ("missing", "model_type") and isinstance(error.get("input"), str | int | float):
        message = f"{message}, got {str(error['input'])[:60]!r}"
    return name, message
