"""Walks an ONNX graph in order and writes its nodes, typed, into an arena."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph, Kind, Node, NodeId, TensorType
from fuel_gpu.graph.onnx_infer import Inference
from fuel_gpu.graph.onnx_names import UniqueNames
from fuel_gpu.graph.onnx_types import PartialType, dtype_name
from fuel_gpu.graph.onnx_values import Computation, Contents, Value
from fuel_gpu.graph.onnx_views import is_view

_BY_CHANCE: Final = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
_OF_THE_SHAPE_ONLY: Final = frozenset({"Shape", "Size"})


@dataclass(slots=True)
class Walk:
    """One graph, or one body of a control-flow node, on its way into an arena."""

    inference: Inference
    contents: Contents
    names: UniqueNames
    where: str
    graph: Graph = field(default_factory=Graph)
    values: dict[str, Value] = field(default_factory=dict)
    used: frozenset[str] = frozenset()

    def add_input(self, name: str, tensor_type: TensorType) -> None:
        """Enter a graph input."""
        value = Value(name, tensor_type, dynamic=True)
        value.node_id = self._push_source(value, "input")
        self.values[name] = value

    def add_weights(self, graph: onnx.GraphProto) -> None:
        """Enter the initializers; each becomes a node when something reads it."""
        for tensor in graph.initializer:
            dtype = dtype_name(tensor.data_type, f"initializer {tensor.name} of {self.where}")
            kind = TensorType(dtype, tuple(tensor.dims))
            self.values[tensor.name] = Value(tensor.name, kind, dynamic=False, tensor=tensor)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            dtype = dtype_name(sparse.values.data_type, f"initializer {name} of {self.where}")
            kind = TensorType(dtype, tuple(sparse.dims))
            self.values[name] = Value(name, kind, dynamic=False, impossible=True)

    def run(self, graph: onnx.GraphProto) -> None:
        """Walk the nodes, then note the outputs.

        Raises
        ------
        ModelError
            If a node reads what nothing gives, or the type of a value stays unknown.
        """
        self.used = frozenset(_names_read(graph))
        for node in graph.node:
            self._visit(node)
        for output in graph.output:
            value = self.values.get(output.name)
            if value is None:
                raise ModelError(f"{self.where} has an output {output.name} that no node gives")
            self.graph.outputs.append(self.node_of(value))

    def node_of(self, value: Value) -> NodeId:
        """Give the arena node of a value; one known at load gets its node at its first reader."""
        if value.node_id is None:
            value.node_id = self._materialise(value)
        return value.node_id

    def _materialise(self, value: Value) -> NodeId:
        if value.tensor is not None or value.computation is None:
            return self._push_source(value, "weight")
        computation = value.computation
        first = computation.inputs[0] if computation.inputs else None
        if first is not None and value is computation.outputs[0]:
            node = computation.node
            present = tuple(v.type for v in computation.inputs if v is not None)
            if is_view(node.op_type, _attributes(node), present, value.type, 1):
                name = self.names.for_tensor(value.name, "view")
                inputs = (self.node_of(first),)
                return self.graph.push(Node(node.op_type, inputs, value.type, "view", name))
        return self._push_source(value, "constant")

    def _push_source(self, value: Value, kind: Kind) -> NodeId:
        name = self.names.for_tensor(value.name, kind)
        return self.graph.push(Node(kind, (), value.type, kind, name))

    def _visit(self, node: onnx.NodeProto) -> None:
        where = f"node {_title(node)} ({node.op_type}) of {self.where}"
        inputs = [self._lookup(name, where) if name else None for name in node.input]
        if node.op_type in _OF_THE_SHAPE_ONLY and not node.domain and inputs[0] is not None:
            self._enter_shape(node, inputs[0])
            return
        types = self._output_types(node, inputs, where)
        bounded = any(v is not None and v.bounded for v in inputs)
        outputs = [
            Value(name, t, dynamic=True, bounded=bounded) if name and t is not None else None
            for name, t in zip(node.output, types, strict=True)
        ]
        for value in outputs:
            if value is not None:
                self.values[value.name] = value
        if any(v is not None and v.dynamic for v in inputs) or node.op_type in _BY_CHANCE:
            self._emit(node, inputs, outputs)
        else:
            computation = Computation(node, tuple(inputs), tuple(outputs))
            for value in outputs:
                if value is not None:
                    value.dynamic = False
                    value.computation = computation

    def _lookup(self, name: str, where: str) -> Value:
        value = self.values.get(name)
        if value is None:
            raise ModelError(
                f"{where} reads {name}, which no input, initializer or earlier node gives: "
                "the model is damaged or its nodes are out of order; run onnx.checker on it"
            )
        return value

    def _output_types(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None], where: str
    ) -> list[TensorType | None]:
        found = self.inference.outputs(node, inputs, where)
        types = [t.complete() for t in found]
        for name, t, known in zip(node.output, types, found, strict=True):
            if t is None and name in self.used:
                raise ModelError(_unknown(name, known, where))
        return types

    def _enter_shape(self, node: onnx.NodeProto, of: Value) -> None:
        """Shape and Size depend on a shape alone, and every shape is known."""
        if node.op_type == "Size":
            contents = np.array(of.type.elements, np.int64)
        else:
            given = {a.name: a.i for a in node.attribute}
            shape = of.type.shape[given.get("start", 0) : given.get("end")]
            contents = np.array(shape, np.int64)
        name = node.output[0]
        computation = Computation(node, ())
        self.values[name] = Value(
            name,
            TensorType("int64", contents.shape),
            dynamic=False,
            bounded=of.bounded,
            computation=computation,
            contents=contents,
        )

    def _emit(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value | None],
    ) -> None:
        attributes = _attributes(node)
        present = [(k, v) for k, v in enumerate(inputs) if v is not None]
        used = [(k, v) for k, v in enumerate(outputs) if v is not None and v.name in self.used]
        first = outputs[0] or next((v for v in outputs if v is not None), None)
        if first is None:
            return
        present_types = tuple(v.type for _, v in present)
        if is_view(node.op_type, attributes, present_types, first.type, len(used)):
            kind: Kind = "view"
            present = present[:1]
        else:
            kind = "kernel"
            if [k for k, _ in present] != list(range(len(present))):
                attributes["input_positions"] = tuple(k for k, _ in present)
        ids = tuple(self.node_of(v) for _, v in present)
        name = self.names.for_node(node.name, first.name, node.op_type, len(self.graph))
        op = qualified_op(node)
        first.node_id = self.graph.push(Node(op, ids, first.type, kind, name, attributes))
        for k, value in used:
            if value is not first:
                pick_name = self.names.for_tensor(value.name, "pick")
                pick = Node("pick", (first.node_id,), value.type, "pick", pick_name, {"index": k})
                value.node_id = self.graph.push(pick)


def qualified_op(node: onnx.NodeProto) -> str:
    """Name an operator: with its domain, where that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: _plain(onnx.helper.get_attribute_value(a)) for a in node.attribute}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [v.decode("utf-8", "replace") for v in value]
    return value


def _names_read(graph: onnx.GraphProto) -> Iterator[str]:
    """Every tensor name that a node of the graph or of a nested graph reads, and the outputs."""
    stack = [graph]
    while stack:
        current = stack.pop()
        yield from (o.name for o in current.output)
        for node in current.node:
            yield from node.input
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    stack.append(attribute.g)
                stack.extend(attribute.graphs)


def _title(node: onnx.NodeProto) -> str:
    return node.name or next((o for o in node.output if o), "") or "without a name"


def _unknown(name: str, known: PartialType, where: str) -> str:
    if known.shape is None:
        lacking = "its shape"
    elif known.dtype is None:
        lacking = "its element type"
    else:
        axes = ", ".join(str(k) for k, d in enumerate(known.shape) if d is None)
        lacking = f"dimension {axes} of its shape"
    return (
        f"{where}: {lacking} stays unknown for output {name}, because the operator is not "
        "known here or the shape depends on data; state it in the model's value_info"
    )
