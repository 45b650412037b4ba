"""What a cost formula sees of one operation: its attributes and the types it reads and writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fuel_gpu.graph.arena import Node, TensorType


@dataclass(frozen=True, slots=True)
class Operands:
    """One operation with the types around it.

    Parameters
    ----------
    node
        The operation.
    inputs
        Types of the inputs present, in ONNX order.
    outputs
        The first output's type, then those of the further outputs that are used.
    """

    node: Node
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The operator's attributes."""
        return self.node.attributes

    @property
    def elements(self) -> int:
        """Elements of the first output."""
        return self.outputs[0].elements

    def integer(self, attribute: str, default: int = 0) -> int:
        """Give an integer attribute, or the operator's default for it."""
        return int(self.node.attributes.get(attribute, default))

    def at(self, position: int) -> TensorType | None:
        """Type of the input at an ONNX position, or None where that input is absent."""
        positions = self.node.attributes.get("input_positions")
        if positions is None:
            return self.inputs[position] if position < len(self.inputs) else None
        return self.inputs[positions.index(position)] if position in positions else None


FlopFormula = Callable[[Operands], int]
"""FLOPs of an operation, a multiply-accumulate counted as two."""

ByteFormula = Callable[[Operands], int]
"""Bytes that an operation reads and writes, where that is not every input and output once."""
