"""What a shipped kernel promises about its result, from its family, dtypes and sum length.

Every bound is a worst case over all inputs within the dtype's range, and holds for any order of
summation. ULPs count from the correctly rounded result, in the dtype that the tensor is stored
in. Where inputs are rounded first, or an operator adds, the relative bound is one of mixed error:
relative to the sum of the absolute terms. Sources: N. J. Higham, Accuracy and Stability of
Numerical Algorithms, 2nd edition, sections 1.5 (mixed forward-backward error), 3.1 (γ_n) and 3.5
(sums of products); for elementary functions the makers' tables named at `FUNCTION_ULP`.
"""

import math
from functools import lru_cache
from typing import Final

from fuel_gpu.dtypes import UNIT_ROUNDOFF
from fuel_gpu.kernels import costs_contrib, costs_elementwise
from fuel_gpu.kernels.costs_elementwise import TRANSCENDENTAL
from fuel_gpu.kernels.families import CHOOSING, Family
from fuel_gpu.kernels.precision import UNAUDITED, PrecisionGuarantee

FUNCTION_ULP: Final[dict[str, float]] = {
    "cpu": 4.0,
    "cuda": 4.0,
    "opencl": 16.0,
    "vulkan": 4096.0,
    "metal": 16.0,
}
"""Largest error of one elementary function of those that ONNX uses, by backend.

cpu     glibc's vector functions (libmvec)
cuda    CUDA C++ Programming Guide, table of maximum errors; the loosest here are pow and tan
opencl  OpenCL C specification, relative error as ULPs, full profile; erf and pow are loosest
vulkan  Vulkan specification, precision of SPIR-V operations; atan is loosest, and sine has an
        absolute bound of 2**-11 instead
metal   Metal Shading Language specification, precise mode; pow is loosest
"""

DIVISION_ULP: Final[dict[str, float]] = {"opencl": 3.0, "vulkan": 3.0}
"""Division, reciprocal and square root, from the same tables; elsewhere rounded correctly."""

EXACT: Final = PrecisionGuarantee(True, 0, 0.0, 0.0, "moves bits or chooses among them")
INTEGER: Final = PrecisionGuarantee(True, 0, 0.0, 0.0, "integer arithmetic, modulo 2**bits")
ONE_STEP: Final = PrecisionGuarantee(
    True, None, None, 1.0, "exact integer sums; scaled, so one step of the output near a tie"
)
NO_BOUND: Final = PrecisionGuarantee(True, notes="deterministic, no stated bound")

_ROUNDINGS: Final = {**costs_elementwise.FLOPS_PER_ELEMENT, **costs_contrib.FLOPS_PER_ELEMENT}
"""FLOPs of one element; by TRANSCENDENTAL they fall into functions and single roundings."""

_DIVISIONS: Final = frozenset({"Div", "Reciprocal", "Sqrt"})
_INTEGER_PRODUCTS: Final = frozenset({"ConvInteger", "MatMulInteger"})
_TO_FLOAT: Final = frozenset(
    {
        "DequantizeLinear",
        "com.microsoft.DequantizeLinear",
        "com.microsoft.DynamicQuantizeMatMul",
        "com.microsoft.MatMulIntegerToFloat",
    }
)

_ACCUMULATES_WIDE: Final = frozenset({"tf32", "float16", "bfloat16"})
"""Compute dtypes whose terms are summed in float32."""

_SUMMING: Final[frozenset[Family]] = frozenset(
    {
        "conv",
        "matmul",
        "attention",
        "recurrent",
        "reduction",
        "pooling",
        "softmax",
        "normalisation",
        "resample",
        "fourier",
    }
)

_AROUND: Final[dict[str, tuple[int, int]]] = {
    "reduction": (1, 0),  # the mean's division, the norm's root
    "pooling": (1, 0),
    "softmax": (2, 1),  # difference, division; exp
    "normalisation": (8, 0),  # centring, squaring, 1/sigma, scale, shift
    "attention": (4, 1),  # scaling and the softmax
    "recurrent": (7, 5),  # the cell: three sigmoids and two tanhs
    "resample": (4, 0),  # the coordinate and its weights
    "fourier": (0, 1),  # the twiddle factors
    "LRN": (4, 1),
    "LogSoftmax": (2, 2),
    "ReduceLogSum": (0, 1),
    "ReduceLogSumExp": (1, 2),
}
"""Roundings and elementary functions before and after the sum, by family or operator."""


def gamma(terms: float, unit_roundoff: float) -> float:
    """γ_n = n·u / (1 - n·u); infinite where n·u reaches 1 and nothing can be promised."""
    product = terms * unit_roundoff
    return product / (1.0 - product) if product < 1.0 else math.inf


@lru_cache(maxsize=65536)
def claim(
    family: Family,
    op: str,
    backend: str,
    compute: str,
    stored: str,
    terms: int,
    deterministic: bool,
) -> PrecisionGuarantee:
    """State what a kernel promises.

    Parameters
    ----------
    family, op
        The operator and its family.
    backend
        Whose elementary functions and whose reproducibility.
    compute, stored
        The dtype of the arithmetic, and that of the tensors around it.
    terms
        Terms summed into one element.
    deterministic
        Whether cuda's products use only algorithms that give the same bits again.
    """
    if family in ("control", "host", "unknown", "random"):
        return UNAUDITED
    if family == "movement":
        return EXACT
    if compute.startswith(("int", "uint", "bool")):
        return INTEGER if family != "quantised" or op in _INTEGER_PRODUCTS else ONE_STEP
    u = UNIT_ROUNDOFF.get(compute)
    if u is None:  # eight-bit floats, complex numbers
        return UNAUDITED
    u_stored = UNIT_ROUNDOFF.get(stored, u)
    stable = deterministic or not _may_vary(family, backend)
    if op == "com.microsoft.MatMulNBits":
        return _summed("matmul", op, backend, stable, compute, u_stored, terms)
    if family == "quantised":
        return _elementwise(op, backend, u, u_stored, 3) if op in _TO_FLOAT else ONE_STEP
    if family == "sort":
        return NO_BOUND if op == "NonMaxSuppression" else EXACT
    if family == "scatter":
        adds = terms > 1
        return _summed(family, op, backend, stable, compute, u_stored, terms) if adds else EXACT
    if op in CHOOSING:
        return _chosen(u, u_stored)
    if family in _SUMMING:
        return _summed(family, op, backend, stable, compute, u_stored, terms)
    return _elementwise(op, backend, u, u_stored, terms)


def _may_vary(family: Family, backend: str) -> bool:
    """Products on cuda may split sums by what is free; scatters add in the order of arrival."""
    return backend == "cuda" and family in ("conv", "matmul", "attention", "recurrent", "scatter")


def _chosen(u: float, u_stored: float) -> PrecisionGuarantee:
    if u <= u_stored:
        return EXACT
    note = "inputs rounded once to the compute dtype, within its range"
    return PrecisionGuarantee(True, 0.5 * u / u_stored, u, None, note)


def _summed(
    family: Family,
    op: str,
    backend: str,
    stable: bool,
    compute: str,
    u_stored: float,
    terms: int,
) -> PrecisionGuarantee:
    """γ_n of the dtype that sums; twice u for factors rounded first; u for the rounded result."""
    u = UNIT_ROUNDOFF[compute]
    summing = UNIT_ROUNDOFF["float32"] if compute in _ACCUMULATES_WIDE else u
    roundings, functions = _AROUND.get(op) or _AROUND.get(family, (0, 0))
    bound = gamma(terms + roundings + functions * _function_error(backend), summing)
    note = f"{terms} terms, relative to the sum of their absolute values (Higham 3.5)"
    if u > u_stored:
        bound = _both(bound, _both(u, u))
        note += "; factors rounded to the compute dtype, within its range"
    if u_stored > summing:
        bound = _both(bound, u_stored)
    if family == "recurrent":
        note += "; for one step, given its input and state"
    return PrecisionGuarantee(stable, None, bound, None, note)


def _elementwise(
    op: str, backend: str, u: float, u_stored: float, otherwise: int
) -> PrecisionGuarantee:
    """Count elementary functions and single roundings, as the operator's FLOPs do.

    `otherwise` is how many roundings an operator has whose number depends on its inputs.
    """
    functions, roundings = divmod(_ROUNDINGS.get(op, otherwise), TRANSCENDENTAL)
    division_ulp = DIVISION_ULP.get(backend, 0.0) if op in _DIVISIONS else 0.0
    error = _function_error(backend) * functions + (2 * division_ulp + 1) * roundings
    bound = gamma(error, u)
    if u > u_stored:
        note = "mixed error: inputs rounded to the compute dtype, within its range (Higham 1.5)"
        return PrecisionGuarantee(True, None, _both(bound, _both(u, u)), None, note)
    if u < u_stored:
        if functions == 0 and roundings == 1:  # twice rounded is once rounded, at these widths
            return PrecisionGuarantee(True, 0.0, u_stored, None, "one operation, rounded")
        note = "computed wider than stored, then rounded once"
        return PrecisionGuarantee(True, 1.0, _both(bound, u_stored), None, note)
    if functions + roundings == 1:
        ulp = FUNCTION_ULP[backend] if functions else division_ulp
        return PrecisionGuarantee(True, ulp, error * u, None, "one operation, rounded")
    note = f"{functions} elementary functions and {roundings} roundings, mixed error (Higham 1.5)"
    return PrecisionGuarantee(True, None, bound, None, note)


def _function_error(backend: str) -> float:
    """Error of one elementary function in unit roundoffs: an ULP is two, the rounding one."""
    return 2 * FUNCTION_ULP[backend] + 1


def _both(first: float, second: float) -> float:
    """Bound one relative error after another: (1 + a)(1 + b) - 1."""
    return first + second + first * second
