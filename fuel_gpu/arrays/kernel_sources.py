"""The raw kernels' source, the same for CUDA and OpenCL behind a few macros."""

from importlib.resources import files
from typing import Final, Literal

Dialect = Literal["cuda", "opencl"]

SCAN_GROUP: Final = 256
"""Threads of a group of `scan_by_group`; the source has the same number."""

MINIMUM: Final = 0
UNION: Final = 1
"""The operations of the scans."""

ACTIVE: Final = 0
GONE: Final = 2
"""States of a point in the peel; in between it is leaving."""


def kernel_source(dialect: Dialect) -> str:
    """Give all kernels as one text in the dialect."""
    folder = files("fuel_gpu.arrays") / "kernels"
    names = (f"dialect_{dialect}.h", "scan.cu", "peel.cu", "placement.cu")
    return "\n".join((folder / name).read_text("utf-8") for name in names)
