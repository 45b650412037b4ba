"""Small ONNX models for the tests of the reader: written to a file, then read as a user would."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from fuel_gpu.graph.arena import Graph, Node
from fuel_gpu.graph.onnx_reader import load_onnx

Shape = Sequence[int | str | None] | None


def value(name: str, shape: Shape, dtype: int = TensorProto.FLOAT) -> ValueInfoProto:
    """State a tensor's type; text names a dimension, None leaves it, or all, open."""
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, contents: ArrayLike, dtype: Any = np.float32) -> TensorProto:
    """Make an initializer."""
    return onnx.numpy_helper.from_array(np.asarray(contents, dtype), name)


def shape_weight(name: str, *sizes: int) -> TensorProto:
    """Make an initializer that holds a shape."""
    return weight(name, sizes, np.int64)


def body(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    weights: Sequence[TensorProto] = (),
) -> GraphProto:
    """Make a nested graph; its outputs state no type."""
    ends = [ValueInfoProto(name=name) for name in outputs]
    return helper.make_graph(nodes, "body", inputs, ends, weights)


def save(
    folder: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    weights: Sequence[TensorProto] = (),
    *,
    opset: int = 17,
    stated: Sequence[ValueInfoProto] = (),
    **model_parts: Any,
) -> Path:
    """Write a model whose outputs state no type, and give its path."""
    ends = [ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "graph", inputs, ends, weights, value_info=stated)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    opsets += [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("org.example", 1)]
    model = helper.make_model(graph, opset_imports=opsets, **model_parts)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def read(
    folder: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    weights: Sequence[TensorProto] = (),
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    **parts: Any,
) -> Graph:
    """Write a model and read it back."""
    path = save(folder, nodes, inputs, outputs, weights, **parts)
    return load_onnx(path, batch=batch, dims=dims)


def named(graph: Graph, name: str) -> Node:
    """Give the one node of that name."""
    (found,) = (node for node in graph.nodes if node.name == name)
    return found


def inputs_of(graph: Graph, name: str) -> list[str]:
    """Name what a node reads."""
    return [graph.node(i).name for i in named(graph, name).inputs]


def output_shapes(graph: Graph) -> list[tuple[int, ...]]:
    """Give the shapes of a graph's outputs."""
    return [graph.node(o).type.shape for o in graph.outputs]
