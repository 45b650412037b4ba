"""Copies both ways at once between two devices: what their link carries in all."""

from collections.abc import Callable, Iterator
from typing import Final

from fuel_gpu.calibration.backends import DuplexDevice, Workload
from fuel_gpu.calibration.effort import MIB, Effort
from fuel_gpu.calibration.figures import now
from fuel_gpu.calibration.kernel_trials import WrongResult, measure_rate
from fuel_gpu.calibration.records import DuplexMeasured, Note, Record, Wrong
from fuel_gpu.calibration.table import Duplex
from fuel_gpu.sizes import size_text

_BYTES: Final = 64 * MIB
"""Large enough that starting two copies costs nothing beside them."""


def measure_duplex(
    device: DuplexDevice,
    ends: tuple[str, str],
    memory: str,
    make: Callable[[int], Workload],
    bound_bytes: int,
    effort: Effort,
    deadline: float,
) -> Iterator[Record]:
    """Measure copies of one size each way.

    Parameters
    ----------
    make
        Gives the copies of so many bytes each way.
    bound_bytes
        The largest copy that may be; two of them are in memory at once.
    """
    nbytes = min(_BYTES, bound_bytes // 2 // MIB * MIB)
    what = f"copies both ways at once, {memory}"
    if nbytes == 0:
        yield Note(text=f"{what}: only {size_text(bound_bytes)} of memory may be used for one")
        return
    work = make(nbytes)
    work.run()
    try:
        moved = measure_rate(device, work, "", effort, deadline)
    except WrongResult:
        yield Note(text=f"{what}: came back different, left out")
        yield Wrong(quantity="duplex", of=memory)
        return
    yield DuplexMeasured(
        duplex=Duplex(
            ends=ends,
            memory=memory,
            bytes=nbytes,
            bytes_per_ns=moved.summary.value,
            provenance="measured",
            samples=moved.samples,
            interval=moved.summary.interval,
            flags=moved.flags,
            copy_engines=device.copy_engines(),
            measured=now(),
            conditions=moved.conditions,
        )
    )
