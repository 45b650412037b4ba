"""The fewest inputs of each operator, against the standard's own definitions, and when priced."""

import onnx
import pytest
from one_node import cost, f32

from fuel_gpu.errors import PlanError
from fuel_gpu.kernels.arity import least_inputs
from fuel_gpu.kernels.costs import FLOPS

Option = onnx.defs.OpSchema.FormalParameterOption


def _by_the_standard() -> dict[str, int]:
    """Inputs that are required, the least over all versions that are not withdrawn."""
    least: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        op = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        if op in FLOPS and not schema.deprecated:
            required = sum(i.option == Option.Single for i in schema.inputs)
            variadic = schema.inputs and schema.inputs[-1].option == Option.Variadic
            if variadic and schema.min_input >= len(schema.inputs):
                required += 1
            least[op] = min(least.get(op, required), required)
    return least


STANDARD = _by_the_standard()


def test_the_table_agrees_with_the_standard() -> None:
    assert len(STANDARD) > 190
    assert {op: least_inputs(op) for op in STANDARD} == STANDARD


@pytest.mark.parametrize("op", sorted(op for op in FLOPS if least_inputs(op)))
def test_an_operator_without_an_input_it_needs_is_not_priced(op: str) -> None:
    fewer = least_inputs(op) - 1
    with pytest.raises(
        PlanError,
        match=rf"node node \({op}\) cannot be priced: it has {fewer} input\(s\) and "
        rf"needs at least {fewer + 1}",
    ):
        cost(op, [f32(2, 4, 4, 4)] * fewer, f32(2, 4, 4, 4))
