"""Walks an ONNX graph in order and writes its nodes, typed, into an arena."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph, Kind, Node, NodeId, TensorType
from fuel_gpu.graph.node_checks import too_large
from fuel_gpu.graph.onnx_attributes import body_attributes, describe, qualified_op
from fuel_gpu.graph.onnx_control import visit_control
from fuel_gpu.graph.onnx_file import LIBRARY_ERRORS
from fuel_gpu.graph.onnx_names import UniqueNames
from fuel_gpu.graph.onnx_outputs import Model, node_outputs
from fuel_gpu.graph.onnx_stored import stored_type
from fuel_gpu.graph.onnx_values import Computation, Value
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
_UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a node that breaks its operator's rules makes of code that relies on them."""

_OF_THE_TYPE_ONLY: Final = frozenset({"Shape", "Size", "SequenceLength", "OptionalHasElement"})


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
        self.enter(value)
        value.node_id = self._push_source(value, "input")
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
            self.graph.outputs.append(self.node_of(self.lookup(output.name, self._an_output)))
        self.graph.value_names = {
            name: value.node_id
            for name, value in self.values.items()
            if name and value.node_id is not None
        }

    def inline(self, body: onnx.GraphProto) -> list[Value]:
        """Walk a body as if its nodes stood here, and give its outputs."""
        self._add_weights(body)
        for node in body.node:
            self._visit(node)
        return [self.lookup(output.name, self._an_output) for output in body.output]

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
        return self.lookup(self.proto.output[position].name, self._an_output)

    @property
    def _an_output(self) -> str:
        return f"an output of {'a body in ' if self.outer else ''}{self.model.title}"

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
                f"{reader} is {name}, which no input, initializer or earlier "
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
        """Make a value known by its name.

        Raises
        ------
        ModelError
            If its bytes are more than can be counted.
        """
        kind = value.type
        complaint = too_large(kind.dtype, kind.shape, kind.bytes)
        if complaint:
            raise ModelError(
                f"{value.name} of {self.model.title}: {complaint}: the model is damaged, or the "
                "sizes given for its inputs are too large"
            )
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
            skipped = self.model.contents.left_out(tensor)
            where = f"initializer {tensor.name} of {self.model.title}"
            kind = stored_type(tensor, skipped.contents if skipped else None, where)
            self.enter(Value(tensor.name, kind, dynamic=False, tensor=tensor))
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            where = f"initializer {name} of {self.model.title}"
            values = stored_type(sparse.values, None, where)
            kind = TensorType(values.dtype, tuple(sparse.dims))
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
        where = describe(node, self.model.title)
        try:
            self._enter_outputs(node, where)
        except RecursionError:
            raise ModelError(
                f"{where} holds graphs in graphs deeper than can be followed; export it flatter"
            ) from None
        except MemoryError:
            raise ModelError(f"{where} needs more memory to be read than there is") from None
        except (*_UNREADABLE, *LIBRARY_ERRORS) as error:
            raise ModelError(
                f"{where} cannot be read ({type(error).__name__}: {error}): the model is damaged, "
                "or uses this operator in a way that is not known here"
            ) from error

    def _enter_outputs(self, node: onnx.NodeProto, where: str) -> None:
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
            self.place(node, inputs, node_outputs(self.model, self._used, node, inputs, where))

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
            self.place(node, [], node_outputs(self.model, self._used, node, [], where))
            return
        kind = stored_type(tensor, None, f"the value of {where}")
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
