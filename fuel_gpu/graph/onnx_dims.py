"""Gives every dimension of a model's inputs a number: the batch and named dimensions."""

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from fuel_gpu.errors import ModelError, UsageError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_types import partial_type


@dataclass(frozen=True, slots=True)
class InputDims:
    """The types of a model's real inputs, once all dimensions are known.

    Parameters
    ----------
    types
        Type by input name.
    symbols
        The number given to each named dimension.
    fixed_batch
        The leading dimension that the model itself fixed, where ``batch`` replaced one.
    """

    types: Mapping[str, TensorType]
    symbols: Mapping[str, int]
    fixed_batch: int | None


@dataclass(slots=True)
class _OpenInput:
    name: str
    dtype: str
    dims: list[int | str]  # a name where the dimension is open


def settle_inputs(
    graph: onnx.GraphProto, batch: int | None, dims: Mapping[str, int], where: str
) -> InputDims:
    """Give a number to every dimension of the graph's real inputs.

    An unnamed open dimension goes by ``input:axis``. The batch is the leading dimension: those
    that are open take it; where none is open, the inputs whose leading dimension equals the
    first input's take it.

    Raises
    ------
    UsageError
        If a size is not a positive integer, a name is no dimension of the model, or the batch
        contradicts a named dimension.
    ModelError
        If a dimension stays open; the message lists each with the option that settles it.
    """
    for name, size in [("batch", batch), *dims.items()]:
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise UsageError(f"{name}={size!r} is no size: give a whole number of 1 or more")
    inputs = _open_inputs(graph, where)
    names = {d for i in inputs for d in i.dims if isinstance(d, str)}
    unknown = sorted(set(dims) - names)
    if unknown:
        known = ", ".join(sorted(names)) or "none: all of its dimensions are fixed"
        raise UsageError(f"{where} has no dimension {', '.join(unknown)}; it has {known}")
    symbols = dict(dims)
    fixed_batch = _set_batch(inputs, batch, symbols, where)
    still_open = [i for i in inputs if any(d not in symbols for d in i.dims if type(d) is str)]
    if still_open:
        raise ModelError(_open_message(still_open, symbols, where))
    types = {
        i.name: TensorType(i.dtype, tuple(symbols[d] if isinstance(d, str) else d for d in i.dims))
        for i in inputs
    }
    return InputDims(types, symbols, fixed_batch)


def _open_inputs(graph: onnx.GraphProto, where: str) -> list[_OpenInput]:
    weights = {t.name for t in graph.initializer} | {
        t.values.name for t in graph.sparse_initializer
    }
    found = []
    for value in graph.input:
        if value.name in weights:
            continue
        place = f"input {value.name} of {where}"
        known = partial_type(value.type, place)
        if known.dtype is None or known.shape is None or known.is_sequence:
            lacking = "is a sequence" if known.is_sequence else "has no element type or no rank"
            raise ModelError(f"{place} {lacking}: export the model with a full type for it")
        kind = value.type.WhichOneof("value")
        tensor = (
            value.type.optional_type.elem_type.tensor_type
            if kind == "optional_type"
            else value.type.tensor_type
        )
        dims: list[int | str] = []
        for axis, size in enumerate(known.shape):
            if size is None or size < 0:
                dims.append(tensor.shape.dim[axis].dim_param or f"{value.name}:{axis}")
            else:
                dims.append(size)
        found.append(_OpenInput(value.name, known.dtype, dims))
    return found


def _set_batch(
    inputs: list[_OpenInput], batch: int | None, symbols: dict[str, int], where: str
) -> int | None:
    """Set the leading dimensions; give the one that the model fixed, if that was replaced."""
    if batch is None:
        return None
    leading = [i for i in inputs if i.dims]
    if not leading:
        raise UsageError(f"{where} has no input with a leading dimension: drop the batch")
    open_names = {d for i in leading if isinstance(d := i.dims[0], str)}
    for name in open_names:
        if symbols.setdefault(name, batch) != batch:
            raise UsageError(
                f"batch {batch} and {name}={symbols[name]} contradict each other: "
                f"{name} is the leading dimension of an input of {where}; give one of them"
            )
    if open_names:
        return None
    fixed = leading[0].dims[0]
    assert isinstance(fixed, int)
    for value in leading:
        if value.dims[0] == fixed:
            value.dims[0] = batch
    return fixed if fixed != batch else None


def _open_message(inputs: list[_OpenInput], symbols: Mapping[str, int], where: str) -> str:
    places: dict[str, list[str]] = {}
    for value in inputs:
        for axis, dim in enumerate(value.dims):
            if isinstance(dim, str) and dim not in symbols:
                places.setdefault(dim, []).append(f"dimension {axis} of input {value.name}")
    lines = [f"  {name}: {', '.join(at)}; give --dim {name}=SIZE" for name, at in places.items()]
    if any(isinstance(v.dims[0], str) and v.dims[0] not in symbols for v in inputs if v.dims):
        lines.append("  (leading dimensions can be given at once with --batch SIZE)")
    return f"{where} leaves {len(places)} dimension(s) open:\n" + "\n".join(lines)
