"""A machine of three devices, measured and not, with every number easy to work by hand."""

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    Curve,
    Machine,
    Point,
    Provenance,
    Rate,
    Table,
    Transfer,
)
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20


def copies(
    src: str,
    dst: str,
    ns: dict[int, int],
    *,
    memory: str = "pageable",
    provenance: Provenance = "measured",
) -> Transfer:
    """Copies measured at the sizes of `ns`, each three times, the curve through their medians."""
    return Transfer(
        src=src,
        dst=dst,
        memory=memory,
        points=tuple(
            Point(bytes=size, ns=t, samples=(t - 10, t, t + 10), interval=(t - 10, t + 10))
            for size, t in ns.items()
        ),
        curve=Curve(
            knot_bytes=(0, *ns),
            knot_ns=(min(ns.values()) - 1_000, *ns.values()),
            tail_bytes_per_ns=8.0,
        ),
        provenance=provenance,
        measured="2025-01-01T00:00:00+00:00",
    )


def device(id: str, name: str, driver: str = "1.0") -> DeviceInfo:
    """A device of which nothing else matters."""
    return DeviceInfo(
        id=id, backend=id.partition(":")[0], name=name, memory_bytes=3 * 2**32, driver=driver
    )


UP = {4096: 11_000, MIB: 2**17, 32 * MIB: 2**22}
"""32 MiB in 2**22 ns: 8 bytes a nanosecond; 1 MiB in 2**17 ns: 8 as well."""

DOWN = {4096: 9_000, MIB: 2**18, 32 * MIB: 2**23}
"""Half as fast."""

MACHINE = Table(
    version=FORMAT_VERSION,
    machine=Machine(fingerprint="abc", cpu="a processor, 16 GiB"),
    created="2025-01-01T00:00:00+00:00",
    devices=(
        device("cpu:0", "a | processor", ""),
        device("cuda:0", "a card"),
        device("opencl:0", "a processor, once more"),
    ),
    transfers=(
        copies("cpu:0", "cuda:0", UP),
        copies("cuda:0", "cpu:0", DOWN),
        copies("cpu:0", "cuda:0", {4096: 9_000, 32 * MIB: 2**21}, memory="pinned"),
        Transfer(
            src="cpu:0",
            dst="opencl:0",
            points=(),
            curve=line_curve(1_000, 16.0),
            provenance="datasheet",
        ),
    ),
    rates=(
        Rate(
            device="cuda:0",
            dtype="float16",
            flops_per_ns=1234.5,
            bytes_per_ns=None,
            launch_ns=5_000,
            provenance="measured",
            flops_samples=(1200.0, 1234.5, 1300.0),
            flops_interval=(1200.0, 1300.0),
            flops_kernel="tensor cores, n 4096",
            flags=("flops: bimodal", "launch: drift"),
            measured="2025-01-02T00:00:00+00:00",
        ),
    ),
    notes=("cuda:0: something",),
)
