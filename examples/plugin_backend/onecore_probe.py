"""A backend of one's own: one core of the processor, as a program without threads would have it.

fuel-gpu finds this module by the entry point in pyproject.toml beside it, and runs it in child
processes only, under a time limit. `backend` and `enumerate_devices` are all that a probe needs
(`fuel_gpu.probes.protocol`): with them the devices are listed. `open_device` is optional: it gives
what `fuel-gpu calibrate` measures with (`fuel_gpu.calibration.backends.OpenDevice`).

To plan on the device, say which operators it has kernels for; without that none is placed there.
With `Kernel` and `default_bindings` from `fuel_gpu.kernels.binding`:

    product = Kernel("onecore.matmul.float32", backend="onecore", dtype="float32")
    bindings = default_bindings().with_kernel(product, ["MatMul", "Gemm"])
    made = plan(graph, table, bindings=bindings)
"""

from importlib.metadata import version

import numpy as np
from threadpoolctl import threadpool_limits

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.clock import timed
from fuel_gpu.probes.cpu import describe_processor, host_memory_bytes
from fuel_gpu.probes.identity import equivalence_key
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

backend = "onecore"

_DTYPES = ("float32", "float64")


def enumerate_devices() -> ProbeReport:
    """List the one device.

    A backend whose library or driver may be missing would give no device and an
    ``Unavailable(backend, reason, remedy)`` instead, and never raise.
    """
    model, _ = describe_processor()
    driver = f"NumPy {version('numpy')}, one thread"
    device = DeviceInfo(
        id=f"{backend}:0",
        backend=backend,
        name=f"one core of {model}",
        memory_bytes=host_memory_bytes(),
        dtypes=_DTYPES,
        driver=driver,  # a table measured with another is stale
        equivalence_key=equivalence_key(backend, model, driver, "host memory"),
        unified_memory=True,  # it works in the host's memory …
        host_processor=True,  # … and on the host's cores: one more door of the processor
    )
    return ProbeReport(devices=(device,))


def open_device(device: DeviceInfo) -> "OneCore":
    """Open the device for measuring."""
    return OneCore()


class OneCore:
    """NumPy kept to one thread. Each `Workload` says how much work one run is, and checks it."""

    host_memory_kinds: tuple[str, ...] = ()  # nothing is copied: its memory is the host's

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Refuse: see `host_memory_kinds`."""
        raise NotImplementedError("this device works in the host's memory")

    def launch(self) -> Workload:
        """Call a kernel that does next to nothing."""
        x = np.zeros(1, dtype=np.float32)
        return Workload(1, lambda: timed(lambda: np.add(x, 1, out=x)), lambda: bool(x[0] > 0))

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """Name the kernels to try; the best counts."""
        return ("numpy.matmul",) if dtype in _DTYPES else ()

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Square the matrix whose entries are all 1: each entry of the product is n."""
        ones = np.ones((n, n), dtype=dtype)
        result = np.zeros_like(ones)

        def run() -> int:
            with threadpool_limits(1):
                return timed(lambda: np.matmul(ones, ones, out=result))

        return Workload(2 * n**3, run, lambda: bool((result == n).all()))

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """Name the kernels to try; the best counts."""
        return ("numpy.copyto",) if dtype in _DTYPES else ()

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Copy an array: each byte is read once and written once."""
        source = np.arange(nbytes // np.dtype(dtype).itemsize, dtype=dtype)
        target = np.zeros_like(source)
        return Workload(
            2 * nbytes,
            lambda: timed(lambda: np.copyto(target, source)),
            lambda: bool(np.array_equal(source, target)),
        )
