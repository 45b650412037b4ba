"""The types that one node gives, from the types and known contents of what it reads."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import onnx
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.shape_inference import InferenceError, infer_node_outputs

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_attributes import qualified_op
from fuel_gpu.graph.onnx_bounds import bounded_outputs
from fuel_gpu.graph.onnx_contents import Contents
from fuel_gpu.graph.onnx_contrib import STANDARD_TWINS, contrib_outputs
from fuel_gpu.graph.onnx_schemas import Schemas
from fuel_gpu.graph.onnx_types import UNKNOWN, PartialType, partial_type, type_proto
from fuel_gpu.graph.onnx_values import Value

_EAGER_ELEMENTS: Final = 64
"""Contents of up to so many elements go along in the first attempt, where already known."""

_SEEN_LIMIT: Final = 65536


@dataclass(frozen=True, slots=True)
class Inferred:
    """The types of a node's outputs, as far as they are known.

    `bounded` says that a dimension is only the most that it can be.
    """

    types: list[PartialType]
    bounded: bool = False

    def settled(self, node: onnx.NodeProto, used: Container[str]) -> bool:
        """Whether the type of every output that something reads is complete."""
        pairs = zip(self.types, node.output, strict=True)
        return all(t.complete() is not None or name not in used for t, name in pairs)


@dataclass(slots=True)
class Inference:
    """Infers node by node, so that no model is ever serialised as a whole.

    Parameters
    ----------
    schemas
        Operator definitions, and attributes by them.
    contents
        Where contents that shapes depend on come from.
    declared
        Types that the model itself states (value_info and outputs), by value name.
    """

    schemas: Schemas
    contents: Contents
    declared: Mapping[str, PartialType] = field(default_factory=dict)
    _protos: dict[TensorType, onnx.TypeProto] = field(default_factory=dict)
    _imports: list[onnx.OperatorSetIdProto] = field(init=False)

    def __post_init__(self) -> None:
        """Write the operator sets as the library wants them."""
        self._imports = [onnx.helper.make_opsetid(d, v) for d, v in self.schemas.opsets.items()]

    def outputs(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        used: Container[str],
        where: str,
    ) -> Inferred:
        """Give the type of each output as far as it can be known.

        Contents are computed only where the types alone do not settle the shapes of those that
        are `used`. What stays open is taken from the model's own statement, and else from an
        upper bound.

        Raises
        ------
        ModelError
            If the node contradicts its operator's definition.
        """
        found = Inferred(self._attempt(node, inputs, where))
        if found.settled(node, used):
            return found
        unread = [v for v in inputs if v is not None and not v.dynamic and v.contents is None]
        known = [v for v in inputs if v is not None and v.contents is not None]
        learnt = [v for v in unread if self.contents.of(v) is not None]
        if learnt or any(v.type.elements > _EAGER_ELEMENTS for v in known):
            found = Inferred(self._attempt(node, inputs, where, everything=True))
        if not found.settled(node, used) and self.declared:
            stated = [self.declared.get(name, UNKNOWN) for name in node.output]
            found = Inferred(list(map(_merge, found.types, stated)))
        if not found.settled(node, used):
            attributes = self.schemas.attributes(node)
            bounded = bounded_outputs(qualified_op(node), attributes, inputs, found.types)
            found = Inferred(bounded, bounded=bounded != found.types)
        return found

    def _attempt(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        where: str,
        everything: bool = False,
    ) -> list[PartialType]:
        op = qualified_op(node)
        twin = STANDARD_TWINS.get(op)
        schema = (
            self.schemas.schema("", twin)
            if twin
            else self.schemas.schema(node.domain, node.op_type)
        )
        if schema is None or not schema.has_type_and_shape_inference_function:
            return self._by_rule(op, node, inputs, where)
        types = {}
        data = {}
        for name, value in zip(node.input, inputs, strict=True):
            if value is None or value.sequence is not None:
                continue
            types[name] = self._proto(value.type)
            if value.contents is not None and (
                everything or value.type.elements <= _EAGER_ELEMENTS
            ):
                data[name] = onnx.numpy_helper.from_array(value.contents, name)
        if twin:
            node = _as_standard(node, schema)
        try:
            result = infer_node_outputs(schema, node, types, data, opset_imports=self._imports)
        except (InferenceError, ValidationError, ValueError, RuntimeError, KeyError) as error:
            raise ModelError(f"{where} cannot be: {_last_words(error)}") from None
        return [
            partial_type(result[name], f"output {name} of {where}") if name in result else UNKNOWN
            for name in node.output
        ]

    def _by_rule(
        self, op: str, node: onnx.NodeProto, inputs: Sequence[Value | None], where: str
    ) -> list[PartialType]:
        types = [None if v is None else v.type for v in inputs]
        try:
            return contrib_outputs(op, self.schemas.attributes(node), types, len(node.output))
        except (KeyError, IndexError, ValueError) as error:
            raise ModelError(
                f"{where} does not have the inputs or attributes of its operator ({error!r}); "
                "export the model again"
            ) from None

    def _proto(self, tensor_type: TensorType) -> onnx.TypeProto:
        found = self._protos.get(tensor_type)
        if found is None:
            if len(self._protos) >= _SEEN_LIMIT:
                self._protos.clear()
            found = type_proto(tensor_type.dtype, tensor_type.shape)
            self._protos[tensor_type] = found
        return found


def _as_standard(node: onnx.NodeProto, schema: OpSchema) -> onnx.NodeProto:
    """Write a node as its standard twin, without the attributes that only the fused form has."""
    attributes = [a for a in node.attribute if a.name in schema.attributes]
    standard = onnx.NodeProto(op_type=schema.name, input=node.input, output=node.output)
    standard.attribute.extend(attributes)
    return standard


def _merge(known: PartialType, stated: PartialType) -> PartialType:
    """Fill what is open from what the model states; what is known stays."""
    dtype = known.dtype or stated.dtype
    if known.shape is None:
        return PartialType(dtype, stated.shape)
    if stated.shape is None or len(stated.shape) != len(known.shape):
        return PartialType(dtype, known.shape)
    dims = zip(known.shape, stated.shape, strict=True)
    return PartialType(dtype, tuple(s if k is None else k for k, s in dims))


def _last_words(error: Exception) -> str:
    """Drop the library's preface from its message."""
    lines = str(error).strip().splitlines()
    return lines[-1].removeprefix("[ShapeInferenceError] ") if lines else repr(error)
