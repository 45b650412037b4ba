"""The values of a model while it is read, and the contents of those that shapes depend on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data
from onnx.reference import ReferenceEvaluator

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import NodeId, TensorType

EVALUATION_LIMIT: Final = 2**18
"""Values of more elements are never computed: no shape computation is that large."""

Array = NDArray[np.generic]


@dataclass(slots=True, eq=False)
class Computation:
    """A node that depends on no graph input, so that its outputs can be computed at load."""

    node: onnx.NodeProto
    inputs: tuple["Value | None", ...]
    outputs: tuple["Value | None", ...] = ()


@dataclass(slots=True, eq=False)
class Value:
    """One tensor of the model.

    Parameters
    ----------
    name
        Its ONNX name.
    type
        Element type and shape.
    dynamic
        Whether it depends on a graph input or on chance; the others are known at load.
    bounded
        Whether a dimension is an upper bound because it depends on data (NonZero and the like).
    node_id
        The arena node that gives it, once there is one.
    tensor, computation
        Where the contents of a value that is not dynamic come from.
    contents
        The contents, once something asked for them.
    sequence
        The types of a sequence's tensors; None for a tensor.
    """

    name: str
    type: TensorType
    dynamic: bool
    bounded: bool = False
    node_id: NodeId | None = None
    tensor: onnx.TensorProto | None = None
    computation: Computation | None = None
    contents: Array | None = None
    sequence: tuple[TensorType, ...] | None = None
    impossible: bool = False
    """Whether an attempt to compute the contents failed."""


@dataclass(slots=True)
class Contents:
    """Computes contents on demand, each distinct computation once.

    Parameters
    ----------
    folder
        Where files of external data lie.
    opsets
        Operator set version by domain.
    """

    folder: Path
    opsets: Mapping[str, int]
    _done: dict[tuple[object, ...], list[Array]] = field(default_factory=dict)

    def of(self, value: Value) -> Array | None:
        """Give a value's contents, or None if they are not known at load or too large to be wanted.

        Raises
        ------
        ModelError
            If they lie in an external file that is missing or too short.
        """
        if value.contents is None and not value.dynamic and not value.impossible:
            for computation in self._producers_first(value):
                self._compute(computation)
            if value.tensor is not None:
                self._read(value, value.tensor)
        return value.contents

    def _producers_first(self, value: Value) -> Iterator[Computation]:
        """Walk the computations that a value needs, without recursion."""
        stack = [(value, False)]
        seen: set[int] = set()
        while stack:
            current, inputs_done = stack.pop()
            computation = current.computation
            if computation is None or current.contents is not None or current.impossible:
                continue
            if inputs_done:
                yield computation
            elif id(computation) not in seen:
                seen.add(id(computation))
                stack.append((current, True))
                stack.extend((i, False) for i in computation.inputs if i is not None)

    def _compute(self, computation: Computation) -> None:
        results: list[Array] | None = None
        if _small(computation):
            inputs = [self.of(v) if v is not None else None for v in computation.inputs]
            if all(
                a is not None or v is None for a, v in zip(inputs, computation.inputs, strict=True)
            ):
                results = self._run(computation.node, inputs)
        for k, output in enumerate(computation.outputs):
            if output is None:
                continue
            if results is None or results[k].shape != output.type.shape:
                output.impossible = True
            else:
                output.contents = results[k]

    def _run(self, node: onnx.NodeProto, inputs: list[Array | None]) -> list[Array] | None:
        key = (
            node.op_type,
            node.domain,
            tuple(a.SerializeToString() for a in node.attribute),
            len(node.output),
            *((None if a is None else (str(a.dtype), a.shape, a.tobytes())) for a in inputs),
        )
        if key not in self._done:
            graph = onnx.helper.make_graph([node], "one", [], [])
            graph.input.extend(onnx.ValueInfoProto(name=n) for n in dict.fromkeys(node.input) if n)
            graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n)
            feeds = {n: a for n, a in zip(node.input, inputs, strict=True) if n}
            try:
                evaluator = ReferenceEvaluator(graph, opsets=dict(self.opsets))
                given = iter(evaluator.run(None, feeds))
            except Exception:  # any operator that the evaluator lacks or finds wrong: not known
                return None
            self._done[key] = [np.asarray(next(given) if n else None) for n in node.output]
        return self._done[key]

    def _read(self, value: Value, tensor: onnx.TensorProto) -> None:
        if value.type.elements > EVALUATION_LIMIT:
            value.impossible = True
            return
        if uses_external_data(tensor):
            tensor = self._load_external(tensor)
        try:
            value.contents = onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise ModelError(
                f"initializer {tensor.name} does not hold what its shape says ({error}): "
                "the model is damaged; export it again"
            ) from None

    def _load_external(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        loaded = onnx.TensorProto()
        loaded.CopyFrom(tensor)
        entries = {e.key: e.value for e in tensor.external_data}
        try:
            load_external_data_for_tensor(loaded, str(self.folder))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise ModelError(
                f"a shape depends on {tensor.name}, whose data should lie in "
                f"{self.folder / entries.get('location', '?')}: {str(error).splitlines()[0]}; "
                "put that file beside the model"
            ) from None
        return loaded


def _small(computation: Computation) -> bool:
    values = (*computation.inputs, *computation.outputs)
    return all(v is None or v.type.elements <= EVALUATION_LIMIT for v in values)
