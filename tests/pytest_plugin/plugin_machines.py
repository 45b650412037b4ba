"""Machines for the pytest plugin to find, and a way to run a test file on one."""

import textwrap
from typing import Any

import pytest

from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

GIB = 2**30


def device(name: str, **fields: Any) -> DeviceInfo:
    values = {"name": f"Model of {name}", "memory_bytes": 8 * GIB, **fields}
    return DeviceInfo(id=name, backend=name.partition(":")[0], **values)


CPU = device("cpu:0", host_processor=True)
POCL = device("opencl:0", host_processor=True)
LLVMPIPE = device("vulkan:0", host_processor=True)
NO_CARD = ProbeReport(
    devices=(CPU, POCL, LLVMPIPE),
    unavailable=(Unavailable(backend="cuda", reason="the driver is asleep", remedy="sing to it"),),
)
ONE_CARD = ProbeReport(devices=(CPU, device("cuda:0"), POCL, LLVMPIPE))


class Machine:
    """What the probe is to find; counts how often it is asked."""

    def __init__(self, report: ProbeReport) -> None:
        self.report = report
        self.probed = 0

    def probe(self) -> ProbeReport:
        self.probed += 1
        return self.report


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Run a test file in this process, with marks held to what is registered."""
    pytester.makepyfile(f"import pytest\n{textwrap.dedent(source)}")
    return pytester.runpytest("--strict-markers", "-rs", *arguments)
