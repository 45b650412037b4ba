"""What the arena refuses to take in, by the field that cannot be meant."""

from typing import Any

import numpy as np
import pytest
from decided_graphs import VECTOR, chain

from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, TensorType


def typed(dtype: Any, shape: Any) -> TensorType:
    """A type that no annotation has held back."""
    return TensorType(dtype, shape)


def any_node(op: str, inputs: Any, **fields: Any) -> Node:
    """A node that no annotation has held back."""
    return Node(op, inputs, **({"type": VECTOR} | fields))


REFUSED = {
    "negative size": (any_node("f", (0,), type=typed("float32", (2, -1))), r"shape \(2, -1\)"),
    "half a size": (any_node("f", (0,), type=typed("float32", (2, 0.5))), r"shape \(2, 0.5\)"),
    "size that is a truth": (any_node("f", (0,), type=typed("float32", (True,))), "shape"),
    "size that would wrap": (any_node("f", (0,), type=typed("float32", (np.int64(2),))), "shape"),
    "shape that is a list": (any_node("f", (0,), type=typed("float32", [2])), r"shape \[2\]"),
    "dtype": (any_node("f", (0,), type=typed("float31", ())), "unknown dtype 'float31'; known"),
    "type": (any_node("f", (0,), type=None), "type None is no TensorType"),
    "name": (any_node("f", (0,), name=b"f"), "name b'f' is no text"),
    "kind": (any_node("f", (0,), kind="kernle"), "unknown kind 'kernle'; known are input"),
    "list of inputs": (any_node("f", [0]), r"inputs \[0\] is no tuple of node ids"),
    "input that is a truth": (any_node("f", (False,)), "no tuple of node ids"),
    "input that is no number": (any_node("f", ("x",)), "no tuple of node ids"),
    "input to come": (any_node("f", (9,)), "node 9 does not exist: the graph has 3 nodes"),
    "input before the first": (any_node("f", (-1,)), "node -1 does not exist"),
    "weight that reads": (any_node("f", (0,), kind="weight"), "a weight has none"),
    "view of nothing": (any_node("f", (), kind="view"), "a view has exactly one"),
    "view of two": (any_node("f", (0, 1), kind="view"), "a view has exactly one"),
    "copy of two": (any_node("f", (0, 1), kind="copy"), "a copy has exactly one"),
    "pick of nothing": (
        any_node("f", (), kind="pick", attributes={"index": 1}),
        "a pick has exactly one",
    ),
    "pick of no output": (any_node("f", (0,), kind="pick"), "attribute index is None"),
    "pick of the first output": (
        any_node("f", (0,), kind="pick", attributes={"index": 0}),
        "attribute index is 0",
    ),
    "write past the inputs": (any_node("f", (0, 1), writes_input=2), "writes_input 2"),
    "write before the inputs": (any_node("f", (0,), writes_input=-1), "writes_input -1"),
    "attributes": (any_node("f", (0,), attributes=[1]), r"attributes \[1\] is no mapping"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_field_that_cannot_be_meant_is_named_and_changes_nothing(case: str) -> None:
    node, message = REFUSED[case]
    graph = chain(2)
    with pytest.raises(PlanError, match=r"node 3 \(.*f.*\): .*" + message):
        graph.push(node)
    with pytest.raises(PlanError, match=r"node 2 \(.*f.*\): .*" + message):
        graph.replace(2, node)
    assert graph.nodes == chain(2).nodes
    assert graph.readers(0) == (1,)
    assert graph.topology_generation == 0


def test_bytes_must_fit_63_bits() -> None:
    graph = Graph()
    most = TensorType("uint8", (2**63 - 1,))
    assert graph.push(Node("input", (), most, "input")) == 0
    with pytest.raises(
        PlanError,
        match=r"node 1 \(x\): float32 of shape \[2147483648, 1073741824\] takes "
        r"9223372036854775808 bytes, more than 2\*\*63 - 1",
    ):
        graph.push(Node("input", (), TensorType("float32", (2**31, 2**30)), "input", "x"))
