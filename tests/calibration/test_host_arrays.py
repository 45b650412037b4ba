"""A device's two host arrays: kept while they are large enough."""

import numpy as np

from fuel_gpu.calibration.backends.host_arrays import HostArrays


def test_a_smaller_pair_is_part_of_the_same_memory() -> None:
    arrays = HostArrays()
    there, back = arrays.pair(64)
    again, _ = arrays.pair(16)
    assert (len(there), len(back), len(again)) == (64, 64, 16)
    assert np.shares_memory(there, again)
    assert not np.shares_memory(there, back)


def test_a_larger_pair_is_made_anew() -> None:
    arrays = HostArrays()
    there, _ = arrays.pair(64)
    larger, _ = arrays.pair(128)
    assert len(larger) == 128
    assert not np.shares_memory(there, larger)
