"""A third party's backend `npu` for tests: its devices' names choose how measuring them goes."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from fake_device import FakeDevice

from fuel_gpu.calibration.backends import Workload
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

backend = "npu"


def install(folder: Path) -> None:
    """Register the plugin as installing its package would; the folder must be on the path."""
    distribution = folder / "npu_plugin-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: npu-plugin\nVersion: 1.0\n"
    )
    (distribution / "entry_points.txt").write_text("[fuel_gpu.probes]\nnpu = npu_plugin\n")


def describe(index: int, behaviour: str, key: str = "") -> DeviceInfo:
    """Describe a device that will behave so."""
    return DeviceInfo(
        id=f"npu:{index}",
        backend=backend,
        name=behaviour,
        memory_bytes=2**30,
        equivalence_key=key,
    )


def enumerate_devices() -> ProbeReport:
    """List what the environment says there is."""
    behaviours = os.environ.get("NPU_DEVICES", "good").split(",")
    return ProbeReport(devices=tuple(describe(i, b) for i, b in enumerate(behaviours)))


class Faulty(FakeDevice):
    """A device whose matrix product does what it must not."""

    fault: Callable[[], None]

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        self.fault()
        return super().product(dtype, kernel, n)


def _segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hang() -> None:
    time.sleep(600)


def _print() -> None:
    os.write(1, b"a driver's banner\n")


FAULTS = {"crash": _segfault, "hang": _hang, "chatty": _print}


def open_device(info: DeviceInfo) -> FakeDevice:
    """Open a device for measuring."""
    if info.name == "raise":
        raise RuntimeError("the firmware is missing")
    if info.name in FAULTS:
        device = Faulty({"float32": {"plain": 64.0}})
        device.fault = FAULTS[info.name]
        return device
    return FakeDevice({"float32": {"plain": 64.0}})
