"""Each operator belongs to one family, and each family is known to the other tables."""

import onnx
import pytest

from fuel_gpu.kernels import costs_contrib, costs_products
from fuel_gpu.kernels.costs import FLOPS
from fuel_gpu.kernels.families import CHOOSING, FAMILY, MEMBERS, family_of


@pytest.mark.parametrize(
    ("op", "family"),
    [
        ("Conv", "conv"),
        ("Gemm", "matmul"),
        ("Relu", "elementwise"),
        ("Gather", "movement"),
        ("LSTM", "recurrent"),
        ("Loop", "control"),
        ("com.microsoft.FusedConv", "conv"),
        ("FusedConv", "unknown"),
        ("org.example.Blur", "unknown"),
    ],
)
def test_family_of(op: str, family: str) -> None:
    assert family_of(op) == family


def test_no_operator_stands_in_two_families() -> None:
    listed = [op for ops in MEMBERS.values() for op in ops.split()]
    assert len(listed) == len(set(listed)) == len(FAMILY)


def test_every_standard_operator_has_a_family() -> None:
    standard = {s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}
    assert standard - FAMILY.keys() == set()


def test_every_operator_that_computes_has_a_formula() -> None:
    host = ("host", "control", "unknown")
    assert {op for op, family in FAMILY.items() if family not in host} - FLOPS.keys() == set()


def test_every_sum_of_products_states_its_length() -> None:
    products = {op for op, family in FAMILY.items() if family in ("conv", "matmul")}
    assert products <= costs_products.CONTRACTED.keys() | costs_contrib.CONTRACTED.keys()


def test_what_only_chooses_is_arithmetic_otherwise() -> None:
    families = {FAMILY[op] for op in CHOOSING}
    assert families == {"elementwise", "pooling", "reduction", "softmax"}
