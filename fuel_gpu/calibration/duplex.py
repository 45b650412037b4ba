"""Copies both ways at once between two devices: what their link carries in all."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from fuel_gpu.calibration.backends import (
    DuplexDevice,
    Workload,
    begin_watching,
    conditions_of,
)
from fuel_gpu.calibration.effort import MIB, Effort
from fuel_gpu.calibration.kernel_trials import collect, throttled_flag
from fuel_gpu.calibration.records import DuplexMeasured, Note, Record
from fuel_gpu.calibration.sampling import summarize
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
    begin_watching(device)
    work = make(nbytes)
    work.run()
    samples = [work.amount / ns for ns in collect(work.run, effort, deadline)]
    summary, conditions = summarize(samples, width=effort.width), conditions_of(device)
    if not work.correct():
        yield Note(text=f"{what}: came back different, left out")
        return
    yield DuplexMeasured(
        duplex=Duplex(
            ends=ends,
            memory=memory,
            bytes=nbytes,
            bytes_per_ns=summary.median,
            provenance="measured",
            samples=tuple(samples),
            interval=summary.interval,
            flags=(*summary.flags, *throttled_flag(conditions)),
            copy_engines=device.copy_engines(),
            measured=datetime.now(UTC).isoformat(timespec="seconds"),
            conditions=conditions,
        )
    )
