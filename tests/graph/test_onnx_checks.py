"""Inputs that do not fit one another are refused where shape inference lets them pass."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import output_shapes, read, value, weight

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph


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


SCALARS = {"start": 0.0, "limit": 10.0, "delta": 1.0}


def _range(folder: Path, **limits: float) -> Graph:
    weights = [weight(name, number) for name, number in (SCALARS | limits).items()]
    return read(folder, [helper.make_node("Range", [*SCALARS], ["y"])], [], ["y"], weights)


def test_a_range_counts_its_steps(tmp_path: Path) -> None:
    assert output_shapes(_range(tmp_path)) == [(10,)]
    assert output_shapes(_range(tmp_path, delta=-1.0)) == [(0,)]


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        ({"limit": math.inf}, "a limit that is infinite or no number"),
        ({"start": math.nan}, "a limit that is infinite or no number"),
        ({"delta": 0.0}, "a step of 0"),
        ({"limit": 3e38}, "more steps than can be counted"),
    ],
)
def test_a_range_that_never_ends(tmp_path: Path, limits: dict[str, float], complaint: str) -> None:
    with pytest.raises(ModelError, match=rf"node y \(Range\) of model.onnx has {complaint}"):
        _range(tmp_path, **limits)


@pytest.mark.parametrize(
    ("op", "attributes", "named"),
    [
        ("Conv", {"group": 0}, "group 0"),
        ("Conv", {"group": -1}, "group -1"),
        ("Conv", {"strides": [1, 0]}, "strides 0"),
        ("Conv", {"dilations": [0, 1]}, "dilations 0"),
        ("MaxPool", {"kernel_shape": [2, 0]}, "kernel_shape 0"),
        ("DepthToSpace", {"blocksize": 0}, "blocksize 0"),
    ],
)
def test_counts_start_from_one(
    tmp_path: Path, op: str, attributes: dict[str, Any], named: str
) -> None:
    inputs = ["x", "w"] if op == "Conv" else ["x"]
    node = helper.make_node(op, inputs, ["y"], name="it", **attributes)
    weights = [weight("w", np.zeros((4, 4, 1, 1)))]
    with pytest.raises(ModelError, match=rf"node it \({op}\) of model.onnx has {named}, which"):
        read(tmp_path, [node], [value("x", [1, 4, 8, 8])], ["y"], weights)


@pytest.mark.parametrize("op", ["Conv", "MaxPool"])
def test_a_window_that_does_not_fit_into_its_data(tmp_path: Path, op: str) -> None:
    node = helper.make_node(op, ["x", "w"][: 2 if op == "Conv" else 1], ["y"], kernel_shape=[3, 3])
    weights = [weight("w", np.zeros((4, 4, 3, 3)))]
    with pytest.raises(ModelError, match=r"would give .* of \[1, 4, 2, 2\]: its window"):
        read(tmp_path, [node], [value("x", [1, 4, 2, 2])], ["y"], weights)
    none = read(tmp_path, [node], [value("x", [0, 4, 3, 3])], ["y"], weights)
    assert output_shapes(none) == [(0, 4, 1, 1)]


def test_an_equation_of_scalars(tmp_path: Path) -> None:
    node = helper.make_node("Einsum", ["x", "x"], ["y"], equation=",->")
    assert output_shapes(read(tmp_path, [node], [value("x", [])], ["y"])) == [()]
