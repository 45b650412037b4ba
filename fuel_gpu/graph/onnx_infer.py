"""The types that one node gives, from the types and known contents of what it reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import onnx
from onnx.defs import OpSchema, SchemaError
from onnx.shape_inference import InferenceError, infer_node_outputs

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_types import UNKNOWN, PartialType, partial_type, type_proto
from fuel_gpu.graph.onnx_values import Contents, Value

_EAGER_ELEMENTS: Final = 64
"""Contents of up to so many elements go along in the first attempt, where already known."""

_LIKE_FIRST_INPUT: Final = frozenset(
    {
        "GroupNormalization",
        "MeanVarianceNormalization",
        "Affine",
        "ParametricSoftplus",
        "ScaledTanh",
        "ImageScaler",
        "Scale",
        "GRUUnit",
        "Imputer",
        "Normalizer",
        "Scaler",
    }
)
"""Operators of no shape inference (or withdrawn ones) whose output is like their first input."""


@dataclass(slots=True)
class Inference:
    """Infers node by node, so that no model is ever serialised as a whole."""

    opsets: Mapping[str, int]
    contents: Contents
    _schemas: dict[tuple[str, str], OpSchema | None] = field(default_factory=dict)
    _protos: dict[TensorType, onnx.TypeProto] = field(default_factory=dict)
    _imports: list[onnx.OperatorSetIdProto] = field(default_factory=list)

    def outputs(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None], where: str
    ) -> list[PartialType]:
        """Give the type of each output as far as it can be known.

        Contents are computed only where the types alone do not settle the shapes.

        Raises
        ------
        ModelError
            If the node contradicts its operator's definition.
        """
        found = self._attempt(node, inputs, where)
        if not _settled(found, node):
            known = [v for v in inputs if v is not None and not v.dynamic and v.contents is None]
            learnt = [v for v in known if self.contents.of(v) is not None]
            if learnt:
                found = self._attempt(node, inputs, where, everything=True)
        return found

    def _attempt(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        where: str,
        everything: bool = False,
    ) -> list[PartialType]:
        schema = self._schema(node)
        if schema is None or not schema.has_type_and_shape_inference_function:
            return self._without_schema(node, inputs)
        types = {}
        data = {}
        for name, value in zip(node.input, inputs, strict=True):
            if value is None:
                continue
            types[name] = self._proto(value)
            if value.contents is not None and (
                everything or value.type.elements <= _EAGER_ELEMENTS
            ):
                data[name] = value.tensor or onnx.numpy_helper.from_array(value.contents, name)
        try:
            result = infer_node_outputs(schema, node, types, data, opset_imports=self._opset_list())
        except (InferenceError, ValueError, RuntimeError) as error:
            raise ModelError(f"{where} cannot be: {_last_words(error)}") from None
        return [
            partial_type(result[name], f"output {name} of {where}") if name in result else UNKNOWN
            for name in node.output
        ]

    def _without_schema(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None]
    ) -> list[PartialType]:
        first = inputs[0] if inputs else None
        if node.op_type in _LIKE_FIRST_INPUT and first is not None:
            return [PartialType(first.type.dtype, first.type.shape)] * len(node.output)
        return [UNKNOWN] * len(node.output)

    def _proto(self, value: Value) -> onnx.TypeProto:
        found = self._protos.get(value.type)
        if found is None:
            found = self._protos[value.type] = type_proto(value.type.dtype, value.type.shape)
        return found

    def _schema(self, node: onnx.NodeProto) -> OpSchema | None:
        key = (node.domain, node.op_type)
        if key not in self._schemas:
            domain = "" if node.domain == "ai.onnx" else node.domain
            version = self.opsets.get(domain)
            try:
                self._schemas[key] = (
                    onnx.defs.get_schema(node.op_type, version, domain)
                    if version is not None
                    else None
                )
            except SchemaError:
                self._schemas[key] = None
        return self._schemas[key]

    def _opset_list(self) -> list[onnx.OperatorSetIdProto]:
        if not self._imports:
            self._imports = [onnx.helper.make_opsetid(d, v) for d, v in self.opsets.items()]
        return self._imports


def _settled(found: Sequence[PartialType], node: onnx.NodeProto) -> bool:
    return all(t.complete() or not name for t, name in zip(found, node.output, strict=True))


def _last_words(error: Exception) -> str:
    """Drop the library's preface from its message."""
    return str(error).strip().splitlines()[-1].removeprefix("[ShapeInferenceError] ")
