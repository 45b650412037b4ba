"""Walks an ONNX graph in order and writes its nodes, typed, into an arena."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph, Kind, Node, NodeId, TensorType
from fuel_gpu.graph.onnx_attributes import body_attributes, qualified_op
from fuel_gpu.graph.onnx_checks import CHECKED, check_inputs, check_reshape
from fuel_gpu.graph.onnx_contents import Contents
from fuel_gpu.graph.onnx_control import visit_control
from fuel_gpu.graph.onnx_infer import Inference
from fuel_gpu.graph.onnx_names import UniqueNames
from fuel_gpu.graph.onnx_rebatch import Rebatch
from fuel_gpu.graph.onnx_schemas import Schemas
from fuel_gpu.graph.onnx_sequences import SEQUENCE_OPS, sequence_output
from fuel_gpu.graph.onnx_types import PartialType, dtype_name
from fuel_gpu.graph.onnx_values import Computation, Value, sequence_type
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
_OF_THE_TYPE_ONLY: Final = frozenset({"Shape", "Size", "SequenceLength", "OptionalHasElement"})


@dataclass(frozen=True, slots=True)
class Model:
    """What the walks of a model and of its bodies share.

    Parameters
    ----------
    title
        What messages call the model.
    schemas, inference, contents
        Operator definitions, types, and the contents that shapes depend on.
    rebatch
        The change of batch, where the model fixes another one.
    """

    title: str
    schemas: Schemas
    inference: Inference
    contents: Contents
    rebatch: Rebatch | None = None


class Walk:
    """One graph, or one body of a control-flow node, on its way into an arena."""

    def __init__(self, model: Model, proto: onnx.GraphProto, outer: "Walk | None" = None) -> None:
        self.model = model
        self.proto = proto
        self.outer = outer
        self.graph = Graph()
        self.values: dict[str, Value] = {}
        self.captured: dict[str, Value] = {}
        self.stored: list[Value] = []
        self._names = UniqueNames(n.name for n in proto.node)
        self._used = frozenset(_names_read(proto))

    def add_input(self, name: str, tensor_type: TensorType) -> Value:
        """Enter a graph input."""
        value = Value(name, tensor_type, dynamic=True)
        value.node_id = self._push_source(value, "input")
        self.values[name] = value
        return value

    def run(self) -> None:
        """Enter the initializers, walk the nodes, and note the outputs.

        Raises
        ------
        ModelError
            If a node reads what nothing gives, or the type of a value stays unknown.
        """
        self._add_weights(self.proto)
        for node in self.proto.node:
            self._visit(node)
        for output in self.proto.output:
            self.graph.outputs.append(self.node_of(self.lookup(output.name, "an output")))

    def inline(self, body: onnx.GraphProto) -> list[Value]:
        """Walk a body as if its nodes stood here, and give its outputs."""
        self._add_weights(body)
        for node in body.node:
            self._visit(node)
        return [self.lookup(output.name, "an output of a body") for output in body.output]

    def child(self, body: onnx.GraphProto) -> "Walk":
        """Start the walk of a body, which sees the values of this graph."""
        return Walk(self.model, body, self)

    def result(self, position: int) -> Value:
        """Give an output's value, once the walk is done.

        Raises
        ------
        ModelError
            If the graph has no such output.
        """
        if position >= len(self.proto.output):
            raise ModelError(
                f"a body in {self.model.title} gives {len(self.proto.output)} values where "
                f"{position + 1} are read: the model is damaged; export it again"
            )
        return self.lookup(self.proto.output[position].name, "an output")

    def lookup(self, name: str, reader: str) -> Value:
        """Give the value of a name, from this graph or one around it.

        Raises
        ------
        ModelError
            If nothing gives that name.
        """
        value = self._find(name)
        if value is None:
            raise ModelError(
                f"{reader} of {self.model.title} is {name}, which no input, initializer or earlier "
                "node gives: the model is damaged or out of order; run onnx.checker on it"
            )
        return value

    def node_of(self, value: Value) -> NodeId:
        """Give the arena node of a value; one known at load gets its node at its first reader."""
        if value.node_id is None:
            value.node_id = self._materialise(value)
        return value.node_id

    def push_stored(self, value: Value) -> NodeId:
        """Push a weight or constant that a body holds, so that its bytes count here."""
        return self._push_source(value, "weight" if value.is_weight else "constant")

    def enter(self, value: Value) -> None:
        """Make a value known by its name."""
        self.values[value.name] = value

    def emit(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value | None],
        *,
        also_reads: Iterable[NodeId] = (),
        bodies: tuple[Graph, ...] = (),
        by_chance: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Push a node for a value that is not known at load, and picks for its further outputs."""
        attributes = self.model.schemas.attributes(node) | dict(extra or {})
        present = [(k, v) for k, v in enumerate(inputs) if v is not None]
        used = [(k, v) for k, v in enumerate(outputs) if v is not None and v.name in self._used]
        first = next((v for v in outputs if v is not None), None)
        if first is None:
            return
        kind: Kind = "kernel"
        types = tuple(v.type for _, v in present)
        computes = bodies or by_chance
        if not computes and is_view(qualified_op(node), attributes, types, first.type, len(used)):
            kind = "view"
            present = present[:1]
        elif [k for k, _ in present] != list(range(len(present))):
            attributes["input_positions"] = tuple(k for k, _ in present)
        if first.bounded:
            attributes["shape_is_bound"] = True
        ids = (*(self.node_of(v) for _, v in present), *also_reads)
        name = self._names.for_node(node.name, first.name, node.op_type, len(self.graph))
        pushed = Node(qualified_op(node), ids, first.type, kind, name, attributes, bodies)
        first.node_id = self.graph.push(pushed)
        for k, value in used:
            if value is not first:
                pick_name = self._names.for_tensor(value.name, "pick")
                pick = Node("pick", (first.node_id,), value.type, "pick", pick_name, {"index": k})
                value.node_id = self.graph.push(pick)

    def _add_weights(self, proto: onnx.GraphProto) -> None:
        for tensor in proto.initializer:
            dtype = dtype_name(tensor.data_type, f"initializer {tensor.name}")
            kind = TensorType(dtype, tuple(tensor.dims))
            self.enter(Value(tensor.name, kind, dynamic=False, tensor=tensor))
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            dtype = dtype_name(sparse.values.data_type, f"initializer {name}")
            kind = TensorType(dtype, tuple(sparse.dims))
            self.enter(Value(name, kind, dynamic=False, impossible=True))

    def _find(self, name: str) -> Value | None:
        value = self.values.get(name)
        if value is None and self.outer is not None:
            around = self.outer._find(name)
            if around is not None:
                value = self._capture(around)
        return value

    def _capture(self, around: Value) -> Value:
        """Take in a value of the graph around this one."""
        value = Value(
            around.name, around.type, around.dynamic, around.bounded, around.sequence, origin=around
        )
        if value.dynamic:
            value.node_id = self._push_source(value, "input")
            self.captured[value.name] = around
        self.enter(value)
        return value

    def _materialise(self, value: Value) -> NodeId:
        if value.origin is not None:
            self.captured[value.name] = value.origin
            return self.push_stored(value)
        computation = value.computation
        if computation is None:
            self.stored.append(value)
            return self._push_source(value, "weight")
        node = computation.node
        data = computation.inputs[0] if computation.inputs else None
        is_first = value.name == node.output[0]
        op = "constant"
        kind: Kind = "constant"
        inputs: tuple[NodeId, ...] = ()
        if data is not None and is_first and self._shares_bytes(computation, value):
            op, inputs, kind = qualified_op(node), (self.node_of(data),), "view"
        else:
            self.stored.append(value)
        own_name = node.name if is_first else ""
        name = self._names.for_node(own_name, value.name, node.op_type, len(self.graph))
        return self.graph.push(Node(op, inputs, value.type, kind, name))

    def _shares_bytes(self, computation: Computation, value: Value) -> bool:
        types = tuple(v.type for v in computation.inputs if v is not None)
        attributes = self.model.schemas.attributes(computation.node)
        return is_view(qualified_op(computation.node), attributes, types, value.type, 1)

    def _push_source(self, value: Value, kind: Kind) -> NodeId:
        name = self._names.for_tensor(value.name, kind)
        return self.graph.push(Node(kind, (), value.type, kind, name))

    def _visit(self, node: onnx.NodeProto) -> None:
        if not any(node.output):
            return  # gives nothing that anything could read
        where = f"node {_title(node)} ({qualified_op(node)}) of {self.model.title}"
        reader = f"an input of {where}"
        inputs = [self.lookup(name, reader) if name else None for name in node.input]
        standard = node.domain in ("", "ai.onnx")
        if standard and node.op_type in _OF_THE_TYPE_ONLY:
            self._enter_known(node, inputs[0] if inputs else None)
        elif standard and node.op_type == "Constant":
            self._enter_constant(node, where)
        elif standard and body_attributes(node):
            visit_control(self, node, inputs, where)
        else:
            self.place(node, inputs, self._outputs(node, inputs, where))

    def place(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value | None],
    ) -> None:
        """Enter a node's outputs: known at load if it depends on no input, else by a node."""
        for value in outputs:
            if value is not None:
                self.enter(value)
        by_chance = self._by_chance(node, inputs)
        if by_chance or any(v is not None and v.dynamic for v in inputs):
            self.emit(node, inputs, outputs, by_chance=by_chance)
            return
        computation = Computation(node, tuple(inputs), tuple(outputs))
        for value in outputs:
            if value is not None:
                value.dynamic = False
                value.computation = computation

    def _by_chance(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> bool:
        if node.op_type == "Dropout" and len(inputs) > 2 and inputs[2] is not None:
            training = self.model.contents.of(inputs[2])
            return training is None or bool(training.any())
        return node.op_type in _BY_CHANCE

    def _outputs(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None], where: str
    ) -> list[Value | None]:
        bounded = any(v is not None and v.bounded for v in inputs)
        first = inputs[0] if inputs else None
        if node.op_type == "Identity" and first is not None and first.sequence is not None:
            return [Value(node.output[0], first.type, True, bounded, first.sequence)]
        if node.op_type in SEQUENCE_OPS and node.domain in ("", "ai.onnx"):
            return [self._sequence_output(node, inputs, bounded, where)]
        op = qualified_op(node)
        if op in CHECKED:
            check_inputs(op, self.model.schemas.attributes(node), inputs, where)
        found = self.model.inference.outputs(node, inputs, self._used, where)
        outputs: list[Value | None] = []
        for name, known in zip(node.output, found.types, strict=True):
            complete = known.complete()
            if complete is None and name in self._used:
                raise ModelError(_unknown(name, known, where))
            if complete is None or not name:
                outputs.append(None)
                continue
            if self.model.rebatch is not None:
                complete = self.model.rebatch.repair(node.op_type, inputs, name, complete, where)
            if node.op_type == "Reshape" and first is not None:
                check_reshape(first.type, complete, where)
            outputs.append(Value(name, complete, True, bounded or found.bounded))
        return outputs

    def _sequence_output(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None], bounded: bool, where: str
    ) -> Value:
        opened = [None if v is None else self.model.contents.of(v) for v in inputs]
        attributes = self.model.schemas.attributes(node)
        result = sequence_output(node.op_type, attributes, inputs, opened)
        name = node.output[0]
        if result is None:
            raise ModelError(
                f"{where}: what the sequence holds stays unknown, because its length depends on "
                "data; export the model without sequences"
            )
        if isinstance(result, TensorType):
            return Value(name, result, True, bounded)
        return Value(name, sequence_type(result), True, bounded, result)

    def _enter_known(self, node: onnx.NodeProto, of: Value | None) -> None:
        """Enter what depends on a type alone: shapes, sizes, lengths of sequences."""
        attributes = self.model.schemas.attributes(node)
        if node.op_type == "Shape" and of is not None:
            shape = of.type.shape[attributes.get("start", 0) : attributes.get("end")]
            contents = np.array(shape, np.int64)
        elif node.op_type == "Size" and of is not None:
            contents = np.array(of.type.elements, np.int64)
        elif node.op_type == "SequenceLength" and of is not None:
            contents = np.array(len(of.sequence or ()), np.int64)
        else:
            contents = np.array(of is not None)
        kind = TensorType(str(contents.dtype), contents.shape)
        computation = Computation(node, ())
        bounded = of is not None and of.bounded
        value = Value(node.output[0], kind, False, bounded, computation=computation)
        value.contents = contents
        self.enter(value)

    def _enter_constant(self, node: onnx.NodeProto, where: str) -> None:
        tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        if tensor is None:
            self.place(node, [], self._outputs(node, [], where))
            return
        kind = TensorType(dtype_name(tensor.data_type, where), tuple(tensor.dims))
        computation = Computation(node, ())
        self.enter(Value(node.output[0], kind, False, tensor=tensor, computation=computation))


def _names_read(graph: onnx.GraphProto) -> Iterator[str]:
    """Every tensor name that a node of the graph or of a nested graph reads, and the outputs."""
    stack = [graph]
    while stack:
        current = stack.pop()
        yield from (o.name for o in current.output)
        for node in current.node:
            yield from node.input
            stack.extend(body_attributes(node).values())


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
