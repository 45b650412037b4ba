"""Claims: worked by hand, and held against arithmetic done in the narrow dtype."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fuel_gpu.kernels.claims import EXACT, INTEGER, ONE_STEP, claim, gamma
from fuel_gpu.kernels.families import Family, family_of
from fuel_gpu.kernels.precision import UNAUDITED, PrecisionGuarantee

U32, U16, UB16, U64 = 2.0**-24, 2.0**-11, 2.0**-8, 2.0**-53


def promise(
    op: str,
    compute: str = "float32",
    stored: str = "float32",
    terms: int = 1,
    backend: str = "cpu",
    deterministic: bool = False,
) -> PrecisionGuarantee:
    return claim(family_of(op), op, backend, compute, stored, terms, deterministic)


def test_gamma() -> None:
    assert gamma(100, 2.0**-10) == (100 / 1024) / (1 - 100 / 1024)
    assert gamma(1024, 2.0**-10) == math.inf


@pytest.mark.parametrize("compute", ["float32", "float16", "int64"])
def test_moving_data_is_exact(compute: str) -> None:
    for op in ("Transpose", "Gather", "Concat", "Cast", "Where"):
        assert promise(op, compute, compute) == EXACT
        assert (EXACT.max_ulp, EXACT.max_relative, EXACT.bit_stable_on_same_hardware) == (
            0,
            0,
            True,
        )


def test_sum_of_products_in_float32() -> None:
    assert promise("MatMul", terms=1000).max_relative == gamma(1000, U32)
    assert promise("Conv", terms=147).max_relative == gamma(147, U32)
    assert promise("MatMul", terms=1000).max_ulp is None  # terms may cancel


@pytest.mark.parametrize(("compute", "u"), [("tf32", U16), ("float16", U16), ("bfloat16", UB16)])
def test_narrow_products_round_both_factors_and_sum_in_float32(compute: str, u: float) -> None:
    bound = promise("MatMul", compute, terms=1000).max_relative
    assert bound == pytest.approx((1 + gamma(1000, U32)) * (1 + u) ** 2 - 1, rel=1e-12)
    assert bound == pytest.approx(gamma(1000, U32) + 2 * u, rel=0.01)


def test_wider_products_round_once_at_the_end() -> None:
    bound = promise("MatMul", "float64", terms=1000).max_relative
    assert bound == pytest.approx(U32 + gamma(1000, U64), rel=1e-6)


def test_a_half_precision_model_sums_in_float32_either_way() -> None:
    in_half = promise("MatMul", "float16", "float16", terms=100).max_relative
    in_single = promise("MatMul", "float32", "float16", terms=100).max_relative
    assert in_half == in_single == pytest.approx(U16 + gamma(100, U32), rel=1e-3)


def test_a_sum_too_long_to_bound_promises_nothing() -> None:
    assert promise("ReduceSum", terms=2**24).max_relative == math.inf


@pytest.mark.parametrize(
    ("op", "ulp", "relative"),
    [("Add", 0, U32), ("Mul", 0, U32), ("Sqrt", 0, U32), ("Exp", 4, 9 * U32), ("Tanh", 4, 9 * U32)],
)
def test_one_operation_on_the_cpu(op: str, ulp: float, relative: float) -> None:
    made = promise(op)
    assert (made.max_ulp, made.max_relative) == (ulp, relative)


def test_functions_by_backend() -> None:
    ulps = {b: promise("Exp", backend=b).max_ulp for b in ("cpu", "cuda", "opencl", "vulkan")}
    assert ulps == {"cpu": 4, "cuda": 4, "opencl": 16, "vulkan": 4096}
    assert promise("Div", backend="opencl").max_ulp == 3
    assert promise("Div", backend="cuda").max_ulp == 0


def test_steps_add_up() -> None:
    # sigmoid: one function (9 u on the CPU) and three roundings
    assert promise("Sigmoid").max_relative == gamma(12, U32)
    assert promise("com.microsoft.QuickGelu").max_relative == gamma(9 + 5, U32)
    assert promise("Sum", terms=3).max_relative == gamma(3, U32)


@pytest.mark.parametrize("op", ["Relu", "Max", "Clip", "MaxPool", "ReduceMax", "Greater"])
def test_choosing_rounds_nothing_unless_inputs_are_narrowed(op: str) -> None:
    assert promise(op) == promise(op, "float64") == EXACT
    narrow = promise(op, "float16")
    assert (narrow.max_ulp, narrow.max_relative) == (4096, U16)  # half of 2**13 ULPs of float32


@pytest.mark.parametrize("op", ["Add", "MatMul", "ReduceSum", "Relu", "MatMulInteger"])
def test_integers_are_exact(op: str) -> None:
    assert promise(op, "int32", "int32", terms=99) in (INTEGER, EXACT)


def test_quantised_results_may_be_one_step_off() -> None:
    assert promise("QLinearConv", "uint8", "uint8", terms=27) == ONE_STEP
    assert promise("QuantizeLinear") == ONE_STEP
    assert promise("DequantizeLinear").max_relative == gamma(2, U32)
    weights = promise("com.microsoft.MatMulNBits", terms=64)
    assert weights.max_relative == gamma(64, U32)


@pytest.mark.parametrize("op", ["Loop", "SequenceAt", "org.example.Blur", "RandomNormal"])
def test_what_is_not_known_promises_nothing(op: str) -> None:
    assert promise(op) == UNAUDITED


def test_eight_bit_floats_promise_nothing() -> None:
    assert promise("MatMul", "float8e4m3fn", "float8e4m3fn", terms=8) == UNAUDITED


STABLE: list[tuple[str, str, bool]] = [
    ("MatMul", "cpu", True),
    ("MatMul", "opencl", True),
    ("MatMul", "cuda", False),
    ("Conv", "cuda", False),
    ("Attention", "cuda", False),
    ("Add", "cuda", True),
    ("Softmax", "cuda", True),
    ("ReduceSum", "cuda", True),
]


@pytest.mark.parametrize(("op", "backend", "stable"), STABLE)
def test_bit_stability(op: str, backend: str, stable: bool) -> None:
    assert promise(op, backend=backend, terms=8).bit_stable_on_same_hardware is stable
    asked = promise(op, backend=backend, terms=8, deterministic=True)
    assert asked.bit_stable_on_same_hardware


def test_scattered_sums_depend_on_the_order_of_arrival_on_cuda() -> None:
    assert not promise("ScatterND", backend="cuda", terms=13).bit_stable_on_same_hardware
    assert promise("ScatterND", backend="cuda", terms=1) == EXACT
    assert promise("ScatterND", backend="cpu", terms=13).max_relative == gamma(13, U32)


FAMILIES: list[tuple[Family, str]] = [
    ("matmul", "MatMul"),
    ("softmax", "Softmax"),
    ("normalisation", "LayerNormalization"),
    ("elementwise", "Add"),
    ("elementwise", "Gelu"),
]


@given(st.sampled_from(FAMILIES), st.integers(1, 4096))
def test_a_narrower_dtype_never_promises_more(case: tuple[Family, str], terms: int) -> None:
    order = ["float64", "float32", "tf32", "float16", "bfloat16"]
    bounds = [promise(case[1], compute, terms=terms).max_relative for compute in order]
    known = [b for b in bounds if b is not None]
    assert len(known) == 5
    assert known == sorted(known)


@given(st.integers(1, 400), st.integers(0, 2**32 - 1), st.sampled_from(["float32", "float16"]))
def test_dot_products_keep_the_promise(length: int, seed: int, compute: str) -> None:
    rng = np.random.default_rng(seed)
    a: NDArray[np.float32] = (rng.standard_normal(length) * 8).astype(np.float32)
    b: NDArray[np.float32] = (rng.standard_normal(length) * 8).astype(np.float32)
    total = np.float32(0)
    for x, y in zip(a.astype(compute), b.astype(compute), strict=True):
        total = np.float32(total + np.float32(x) * np.float32(y))
    exact = math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    scale = math.fsum(abs(float(x) * float(y)) for x, y in zip(a, b, strict=True))
    bound = promise("MatMul", compute, terms=length).max_relative
    assert bound is not None
    assert abs(float(total) - exact) <= bound * scale


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=2, max_size=2))
def test_sums_keep_the_promise(pair: list[float]) -> None:
    x, y = pair
    for compute in ("float32", "float16"):
        rounded = np.asarray(pair).astype(compute)
        result = float((rounded[:1] + rounded[1:])[0])
        bound = promise("Add", compute).max_relative
        assert bound is not None
        smallest = 2.0**-24 if compute == "float16" else 2.0**-149
        assert abs(result - (x + y)) <= bound * (abs(x) + abs(y)) + 2 * smallest
