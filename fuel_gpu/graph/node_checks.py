"""What a node must be before the arena takes it in: a graph built by hand has no other check."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fuel_gpu.dtypes import ITEMSIZE_BITS
from fuel_gpu.errors import PlanError
from fuel_gpu.numbers import I64_MAX

if TYPE_CHECKING:
    from fuel_gpu.graph.arena import Node, NodeId

_READS: Final = {
    "input": 0,
    "weight": 0,
    "constant": 0,
    "view": 1,
    "pick": 1,
    "copy": 1,
    "branch": None,
    "kernel": None,
}
"""How many inputs each kind has; None leaves it open."""

_NEEDS: Final = {0: "none", 1: "exactly one"}


def check_node(node: "Node", node_id: "NodeId", count: int) -> None:
    """Hold a node to its fields' meaning.

    Parameters
    ----------
    node
        What is to be taken in.
    node_id
        The id that it gets.
    count
        Ids below this exist.

    Raises
    ------
    PlanError
        If a field cannot be meant; the message names the node, the field and its value.
    """
    complaint = _text(node) or _inputs(node, count) or _type(node) or _kind(node) or _rest(node)
    if complaint:
        raise PlanError(f"node {node_id} ({node.name or node.op}): {complaint}")


def too_large(dtype: str, shape: tuple[int, ...], size: int) -> str:
    """Say that a value takes more bytes than can be counted; empty if it does not."""
    if size <= I64_MAX:
        return ""
    return f"{dtype} of shape {list(shape)} takes {size} bytes, more than 2**63 - 1"


def _text(node: "Node") -> str:
    for field, value in (("op", node.op), ("name", node.name)):
        if not isinstance(value, str):
            return f"{field} {value!r} is no text"
    return ""


def _inputs(node: "Node", count: int) -> str:
    if not isinstance(node.inputs, tuple) or any(type(i) is not int for i in node.inputs):
        return f"inputs {node.inputs!r} is no tuple of node ids"
    for value in node.inputs:
        if not 0 <= value < count:
            return f"inputs {node.inputs}: node {value} does not exist: the graph has {count} nodes"
    return ""


def _type(node: "Node") -> str:
    dtype = getattr(node.type, "dtype", None)
    shape = getattr(node.type, "shape", None)
    if dtype is None or shape is None:
        return f"type {node.type!r} is no TensorType"
    if dtype not in ITEMSIZE_BITS:
        return f"unknown dtype {dtype!r}; known are {', '.join(sorted(ITEMSIZE_BITS))}"
    if not isinstance(shape, tuple) or any(type(d) is not int or d < 0 for d in shape):
        return f"shape {shape!r} is no tuple of whole numbers of 0 or more (Python's int)"
    return too_large(dtype, shape, node.type.bytes)


def _kind(node: "Node") -> str:
    if node.kind not in _READS:
        return f"unknown kind {node.kind!r}; known are {', '.join(_READS)}"
    needed = _READS[node.kind]
    if needed is not None and len(node.inputs) != needed:
        return f"inputs {node.inputs}: a {node.kind} has {_NEEDS[needed]}"
    if node.kind == "pick":
        index = node.attributes.get("index")
        if type(index) is not int or index < 1:
            return f"attribute index is {index!r}: a pick states which further output it is, from 1"
    return ""


def _rest(node: "Node") -> str:
    written = node.writes_input
    if written is not None and (type(written) is not int or not 0 <= written < len(node.inputs)):
        return f"writes_input {written!r} is no position in its {len(node.inputs)} input(s)"
    if not isinstance(node.attributes, Mapping):
        return f"attributes {node.attributes!r} is no mapping"
    return ""
