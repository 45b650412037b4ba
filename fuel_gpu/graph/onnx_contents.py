"""Computes the contents of values that shapes depend on, when something asks for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data
from onnx.reference import ReferenceEvaluator

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.onnx_skim import Skipped
from fuel_gpu.graph.onnx_values import Array, Computation, Value

EVALUATION_LIMIT: Final = 2**18
"""Values of more elements are never computed: no shape computation is that large."""


@dataclass(slots=True)
class Contents:
    """Computes contents on demand, each distinct computation once.

    Parameters
    ----------
    folder
        Where files of external data lie.
    opsets
        Operator set version by domain.
    skipped
        Where in the model's file the initializers lie whose contents were not read.
    """

    folder: Path
    opsets: Mapping[str, int]
    skipped: Mapping[str, Skipped] = field(default_factory=dict)
    _done: dict[tuple[object, ...], list[Array]] = field(default_factory=dict)

    def of(self, value: Value) -> Array | None:
        """Give a value's contents, or None if they are not known at load or too many.

        Raises
        ------
        ModelError
            If they lie in an external file that is missing or too short.
        """
        if value.contents is None and not value.dynamic and not value.impossible:
            for computation in self._producers_first(value):
                self._compute(computation)
            if value.origin is not None:
                value.contents = self.of(value.origin)
            elif value.tensor is not None:
                self._read(value, value.tensor)
        return value.contents

    def left_out(self, tensor: onnx.TensorProto) -> Skipped | None:
        """Say where a tensor lies whose contents were not read; None if it has them."""
        return self.skipped.get(tensor.name) if not tensor.raw_data else None

    def _producers_first(self, value: Value) -> Iterator[Computation]:
        """Walk the computations that a value needs, without recursion."""
        stack = [(value, False)]
        seen: set[int] = set()
        while stack:
            current, inputs_done = stack.pop()
            current = current.origin or current
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
            pairs = zip(inputs, computation.inputs, strict=True)
            if all(contents is not None or value is None for contents, value in pairs):
                results = self._run(computation.node, inputs)
        for k, output in enumerate(computation.outputs):
            if output is None or output.tensor is not None:
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
        elif (left_out := self.left_out(tensor)) is not None:
            tensor = left_out.read()
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
