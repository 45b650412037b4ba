"""The values that a node gives: their types inferred, and held to what its operator allows."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_attributes import qualified_op
from fuel_gpu.graph.onnx_checks import (
    CHECKED,
    check_counts,
    check_inputs,
    check_output,
    check_range,
    check_reshape,
)
from fuel_gpu.graph.onnx_contents import Contents
from fuel_gpu.graph.onnx_infer import Inference
from fuel_gpu.graph.onnx_rebatch import Rebatch
from fuel_gpu.graph.onnx_schemas import Schemas
from fuel_gpu.graph.onnx_sequences import SEQUENCE_OPS, sequence_output
from fuel_gpu.graph.onnx_types import PartialType
from fuel_gpu.graph.onnx_values import Value, sequence_type


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


def node_outputs(
    model: Model,
    used: Container[str],
    node: onnx.NodeProto,
    inputs: Sequence[Value | None],
    where: str,
) -> list[Value | None]:
    """Give the values that a node gives; None where an output is absent or its type not needed.

    Raises
    ------
    ModelError
        If the node breaks its operator's rules, or the type of a value that is `used` stays
        unknown.
    """
    bounded = any(v is not None and v.bounded for v in inputs)
    first = inputs[0] if inputs else None
    if node.op_type == "Identity" and first is not None and first.sequence is not None:
        return [Value(node.output[0], first.type, True, bounded, first.sequence)]
    if node.op_type in SEQUENCE_OPS and node.domain in ("", "ai.onnx"):
        return [_sequence_output(model, node, inputs, bounded, where)]
    op = qualified_op(node)
    if node.domain in ("", "ai.onnx"):
        check_counts(node, where)
    if op == "Range":
        check_range([None if v is None else model.contents.of(v) for v in inputs], where)
    if op in CHECKED:
        check_inputs(op, model.schemas.attributes(node), inputs, where)
    found = model.inference.outputs(node, inputs, used, where)
    outputs: list[Value | None] = []
    for name, known in zip(node.output, found.types, strict=True):
        complete = known.complete()
        if complete is None and name in used:
            raise ModelError(_unknown(name, known, where))
        if complete is None or not name:
            outputs.append(None)
            continue
        if model.rebatch is not None:
            complete = model.rebatch.repair(node.op_type, inputs, name, complete, where)
        check_output(op, None if first is None else first.type, complete, where)
        if node.op_type == "Reshape" and first is not None:
            check_reshape(first.type, complete, where)
        outputs.append(Value(name, complete, True, bounded or found.bounded))
    return outputs


def _sequence_output(
    model: Model,
    node: onnx.NodeProto,
    inputs: Sequence[Value | None],
    bounded: bool,
    where: str,
) -> Value:
    opened = [None if v is None else model.contents.of(v) for v in inputs]
    attributes = model.schemas.attributes(node)
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
