"""The crossover is the least size from which the GPU wins at every larger size that was tried."""

import pytest

from fuel_gpu.arrays.engine import NUMPY
from fuel_gpu.errors import UsageError
from fuel_gpu.planner import engine_crossover
from fuel_gpu.planner.engine_crossover import crossover, measure_crossover


@pytest.mark.parametrize(
    ("cupy", "expected"),
    [
        ({10: 9, 20: 9, 40: 9}, 10),
        ({10: 50, 20: 19, 40: 9}, 20),
        ({10: 5, 20: 50, 40: 9}, 40),  # a win that does not last is none
        ({10: 5, 20: 5, 40: 40}, None),  # a tie is no win
    ],
)
def test_worked_crossovers(cupy: dict[int, int], expected: int | None) -> None:
    assert crossover((10, 20, 40), lambda size: size, cupy.__getitem__) == expected


def test_the_small_sizes_are_not_tried_once_the_gpu_has_lost() -> None:
    tried = []

    def cupy_ns(size: int) -> int:
        tried.append(size)
        return 100

    crossover((10, 20, 40), lambda size: size, cupy_ns)
    assert tried == [40]


def test_without_a_gpu_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_gpu() -> None:
        raise UsageError("no GPU")

    monkeypatch.setattr(engine_crossover, "cupy_engine", no_gpu)
    assert measure_crossover() is None


def test_what_is_measured_is_real_work(monkeypatch: pytest.MonkeyPatch) -> None:
    # with NumPy standing in for the GPU both sides do the same: a size or none, never an error
    monkeypatch.setattr(engine_crossover, "cupy_engine", lambda: NUMPY)
    monkeypatch.setattr(engine_crossover, "SIZES", (64, 128))
    assert measure_crossover() in (None, 64, 128)
