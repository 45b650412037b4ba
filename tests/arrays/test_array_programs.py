"""The same programs on NumPy, on the double of CuPy, and with the raw kernels on OpenCL."""

from typing import Any

import numpy as np
import pytest
from numpy_launcher import kernels_of_double
from opencl_launcher import opencl_engine
from strict_cupy import Counts, StrictArray, StrictCupy

from fuel_gpu.arrays import dominance
from fuel_gpu.arrays.engine import NUMPY, Engine
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain
from fuel_gpu.planner.crowding import crowding_cap
from fuel_gpu.planner.frontier import pareto_mask


def double() -> Engine:
    xp = StrictCupy()
    return Engine("cupy", xp, 1 << 28, kernels_of_double(xp))


def engines() -> list[Engine]:
    return [double(), opencl_engine(), Engine("small chunks", np, 1024)]


def table(nodes: int, size: int, seed: int = 0, spread: int = 10**9) -> CandidateTable:
    rng = np.random.default_rng(seed)
    count = nodes * size
    device = rng.integers(0, 3, count)
    memory = rng.integers(0, spread, count).astype(np.uint64)
    return CandidateTable(
        node=np.repeat(np.arange(nodes), size),
        device=device,
        backend=rng.integers(0, 2, count),
        time_ns=rng.integers(0, spread, count).astype(np.uint64),
        host_bytes=np.where(device == 0, memory, 0).astype(np.uint64),
        device_bytes=np.where(device == 0, 0, memory).astype(np.uint64),
        precision=rng.integers(0, 19, count).astype(np.uint8),
        accuracy=rng.integers(0, 5, count).astype(np.uint8),
    )


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
@pytest.mark.parametrize(
    ("nodes", "size", "spread", "keep"),
    [(50, 7, 10, 32), (50, 8, 10**9, 2), (3, 400, 10**9, 5), (1, 3000, 40, 32), (20, 60, 5, 1)],
)
def test_retention(engine: Engine, nodes: int, size: int, spread: int, keep: int) -> None:
    candidates = table(nodes, size, spread=spread)
    expected = rank_and_retain(candidates, keep, engine=NUMPY)
    got = rank_and_retain(candidates, keep, engine=engine)
    assert isinstance(got.rows, np.ndarray)
    assert got.rows.tolist() == expected.rows.tolist()
    assert got.node_starts.tolist() == expected.node_starts.tolist()
    assert got.nodes.tolist() == expected.nodes.tolist()


def clouds() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    front = np.sort(rng.random((900, 3)), axis=0)
    front[:, 1] *= -1.0
    front[:, 2] = rng.integers(0, 6, 900)
    return {
        "random": rng.random((2000, 4)),
        "front": front,
        "integers": rng.integers(0, 9, (1500, 5)),
        "wide": np.column_stack([rng.random((600, 3)), -rng.random((600, 3)).sum(axis=1)]),
        "uint64": rng.integers(0, 2**64, (500, 3), dtype=np.uint64),
        "equal": np.full((700, 3), 2.0),
    }


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
@pytest.mark.parametrize("cloud", clouds())
def test_frontiers(engine: Engine, cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dominance, "PAIRWISE_UP_TO", 0)
    points = clouds()[cloud]
    groups = np.arange(len(points)) % 7
    for grouping in (None, groups):
        expected = pareto_mask(points, grouping, engine=NUMPY)
        assert pareto_mask(points, grouping, engine=engine).tolist() == expected.tolist()


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
@pytest.mark.parametrize("cloud", clouds())
def test_crowding(engine: Engine, cloud: str) -> None:
    points = clouds()[cloud]
    rng = np.random.default_rng(4)
    options: dict[str, Any] = {
        "groups": np.arange(len(points)) % 3,
        "labels": rng.integers(0, 90, len(points)),
        "protected": rng.random(len(points)) < 0.002,
    }
    expected = crowding_cap(points, 20, engine=NUMPY, **options)
    assert crowding_cap(points, 20, engine=engine, **options).tolist() == expected.tolist()


def test_arrays_of_the_gpu_stay_there() -> None:
    engine = double()
    points = engine.xp.asarray([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])
    mask = pareto_mask(points, engine=engine)
    assert isinstance(mask, StrictArray)
    assert mask.get().tolist() == [True, True, False]


def counts_of_retention(nodes: int, size: int) -> Counts:
    engine = double()
    rank_and_retain(table(nodes, size), engine=engine)
    counts: Counts = engine.xp.counts
    return counts


def test_a_hundred_times_the_candidates_take_no_more_launches() -> None:
    few, many = counts_of_retention(1250, 8), counts_of_retention(125_000, 8)
    assert many == few
    assert few.launches < 1000
    assert few.waits < 25
    assert few.uploads == 8


def test_one_large_node_takes_no_more_launches_but_for_the_rounds() -> None:
    few, many = counts_of_retention(1, 10_000), counts_of_retention(1, 1_000_000)
    assert many.launches < 1.5 * few.launches
    assert many.launches < 2500
    assert many.waits < 250
