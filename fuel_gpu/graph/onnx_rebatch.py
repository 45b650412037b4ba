"""Gives a model that fixes its batch another one: repairs the shapes that it hard-codes.

The model is walked once as it is, then again with the new leading dimension. Whatever a value's
shape was before must come out the same but for axes that grew by the factor new / old.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_values import Value

_HARD_CODED: Final = frozenset({"Reshape", "Resize", "Upsample"})
ADVICE: Final = "export the model with a symbolic batch, or plan it at its own batch"


@dataclass(frozen=True, slots=True)
class Rebatch:
    """A change of batch, with every value as it was at the model's own batch.

    Parameters
    ----------
    old, new
        The leading dimension that the model fixes, and the one asked for.
    before
        Values by name, from the walk at the model's own batch.
    """

    old: int
    new: int
    before: Mapping[str, Value]

    def repair(
        self, op: str, inputs: Sequence[Value | None], name: str, found: TensorType, where: str
    ) -> TensorType:
        """Give an output's type at the new batch.

        A Reshape whose target is stored in the model puts the batch where it was: the axis that
        starts after as many elements as the grown axis of the data does.

        Raises
        ------
        ModelError
            If the shape does not follow the batch.
        """
        earlier = self.before.get(name)
        data = inputs[0] if inputs else None
        if earlier is None or data is None:
            return found
        old_shape = earlier.type.shape
        grown = self._grown_axis(data)
        if op in _HARD_CODED and grown is not None and self._same_target(inputs):
            axis = _axis_after(old_shape, prod(data.type.shape[:grown]))
            if op != "Reshape":
                axis = grown
            if axis is not None and old_shape[axis] * self.new % self.old == 0:
                scaled = old_shape[axis] * self.new // self.old
                return TensorType(found.dtype, _replaced(old_shape, axis, scaled))
        if not self._follows(old_shape, found.shape):
            raise ModelError(
                f"{where} gives {list(old_shape)} at the model's batch {self.old} and "
                f"{list(found.shape)} at batch {self.new}: the batch is built into it; {ADVICE}"
            )
        if op == "Slice" and grown is not None and old_shape == found.shape:
            raise ModelError(
                f"{where} cuts {list(data.type.shape)} to {list(found.shape)}, at the model's own "
                f"batch {self.old}: the batch is built into its limits; {ADVICE}"
            )
        return found

    def _grown_axis(self, data: Value) -> int | None:
        """Give the one axis of a value that grew with the batch."""
        earlier = self.before.get(data.name)
        if earlier is None or len(earlier.type.shape) != len(data.type.shape):
            return None
        pairs = zip(earlier.type.shape, data.type.shape, strict=True)
        axes = [k for k, (before, now) in enumerate(pairs) if before != now]
        return axes[0] if len(axes) == 1 else None

    def _same_target(self, inputs: Sequence[Value | None]) -> bool:
        """Whether the shape operands hold the same numbers at both batches."""
        for value in inputs[1:]:
            if value is None or value.contents is None:
                continue
            earlier = self.before.get(value.name)
            if earlier is None or earlier.contents is None:
                return False
            if not np.array_equal(earlier.contents, value.contents):
                return False
        return True

    def _follows(self, old: tuple[int, ...], new: tuple[int, ...]) -> bool:
        if len(old) != len(new):
            return False
        return all(a == b or a * self.new == b * self.old for a, b in zip(old, new, strict=True))


def _axis_after(shape: tuple[int, ...], elements: int) -> int | None:
    """Give the first axis before which lie so many elements."""
    for axis in range(len(shape)):
        if prod(shape[:axis]) == elements:
            return axis
    return None


def _replaced(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
