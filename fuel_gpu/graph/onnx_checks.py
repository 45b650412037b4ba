"""What shape inference lets pass: inputs that do not fit one another."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_values import Array, Value
from fuel_gpu.numbers import I64_MAX

Types = Sequence[TensorType | None]

_EQUATION: Final = re.compile(r"[A-Za-z., ]*(->[A-Za-z. ]*)?")


def check_inputs(
    op: str, attributes: Mapping[str, Any], inputs: Sequence[Value | None], where: str
) -> None:
    """Hold the inputs of a `CHECKED` operator to one another.

    Raises
    ------
    ModelError
        If they do not fit; the message names the node and both shapes.
    """
    rule = _RULES[op]
    types = [None if v is None or v.sequence is not None else v.type for v in inputs]
    try:
        complaint = rule(attributes, types)
    except (LookupError, ValueError):
        complaint = "too few inputs, or one of another rank than its operator takes"
    if complaint:
        raise ModelError(
            f"{where} has {complaint}: the model is damaged, or the sizes given for its inputs "
            "are not ones that it takes"
        )


def check_reshape(data: TensorType, target: TensorType, where: str) -> None:
    """Hold a Reshape to the number of elements that it has.

    Raises
    ------
    ModelError
        If the target has more or fewer.
    """
    if data.elements != target.elements:
        raise ModelError(
            f"{where} cannot give {list(target.shape)}: its data {list(data.shape)} has "
            f"{data.elements} elements, not {target.elements}; the shape of the inputs is not one "
            "that the model takes"
        )


def check_range(limits: Sequence[Array | None], where: str) -> None:
    """Hold a Range to a step that leads from its start to its limit.

    Parameters
    ----------
    limits
        Start, limit and delta, where they are known at load.
    where
        What messages call the node.

    Raises
    ------
    ModelError
        If one is infinite or no number, the step is zero, or the steps are too many to count.
    """
    known = [None if a is None or not a.size else a.reshape(-1)[0].item() for a in limits]
    complaint = ""
    if any(k is not None and not math.isfinite(k) for k in known):
        complaint = "a limit that is infinite or no number"
    elif len(known) > 2 and known[2] == 0:
        complaint = "a step of 0"
    elif len(known) == 3 and known[0] is not None and known[1] is not None and known[2]:
        steps = (known[1] - known[0]) / known[2]
        complaint = "more steps than can be counted" if steps > I64_MAX else ""
    if complaint:
        raise ModelError(f"{where} has {complaint}: the model is damaged; export it again")


def check_counts(node: onnx.NodeProto, where: str) -> None:
    """Hold the attributes that count something to 1 or more.

    Raises
    ------
    ModelError
        If one is 0 or negative.
    """
    for attribute in node.attribute:
        if attribute.name in _COUNTS:
            single = attribute.type == onnx.AttributeProto.INT
            wrong = [n for n in ([attribute.i] if single else attribute.ints) if n < 1]
            if wrong:
                raise ModelError(
                    f"{where} has {attribute.name} {wrong[0]}, which must be 1 or more: "
                    "the model is damaged; export it again"
                )


def check_output(op: str, data: TensorType | None, output: TensorType, where: str) -> None:
    """Hold what inference gives to sizes that can be: none negative, no window beyond its data.

    Raises
    ------
    ModelError
        If a size is negative, or a window does not fit into its data.
    """
    empty = [k for k, size in enumerate(output.shape) if size < 1]
    negative = any(output.shape[k] < 0 for k in empty)
    outgrown = op in _WINDOWED and data is not None and all(data.shape) and bool(empty)
    if negative or outgrown:
        of = "" if data is None else f" of {list(data.shape)}"
        raise ModelError(
            f"{where} would give {list(output.shape)}{of}: its window or its limits do not fit "
            "into the data; the sizes of the inputs are not ones that the model takes"
        )


def _shape(types: Types, position: int) -> tuple[int, ...]:
    found = types[position]
    if found is None:
        raise ValueError(f"input {position} is absent")
    return found.shape


def _einsum(attributes: Mapping[str, Any], types: Types) -> str | None:
    """The library would never end over other signs."""
    equation = str(attributes.get("equation", ""))
    if _EQUATION.fullmatch(equation):
        return None
    return f"the equation {equation!r}, where only letters, dots, commas and -> may stand"


def _conv(attributes: Mapping[str, Any], types: Types) -> str | None:
    data, weight = _shape(types, 0), _shape(types, 1)
    groups = int(attributes.get("group", 1))
    if data[1] == weight[1] * groups:
        return None
    return (
        f"data {list(data)} of {data[1]} channels for a weight {list(weight)} "
        f"that takes {weight[1]} in each of {groups} group(s)"
    )


def _gemm(attributes: Mapping[str, Any], types: Types) -> str | None:
    a, b = _shape(types, 0), _shape(types, 1)
    columns = a[0] if attributes.get("transA") else a[1]
    rows = b[1] if attributes.get("transB") else b[0]
    if columns == rows:
        return None
    return f"factors {list(a)} and {list(b)} that meet at {columns} and {rows}"


def _recurrent(attributes: Mapping[str, Any], types: Types) -> str | None:
    data = _shape(types, 0)
    axis = 0 if attributes.get("layout") else 1
    for state in types[5:7]:
        if state is not None and state.shape[axis] != data[axis]:
            return (
                f"a state {list(state.shape)} of batch {state.shape[axis]} for data "
                f"{list(data)} of batch {data[axis]}"
            )
    return None


_RULES: Final[dict[str, Callable[[Mapping[str, Any], Types], str | None]]] = {
    "Einsum": _einsum,
    "Conv": _conv,
    "Gemm": _gemm,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}

_COUNTS: Final = frozenset(
    {
        "blocksize",
        "dilations",
        "group",
        "hidden_size",
        "kernel_shape",
        "num_groups",
        "num_outputs",
        "strides",
    }
)
"""Attributes of standard operators that count something of which there is at least one."""

_WINDOWED: Final = frozenset(
    {
        "AveragePool",
        "Conv",
        "ConvInteger",
        "ConvTranspose",
        "LpPool",
        "MaxPool",
        "QLinearConv",
        "com.microsoft.FusedConv",
    }
)

CHECKED: Final = frozenset(_RULES)
"""Operators that `check_inputs` knows."""
