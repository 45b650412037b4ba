"""An operator's attributes as plain Python values, with the standard's defaults filled in."""

from typing import Any, Final

import onnx
from onnx.defs import OpSchema

_LEFT_OUT: Final = frozenset(
    {
        onnx.AttributeProto.GRAPH,
        onnx.AttributeProto.GRAPHS,
        onnx.AttributeProto.TENSOR,
        onnx.AttributeProto.TENSORS,
        onnx.AttributeProto.SPARSE_TENSOR,
        onnx.AttributeProto.SPARSE_TENSORS,
        onnx.AttributeProto.TYPE_PROTO,
        onnx.AttributeProto.TYPE_PROTOS,
        onnx.AttributeProto.UNDEFINED,
    }
)
"""Kinds of attributes that are no numbers or texts: bodies, weights and types."""


def given_attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Read the numbers, texts and lists that a node states."""
    return {a.name: _plain(a) for a in node.attribute if a.type not in _LEFT_OUT}


def default_attributes(schema: OpSchema) -> dict[str, Any]:
    """Read the defaults that an operator's definition states."""
    defaults = {}
    for name, attribute in schema.attributes.items():
        value = attribute.default_value
        if value.name and value.type not in _LEFT_OUT:
            defaults[name] = _plain(value)
    return defaults


def body_attributes(node: onnx.NodeProto) -> dict[str, onnx.GraphProto]:
    """Give the nested graphs of a node by attribute name."""
    return {a.name: a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH}


def qualified_op(node: onnx.NodeProto) -> str:
    """Name an operator: with its domain, where that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def describe(node: onnx.NodeProto, title: str) -> str:
    """Name a node for people: its name or first output, its operator, and its model."""
    name = node.name or next((o for o in node.output if o), "") or "without a name"
    return f"node {name} ({qualified_op(node)}) of {title}"


def _plain(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [v.decode("utf-8", "replace") for v in value]
    return list(value) if attribute.type in _LISTS else value


_LISTS: Final = frozenset({onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS})
