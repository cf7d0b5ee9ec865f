"""What an ONNX file is, read without running it: the type of its weights, and data that lies beside it."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from clinsafe.errors import MissingDependency, ModelError

INSTALL = "pip install 'clinsafe[onnx]'"
QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
             "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention", "QGemm")  # fmt: skip
SMALL = {"FLOAT16": "fp16", "BFLOAT16": "bf16", "DOUBLE": "fp64", "INT8": "int8", "UINT8": "int8",
         "INT4": "int4", "UINT4": "int4"}  # fmt: skip
LEAST_SHARE = 0.02
"""A type that holds less of a graph's numbers than this (a mask, a zero point) says nothing about its weights."""


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """What an ONNX file says about itself: type of its weights ("float32", "int8" …) and its external files."""

    dtype: str
    external: tuple[Path, ...]


def inspect(graph: Path, name: str) -> GraphFacts:
    """Read the file's structure without running it.

    Raises:
        ModelError: damaged, or external data is missing or outside the model's folder.
    """
    onnx = package("onnx")
    numbers: Counter[str] = Counter()
    operators, external = set(), set()
    try:
        for item in _walk(onnx.load(str(graph), load_external_data=False)):
            if isinstance(item, onnx.NodeProto):
                operators.add(str(item.op_type))
                continue
            kind = onnx.TensorProto.DataType.Name(item.data_type)
            numbers[kind] += int(np.prod(item.dims, dtype=np.int64))
            external |= {str(entry.value) for entry in item.external_data if entry.key == "location"}
    except Exception as error:  # protobuf's own kinds, and ValueError for a type that does not exist
        raise broken(name, f"has a damaged ONNX file ({graph.name})", error) from error
    for location in sorted(external):
        where = PurePosixPath(location.replace("\\", "/"))
        if where.is_absolute() or ".." in where.parts:
            raise ModelError(f"model {name!r} wants data from outside its folder: {location[:80]!r}")
        if not (graph.parent / where).is_file():
            raise ModelError(f"model {name!r} is incomplete: {graph.name} needs {location[:80]!r} beside it")
    return GraphFacts(_dtype(numbers, operators), tuple(graph.parent / place for place in sorted(external)))


def _walk(model: Any) -> Iterator[Any]:
    """Every node and every tensor, in subgraphs and functions too."""
    graphs, nodes = [model.graph], [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            nodes += graph.node
            continue
        node = nodes.pop()
        yield node
        for attribute in node.attribute:
            yield from ([attribute.t] if attribute.HasField("t") else [])
            graphs += [attribute.g] if attribute.HasField("g") else []
            graphs += attribute.graphs


def _dtype(numbers: Counter[str], operators: set[str]) -> str:
    if "MatMulNBits" in operators:
        return "int4"
    if any(name in QUANTISED or name.startswith("QLinear") for name in operators):
        return "int8"
    total = sum(count for kind, count in numbers.items() if kind in (*SMALL, "FLOAT"))
    smaller = [(count, SMALL[kind]) for kind, count in numbers.items()
               if kind in SMALL and count > LEAST_SHARE * total]  # fmt: skip
    return max(smaller)[1] if smaller else "float32"


def package(name: str) -> Any:
    """A module of the onnx extra, or the line that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependency("running an ONNX model", name, INSTALL) from error


def broken(name: str, what: str, error: Exception) -> ModelError:
    """A fault of a model's files as one line."""
    return ModelError(f"model {name!r} {what}: {type(error).__name__}: {str(error)[:200]}")
