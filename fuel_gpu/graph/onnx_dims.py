"""Gives every dimension of a model's inputs a number: the batch and named dimensions."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import onnx

from fuel_gpu.errors import ModelError, UsageError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.node_checks import too_large
from fuel_gpu.graph.onnx_types import partial_type
from fuel_gpu.numbers import I64_MAX

_NO_NAMES: Final = frozenset({"", "?", "-1", "None"})
"""What exporters write for a dimension that they do not name: two such need not be equal."""


@dataclass(frozen=True, slots=True)
class InputDims:
    """The types of a model's real inputs, once all dimensions are known.

    Parameters
    ----------
    types
        Type by input name.
    symbols
        The number given to each named dimension, and to each sum or product of them.
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
    dims: list[int | str]  # the text of the dimension where it is open


def settle_inputs(
    graph: onnx.GraphProto, batch: int | None, dims: Mapping[str, int], where: str
) -> InputDims:
    """Give a number to every dimension of the graph's real inputs.

    An unnamed open dimension goes by ``input:axis``; one that is arithmetic over names, such as
    ``past_length + 1``, follows them. The batch is the leading dimension: those that are open
    and not given by name take it; where none is open, the inputs whose leading dimension equals
    the first input's take it.

    Raises
    ------
    UsageError
        If a size is not a positive integer, a name is no dimension of the model, or the batch
        contradicts a named dimension.
    ModelError
        If a dimension stays open; the message lists each with the option that settles it.
    """
    for name, size in [("batch", batch), *dims.items()]:
        if size is not None and (type(size) is not int or not 1 <= size <= I64_MAX):
            raise UsageError(f"{name}={size!r} is no size: give a whole number from 1 to {I64_MAX}")
    inputs = _open_inputs(graph, where)
    texts = [d for i in inputs for d in i.dims if isinstance(d, str)]
    names = {name for text in texts for name in _names(text)}
    unknown = sorted(set(dims) - names)
    if unknown:
        known = ", ".join(sorted(names)) or "none: all of its dimensions are fixed"
        raise UsageError(f"{where} has no dimension {', '.join(unknown)}; it has {known}")
    symbols = dict(dims)
    fixed_batch = _set_batch(inputs, batch, symbols, where)
    missing = [name for name in names if name not in symbols]
    if missing:
        raise ModelError(_open_message(inputs, symbols, where))
    for text in texts:
        symbols[text] = _evaluate(text, symbols, where)
    types = {
        i.name: TensorType(i.dtype, tuple(symbols[d] if isinstance(d, str) else d for d in i.dims))
        for i in inputs
    }
    for name, kind in types.items():
        complaint = too_large(kind.dtype, kind.shape, kind.bytes)
        if complaint and (batch is not None or dims):
            given = [*([] if batch is None else [f"batch={batch}"])]
            given += [f"{symbol}={size}" for symbol, size in dims.items()]
            raise UsageError(
                f"input {name} of {where} with {', '.join(given)}: {complaint}; give smaller sizes"
            )
    return InputDims(types, symbols, fixed_batch)


def _open_inputs(graph: onnx.GraphProto, where: str) -> list[_OpenInput]:
    weights = {t.name for t in graph.initializer}
    weights |= {t.values.name for t in graph.sparse_initializer}
    found = []
    for value in graph.input:
        if value.name in weights:
            continue
        place = f"input {value.name} of {where}"
        known = partial_type(value.type, place)
        if known.is_sequence:
            raise ModelError(
                f"{place} is a sequence, so that how much it holds is open: "
                "export the model with tensors as inputs"
            )
        if known.dtype is None or known.shape is None:
            raise ModelError(
                f"{place} states no element type or no rank: export the model with a full type"
            )
        tensor = value.type.tensor_type
        if value.type.HasField("optional_type"):
            tensor = value.type.optional_type.elem_type.tensor_type
        dims: list[int | str] = []
        for axis, size in enumerate(known.shape):
            if size is None:
                text = tensor.shape.dim[axis].dim_param
                dims.append(f"{value.name}:{axis}" if text in _NO_NAMES else text)
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
    open_names = {d for i in leading if isinstance(d := i.dims[0], str) and _names(d) == {d}}
    given = {name: symbols[name] for name in open_names if name in symbols}
    if open_names and open_names == set(given) and batch not in given.values():
        listed = ", ".join(f"{name}={size}" for name, size in sorted(given.items()))
        raise UsageError(
            f"batch {batch} and {listed} contradict each other: they are the leading dimension "
            f"of the inputs of {where}; give one of them"
        )
    for name in open_names:
        symbols.setdefault(name, batch)
    fixed = leading[0].dims[0]
    if open_names or isinstance(fixed, str):
        return None
    for value in leading:
        if value.dims[0] == fixed:
            value.dims[0] = batch
    return fixed if fixed != batch else None


def _open_message(inputs: list[_OpenInput], symbols: Mapping[str, int], where: str) -> str:
    places: dict[str, list[str]] = {}
    leading = False
    for value in inputs:
        for axis, dim in enumerate(value.dims):
            for name in sorted(_names(dim) - symbols.keys()) if isinstance(dim, str) else ():
                places.setdefault(name, []).append(f"dimension {axis} of input {value.name}")
                leading |= axis == 0 and name == dim
    lines = [f"  {name}: {', '.join(at)}; give --dim {name}=SIZE" for name, at in places.items()]
    if leading:
        lines.append("  (leading dimensions can be given at once with --batch SIZE)")
    return f"{where} leaves {len(places)} dimension(s) open:\n" + "\n".join(lines)


_LONGEST_ARITHMETIC: Final = 256
"""Characters of a longer text are a name: the parser recurses."""

_ARITHMETIC: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _parsed(text: str) -> ast.expr | None:
    """Parse a dimension that is arithmetic over names; None if it is a name by itself."""
    if len(text) > _LONGEST_ARITHMETIC:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError):  # MemoryError: brackets in brackets
        return None
    return tree if isinstance(tree, ast.BinOp) and all(map(_is_term, _leaves(tree))) else None


def _leaves(tree: ast.expr) -> Iterator[ast.expr]:
    if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
        yield from _leaves(tree.left)
        yield from _leaves(tree.right)
    else:
        yield tree


def _is_term(leaf: ast.expr) -> bool:
    return isinstance(leaf, ast.Name) or (
        isinstance(leaf, ast.Constant) and isinstance(leaf.value, int)
    )


def _names(text: str) -> set[str]:
    tree = _parsed(text)
    if tree is None:
        return {text}
    return {leaf.id for leaf in _leaves(tree) if isinstance(leaf, ast.Name)}


def _evaluate(text: str, symbols: Mapping[str, int], where: str) -> int:
    tree = _parsed(text)
    if tree is None:
        return symbols[text]
    try:
        size = _value(tree, symbols)
    except ZeroDivisionError:
        size = -1
    if not 0 <= size <= I64_MAX:
        raise UsageError(f"dimension {text} of {where} would be {size}: give other sizes")
    return size


def _value(tree: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(tree, ast.BinOp):
        apply = _ARITHMETIC[type(tree.op)]
        return apply(_value(tree.left, symbols), _value(tree.right, symbols))
    if isinstance(tree, ast.Name):
        return symbols[tree.id]
    assert isinstance(tree, ast.Constant)
    assert isinstance(tree.value, int)
    return tree.value
