"""Inputs that do not fit one another are refused where shape inference lets them pass."""

from pathlib import Path
from typing import Any

import pytest
from onnx import helper
from onnx_models import read, value

from fuel_gpu.errors import ModelError


def refusal(folder: Path, op: str, *shapes: tuple[int, ...] | None, **attributes: Any) -> str:
    """Read one node that must be refused."""
    names = ["" if s is None else f"i{k}" for k, s in enumerate(shapes)]
    inputs = [value(n, s) for n, s in zip(names, shapes, strict=True) if s is not None]
    node = helper.make_node(op, names, ["y"], name="node", **attributes)
    with pytest.raises(ModelError) as caught:
        read(folder, [node], inputs, ["y"])
    return str(caught.value)


def test_channels_of_a_convolution(tmp_path: Path) -> None:
    message = refusal(tmp_path, "Conv", (1, 3, 8, 8), (4, 5, 3, 3))
    assert message == (
        "node node (Conv) of model.onnx has data [1, 3, 8, 8] of 3 channels for a weight "
        "[4, 5, 3, 3] that takes 5 in each of 1 group(s): the model is damaged, or the sizes "
        "given for its inputs are not ones that it takes"
    )
    assert "in each of 2 group(s)" in refusal(tmp_path, "Conv", (1, 3, 8), (4, 3, 3), group=2)


def test_factors_of_a_gemm(tmp_path: Path) -> None:
    assert "[4, 5] and [6, 7] that meet at 5 and 6" in refusal(tmp_path, "Gemm", (4, 5), (6, 7))
    assert "meet at 5 and 7" in refusal(tmp_path, "Gemm", (4, 5), (6, 7), transB=1)


def test_states_of_a_recurrent_layer(tmp_path: Path) -> None:
    weights = (1, 32, 4), (1, 32, 8)
    message = refusal(
        tmp_path, "LSTM", (5, 3, 4), *weights, None, None, (1, 1, 8), (1, 1, 8), hidden_size=8
    )
    assert "a state [1, 1, 8] of batch 1 for data [5, 3, 4] of batch 3" in message


def test_an_equation_with_other_signs(tmp_path: Path) -> None:
    message = refusal(tmp_path, "Einsum", (3, 5), equation="...\xf9i->...i")
    assert "has the equation '...ùi->...i', where only letters" in message


def test_a_rank_that_an_operator_does_not_take(tmp_path: Path) -> None:
    assert "or one of another rank" in refusal(tmp_path, "Gemm", (4,), (4, 5))
