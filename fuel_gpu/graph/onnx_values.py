"""The values of a model while it is read: types, and where their contents come from."""

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from fuel_gpu.graph.arena import NodeId, TensorType

Array = NDArray[np.generic]


@dataclass(slots=True, eq=False)
class Value:
    """One tensor, or sequence of tensors, of the model.

    Parameters
    ----------
    name
        Its ONNX name.
    type
        Element type and shape; of a sequence, the elements of all its tensors in one row.
    dynamic
        Whether it depends on a graph input or on chance; the others are known at load.
    bounded
        Whether a dimension is only an upper bound, because it depends on data.
    sequence
        The types of a sequence's tensors; None for a tensor.
    node_id
        The arena node that gives it, once there is one.
    tensor, computation, origin
        Where the contents of a value that is not dynamic come from: a stored tensor, a node,
        or a value of the graph around this one.
    contents
        The contents, once something asked for them.
    impossible
        Whether the contents cannot be had.
    """

    name: str
    type: TensorType
    dynamic: bool
    bounded: bool = False
    sequence: tuple[TensorType, ...] | None = None
    node_id: NodeId | None = None
    tensor: onnx.TensorProto | None = None
    computation: "Computation | None" = None
    origin: "Value | None" = None
    contents: Array | None = None
    impossible: bool = False

    @property
    def is_weight(self) -> bool:
        """Whether the model stores it as an initializer, in this graph or one around it."""
        source = self
        while source.origin is not None:
            source = source.origin
        return not source.dynamic and source.computation is None


@dataclass(slots=True, eq=False)
class Computation:
    """A node that depends on no graph input, so that its outputs can be computed at load."""

    node: onnx.NodeProto
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value | None, ...] = ()


def sequence_type(tensors: tuple[TensorType, ...]) -> TensorType:
    """Give the type that stands for a sequence: all its elements in one row."""
    dtype = tensors[0].dtype if tensors else "float32"
    return TensorType(dtype, (sum(t.elements for t in tensors),))
