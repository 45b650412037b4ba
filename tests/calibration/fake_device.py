"""A device whose times and faults a test chooses, with the measuring surface of a real one."""

from collections.abc import Callable
from dataclasses import dataclass, field

from fuel_gpu.calibration.backends import Workload
from fuel_gpu.calibration.effort import Effort

HASTY = Effort(
    sittings=1,
    budget_s=60.0,
    limit_s=20.0,
    copy_sizes_bytes=(4096, 8192, 16384, 32768),
    width=0.03,
    fewest=6,
    most=30,
    fewest_copies=9,
    dwell_s=0.0,
    product_run_ns=1_000_000,
    stream_caches=4,
)
"""Fake figures never vary, so all is settled, and over, at once."""


@dataclass
class FakeCopies:
    """Copies whose time is a function of the size; from `lost_bytes` on they do not arrive."""

    memory: str
    upload_ns: Callable[[int], int]
    download_ns: Callable[[int], int]
    lost_bytes: int = 2**62
    log: list[tuple[str, int]] = field(default_factory=list)
    released: bool = False

    def upload(self, nbytes: int) -> int:
        self.log.append(("upload", nbytes))
        return self.upload_ns(nbytes)

    def download(self, nbytes: int) -> int:
        self.log.append(("download", nbytes))
        return self.download_ns(nbytes)

    def arrived(self, nbytes: int) -> bool:
        return nbytes < self.lost_bytes

    def release(self) -> None:
        self.released = True


@dataclass
class FakeDevice:
    """A device with kernels by dtype; each kernel has a rate, or raises, or is wrong.

    Parameters
    ----------
    products
        For each dtype, FLOP/ns by kernel; a negative rate is a wrong result, zero an error.
    """

    products: dict[str, dict[str, float]] = field(default_factory=dict)
    stream_rate: float = 8.0
    launch_ns: int = 500
    host_memory_kinds: tuple[str, ...] = ("pageable",)
    lost_bytes: int = 2**62
    allocated: list[tuple[str, int]] = field(default_factory=list)
    tried: list[tuple[str, str, int]] = field(default_factory=list)

    def copies(self, largest_bytes: int, memory: str) -> FakeCopies:
        self.allocated.append((memory, largest_bytes))
        return FakeCopies(memory, lambda n: 1000 + n, lambda n: 2000 + n, self.lost_bytes)

    def launch(self) -> Workload:
        if self.launch_ns == 0:
            raise RuntimeError("no launch")
        return Workload(1, lambda: self.launch_ns, lambda: True)

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        return tuple(self.products.get(dtype, {}))

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        self.tried.append((dtype, kernel, n))
        rate = self.products[dtype][kernel]
        if rate == 0:
            raise RuntimeError("it does not compile")
        flops = 2 * n**3
        return Workload(flops, lambda: round(flops / abs(rate)), lambda: rate > 0)

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        return ("copy",)

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        return Workload(2 * nbytes, lambda: round(2 * nbytes / self.stream_rate), lambda: True)
