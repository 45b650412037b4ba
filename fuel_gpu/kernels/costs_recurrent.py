"""FLOPs of recurrent layers: LSTM, GRU and RNN."""

from typing import Final

from fuel_gpu.kernels.costs_elementwise import TRANSCENDENTAL
from fuel_gpu.kernels.operands import FlopFormula, Operands

_SIGMOID: Final = TRANSCENDENTAL + 3


def _recurrent(operands: Operands, gates: int, cell: int) -> int:
    """For every step, direction and sample: gates · 2H(I + H + 1), and what the cell does.

    X is (steps, batch, I) or, with ``layout`` 1, (batch, steps, I): their product is the same.
    W is (directions, gates · H, I). ``+ 1`` stands for the two biases added into each gate.
    """
    data, weight = operands.inputs[0], operands.inputs[1]
    directions, rows, width = weight.shape
    hidden = rows // gates
    cells = data.shape[0] * data.shape[1] * directions * hidden
    return cells * (gates * 2 * (width + hidden + 1) + cell)


def _lstm(operands: Operands) -> int:
    """Three sigmoids, two tanhs, and c = f·c + i·g, h = o·tanh(c): four operations."""
    return _recurrent(operands, 4, 3 * _SIGMOID + 2 * TRANSCENDENTAL + 4)


def _gru(operands: Operands) -> int:
    """Two sigmoids, a tanh, r·h, and h = (1 - z)·n + z·h: five operations."""
    return _recurrent(operands, 3, 2 * _SIGMOID + TRANSCENDENTAL + 5)


def _rnn(operands: Operands) -> int:
    return _recurrent(operands, 1, TRANSCENDENTAL)


FLOPS: Final[dict[str, FlopFormula]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
"""FLOPs by operator."""
