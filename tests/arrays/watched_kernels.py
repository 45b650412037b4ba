"""Run every raw kernel once on small input; started under Oclgrind by the tests.

With ``--broken`` as an argument one kernel has a race, to see that it is noticed.
"""

import sys

import numpy as np
from opencl_launcher import opencl_engine

from fuel_gpu.arrays.axis_lists import link_axes
from fuel_gpu.arrays.engine import NUMPY
from fuel_gpu.arrays.kernel_sources import kernel_source
from fuel_gpu.arrays.peel import removal_distances
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.placement_problem import PlacementProblem


def main() -> None:
    source = kernel_source("opencl")
    broken = "--broken" in sys.argv
    if broken:
        harmless = "    double own = distance[point];"
        assert harmless in source
        source = source.replace(harmless, f"    state[0] = (u8)point;\n{harmless}")
    engine = opencl_engine(source)
    rng = np.random.default_rng(3)
    short = rng.integers(0, 99, (40, 19), dtype=np.uint64)
    assert (engine.prefix_min(short.copy(), 1) == np.minimum.accumulate(short, axis=1)).all()
    tall = rng.integers(0, 99, (300, 2), dtype=np.uint64)
    assert (engine.prefix_min(tall.copy(), 0) == np.minimum.accumulate(tall, axis=0)).all()
    groups = np.zeros(60, np.uint64)
    columns = [rng.random(60), rng.integers(0, 5, 60).astype(np.float64)]
    none = np.zeros(60, bool)
    got = removal_distances(link_axes(columns, groups, engine), none, engine)
    expected = removal_distances(link_axes(columns, groups, NUMPY), none, NUMPY)
    assert broken or got.tobytes() == expected.tobytes()
    chain = PlacementProblem(  # long enough for blocks, whose lengths differ
        first_edge=np.maximum(np.arange(71) - 1, 0),
        producer=np.arange(69),
        crossing=np.zeros(69, np.int64),
        cost_ns=rng.integers(0, 9, (70, 3, 2), dtype=np.uint64),
        crossing_ns=rng.integers(0, 9, (1, 3, 3, 2), dtype=np.uint64),
        available=rng.random((70, 3, 1)) < np.array([0.5, 1.0, 0.5])[:, None],
    )
    placed, wanted = place_batch(chain, engine=engine), place_batch(chain, engine=NUMPY)
    assert placed.slot.tolist() == wanted.slot.tolist()
    print("watched 10 kernels")


if __name__ == "__main__":
    main()
