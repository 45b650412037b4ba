"""On a CUDA device: the same results as NumPy, bit for bit, raw kernels included."""

from typing import Any

import numpy as np
import pytest

from fuel_gpu.arrays.axis_lists import link_axes
from fuel_gpu.arrays.engine import NUMPY, Engine, cupy_engine
from fuel_gpu.arrays.peel import removal_distances
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain
from fuel_gpu.planner.crowding import crowding_cap
from fuel_gpu.planner.frontier import pareto_mask

pytestmark = pytest.mark.cuda


@pytest.fixture(scope="module")
def gpu() -> Engine:
    return cupy_engine()


def table(nodes: int, size: int, spread: int) -> CandidateTable:
    rng = np.random.default_rng(nodes)
    count = nodes * size
    device = rng.integers(0, 4, count)
    memory = rng.integers(0, spread, count).astype(np.uint64)
    return CandidateTable(
        node=rng.permutation(np.repeat(np.arange(nodes), size)),
        device=device,
        backend=rng.integers(0, 3, count),
        time_ns=rng.integers(0, spread, count).astype(np.uint64),
        host_bytes=np.where(device == 0, memory, 0).astype(np.uint64),
        device_bytes=np.where(device == 0, 0, memory).astype(np.uint64),
        precision=rng.integers(0, 19, count).astype(np.uint8),
        accuracy=rng.integers(0, 5, count).astype(np.uint8),
    )


@pytest.mark.parametrize("spread", [20, 10**9])
@pytest.mark.parametrize(("nodes", "size"), [(1, 50_000), (200, 300), (20_000, 8), (5000, 3)])
@pytest.mark.parametrize("keep", [2, 32])
def test_retention(gpu: Engine, nodes: int, size: int, spread: int, keep: int) -> None:
    candidates = table(nodes, size, spread)
    got = rank_and_retain(candidates, keep, engine=gpu)
    expected = rank_and_retain(candidates, keep, engine=NUMPY)
    assert got.rows.tobytes() == expected.rows.tobytes()
    assert got.node_starts.tobytes() == expected.node_starts.tobytes()


def clouds() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    front = np.sort(rng.random((20_000, 4)), axis=0)
    front[:, 1] *= -1.0
    front[:, 2:] = rng.integers(0, [19, 5], (20_000, 2))
    return {
        "random": rng.random((20_000, 5)),
        "front": front,
        "three wide": np.column_stack([rng.random((9000, 2)), -rng.random((9000, 2)).sum(axis=1)]),
        "uint64": rng.integers(0, 2**64, (5000, 3), dtype=np.uint64),
    }


@pytest.mark.parametrize("cloud", clouds())
def test_frontiers_and_crowding(gpu: Engine, cloud: str) -> None:
    points = clouds()[cloud]
    for groups in (None, np.arange(len(points)) % 11):
        expected = pareto_mask(points, groups, engine=NUMPY)
        assert (pareto_mask(points, groups, engine=gpu) == expected).all()
    labels = np.arange(len(points)) % 13
    expected = crowding_cap(points, 40, labels=labels, engine=NUMPY)
    assert (crowding_cap(points, 40, labels=labels, engine=gpu) == expected).all()


def test_the_peel_leaves_the_same_bits(gpu: Engine) -> None:
    rng = np.random.default_rng(3)
    columns = list(rng.random((4, 50_000)))
    groups, pinned = np.zeros(50_000, np.uint64), rng.random(50_000) < 0.01

    def removed(engine: Engine) -> Any:
        lists = link_axes(
            [engine.take_in(column) for column in columns], engine.take_in(groups), engine
        )
        return engine.give_out(removal_distances(lists, engine.take_in(pinned), engine))

    assert removed(gpu).tobytes() == removed(NUMPY).tobytes()


def test_arrays_on_the_gpu_stay_there(gpu: Engine) -> None:
    points = gpu.xp.asarray(clouds()["front"])
    mask = pareto_mask(points)
    assert isinstance(mask, gpu.xp.ndarray)
    assert (mask.get() == pareto_mask(points.get(), engine=NUMPY)).all()


def test_a_gpu_without_memory_left_gives_way_to_numpy(gpu: Engine) -> None:
    pool = gpu.xp.get_default_memory_pool()
    limit = pool.get_limit()
    candidates = table(20_000, 8, 10**9)
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + 1024)
    try:
        with pytest.warns(RuntimeWarning, match="going on with NumPy"):
            got = rank_and_retain(candidates, engine=gpu)
    finally:
        pool.set_limit(size=limit)
    expected = rank_and_retain(candidates, engine=NUMPY)
    assert got.rows.tolist() == expected.rows.tolist()
