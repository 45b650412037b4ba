"""What a shipped kernel promises about its result, from its family, dtypes and sum length.

Every bound is a worst case, so it holds for any order of summation. Sources: N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, sections 1.5 (mixed forward-backward
error), 3.1 (γ_n = n·u / (1 - n·u)) and 3.5 (sums of products); for elementary functions the
makers' tables named at `FUNCTION_ULP`. ULPs count from the correctly rounded result in the dtype
that the tensor is stored in.
"""

import math
from functools import lru_cache
from typing import Final

from fuel_gpu.dtypes import UNIT_ROUNDOFF
from fuel_gpu.kernels.costs_elementwise import FLOPS_PER_ELEMENT, TRANSCENDENTAL
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

_DIVISIONS: Final = frozenset({"Div", "Reciprocal", "Sqrt"})

_ACCUMULATES_WIDE: Final = frozenset({"tf32", "float16", "bfloat16"})
"""Compute dtypes whose products are summed in float32."""

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
_STEPS_AROUND: Final[dict[Family, tuple[int, int]]] = {
    "softmax": (2, 1),  # difference, division; exp
    "normalisation": (8, 0),  # centring, squaring, 1/sigma, scale, shift
    "attention": (4, 1),  # scaling and the softmax
    "recurrent": (7, 5),  # the cell: three sigmoids and two tanhs
    "resample": (4, 0),  # the coordinate and its weights
}
"""Roundings and elementary functions before and after the sum."""

EXACT: Final = PrecisionGuarantee(True, 0, 0.0, 0.0, "moves bits or chooses among them")
INTEGER: Final = PrecisionGuarantee(True, 0, 0.0, 0.0, "integer arithmetic, modulo 2**bits")


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
    stable = deterministic or not _may_vary(family, backend)
    if family in ("control", "host", "unknown", "random"):
        return UNAUDITED
    u, u_stored = UNIT_ROUNDOFF.get(compute), UNIT_ROUNDOFF.get(stored)
    if family == "movement" or (u is None and family in ("scatter", "sort")):
        return EXACT
    if u is None:
        return INTEGER if family != "quantised" else _quantised(stable)
    if u_stored is None:
        u_stored = u
    if family in ("scatter", "sort"):
        return _scatter(stable, max(u - u_stored, 0.0))
    if family == "quantised":
        return _quantised(stable)
    if op in CHOOSING:
        return _chosen(stable, u, u_stored)
    if family in _SUMMING:
        return _summed(family, backend, stable, compute, u_stored, terms)
    return _elementwise(op, backend, stable, u, u_stored, terms)


def _may_vary(family: Family, backend: str) -> bool:
    """Products on cuda may split sums by what is free; scatters add in the order of arrival."""
    return backend == "cuda" and family in ("conv", "matmul", "attention", "recurrent", "scatter")


def _chosen(stable: bool, u: float, u_stored: float) -> PrecisionGuarantee:
    if u <= u_stored:
        return PrecisionGuarantee(stable, 0, 0.0, 0.0, "chooses or masks: rounds nothing")
    note = "inputs rounded once to the compute dtype, within its range"
    return PrecisionGuarantee(stable, 0.5 * u / u_stored, u, None, note)


def _summed(
    family: Family, backend: str, stable: bool, compute: str, u_stored: float, terms: int
) -> PrecisionGuarantee:
    """γ_n of the dtype that sums, 2u for two inputs that were rounded, u for the rounded result."""
    u = UNIT_ROUNDOFF[compute]
    summing = UNIT_ROUNDOFF["float32"] if compute in _ACCUMULATES_WIDE else u
    roundings, functions = _STEPS_AROUND.get(family, (0, 0))
    bound = gamma(terms + roundings + functions * _function_error(backend), summing)
    if u > u_stored:
        bound += 2 * u
    if u_stored > summing:
        bound += u_stored
    note = f"{terms} terms, relative to the sum of their absolute values (Higham 3.5)"
    if family == "recurrent":
        note += "; for one step, given its input and state"
    return PrecisionGuarantee(stable, None, bound, None, note)


def _elementwise(
    op: str, backend: str, stable: bool, u: float, u_stored: float, terms: int
) -> PrecisionGuarantee:
    """Count elementary functions and single roundings, as the operator's FLOPs do.

    With narrowed inputs the bound is a mixed one: the result is within it of the exact result
    for inputs changed by no more than it.
    """
    functions, roundings = divmod(FLOPS_PER_ELEMENT.get(op, terms), TRANSCENDENTAL)
    division_ulp = DIVISION_ULP.get(backend, 0.0) if op in _DIVISIONS else 0.0
    error = _function_error(backend) * functions + (2 * division_ulp + 1) * roundings
    bound = error * u
    if u > u_stored:
        note = "mixed error: inputs rounded to the compute dtype, within its range (Higham 1.5)"
        return PrecisionGuarantee(stable, None, bound + 2 * u, None, note)
    if u < u_stored:
        ulp = 0.0 if functions == 0 and roundings == 1 else 1.0
        note = "computed wider than stored, then rounded once"
        return PrecisionGuarantee(stable, ulp, bound + u_stored, None, note)
    if functions + roundings == 1:
        ulp = FUNCTION_ULP[backend] if functions else division_ulp
        return PrecisionGuarantee(stable, ulp, bound, None, "one operation, rounded")
    note = f"{functions} elementary functions and {roundings} roundings, mixed error (Higham 1.5)"
    return PrecisionGuarantee(stable, None, bound, None, note)


def _function_error(backend: str) -> float:
    """Error of one elementary function in unit roundoffs: an ULP is two, the rounding one."""
    return 2 * FUNCTION_ULP[backend] + 1


def _scatter(stable: bool, narrowing: float) -> PrecisionGuarantee:
    if narrowing:
        return PrecisionGuarantee(stable, None, 2 * narrowing, None, "values rounded once")
    return PrecisionGuarantee(stable, 0, 0.0, 0.0, "moves or orders values")


def _quantised(stable: bool) -> PrecisionGuarantee:
    """Integer products are exact; scale, round and clamp leave half a step of the output."""
    return PrecisionGuarantee(
        stable, None, UNIT_ROUNDOFF["float32"] * 4, None, "exact integer sums, scaled in float32"
    )
