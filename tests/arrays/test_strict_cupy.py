"""The double refuses what CuPy refuses: without that, passing on it would mean nothing."""

import numpy as np
import pytest
from strict_cupy import StrictCupy


@pytest.fixture
def xp() -> StrictCupy:
    return StrictCupy()


def test_it_does_not_mix_with_numpy_or_turn_into_it(xp: StrictCupy) -> None:
    array = xp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        array + np.ones(2)
    with pytest.raises(TypeError):
        np.ones(2) + array
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(array)
    with pytest.raises(TypeError):
        np.minimum(array, 1.0)
    with pytest.raises(IndexError):
        array[np.array([0])]
    with pytest.raises(TypeError):
        xp.concatenate([array, np.ones(2)])


def test_it_has_only_cupys_names_and_arguments(xp: StrictCupy) -> None:
    array = xp.asarray([3, 1])
    for name in ("errstate", "ascontiguous", "piecewize"):
        with pytest.raises(AttributeError):
            getattr(xp, name)
    with pytest.raises(AttributeError):
        array.setflags()
    with pytest.raises(ValueError, match="stable"):
        xp.argsort(array, kind="quicksort")
    with pytest.raises(TypeError):
        xp.flatnonzero(array, axis=0)
    with pytest.raises(NotImplementedError):
        xp.minimum.accumulate(array)
    with pytest.raises(TypeError, match="int64"):
        xp.minimum.at(array, xp.asarray([0]), array[:1])


def test_it_counts(xp: StrictCupy) -> None:
    array = xp.asarray([3.0, 1.0, 2.0])
    total = (array * 2 + array)[array > 1.0].sum()
    assert xp.counts.uploads == 1
    assert xp.counts.launches == 5  # times, plus, greater, take, sum
    assert xp.counts.waits == 1  # the mask's length
    assert float(total) == 15.0
    assert xp.counts.waits == 2
    assert array.get().tolist() == [3.0, 1.0, 2.0]
    assert xp.counts.waits == 3
