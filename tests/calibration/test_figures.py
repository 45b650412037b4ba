"""Figures made of samples: what they say, what throttled them, the rates they make."""

import pytest

from fuel_gpu.calibration.figures import figure, joint_conditions, node_stream, rate_of
from fuel_gpu.calibration.table import Conditions

LAUNCH = figure([[500.0] * 6], width=0.03)


def test_a_figure_keeps_its_samples_in_order() -> None:
    found = figure([[3.0, 1.0], [2.0]], width=0.03, kernel="plain, n 512")
    assert found.samples == (3.0, 1.0, 2.0)
    assert found.summary.value == 2.0  # of three samples the middle one stays
    assert found.kernel == "plain, n 512"


def test_held_back_clocks_are_a_flag() -> None:
    hot = Conditions(throttled=("thermal slowdown",))
    assert figure([[1.0] * 6], width=0.03, conditions=hot).flags == ("throttled",)
    assert figure([[1.0] * 6], width=0.03, conditions=Conditions()).flags == ()


def test_conditions_of_several_sittings_are_the_best_link_and_the_range_of_clocks() -> None:
    cool = Conditions(link_generation=4, link_width=8, sm_clock_mhz=(1500, 1700))
    hot = Conditions(
        link_generation=4,
        link_width=16,
        sm_clock_mhz=(1200, 1600),
        memory_clock_mhz=(900, 900),
        throttled=("thermal slowdown",),
    )
    assert joint_conditions([cool, None, hot]) == Conditions(
        link_generation=4,
        link_width=16,
        sm_clock_mhz=(1200, 1700),
        memory_clock_mhz=(900, 900),
        throttled=("thermal slowdown",),
    )
    assert joint_conditions([None, None]) is None


def test_a_rate_says_which_of_its_figures_a_flag_is_of() -> None:
    restless = figure([[4.0], [8.0]], width=0.03, kernel="plain, n 512")
    rate = rate_of("cuda:0", "float32", LAUNCH, restless, None)
    assert rate.flops_per_ns == 6.0
    assert rate.flops_interval == (4.0, 8.0)
    assert rate.flops_samples == (4.0, 8.0)
    assert (rate.launch_ns, rate.launch_interval) == (500, (500, 500))
    assert (rate.bytes_per_ns, rate.bytes_samples, rate.bytes_interval) == (None, (), None)
    assert rate.flags == ("flops: unsettled",)


def test_a_nodes_rate_is_its_figures() -> None:
    node = node_stream(1, "8-15", figure([[16.0] * 6], width=0.03))
    assert (node.node, node.cpus, node.bytes_per_ns) == (1, "8-15", 16.0)
    assert node.interval == pytest.approx((16.0, 16.0))
