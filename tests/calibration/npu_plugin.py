"""A third party's backend `npu` for tests: its devices' names choose how measuring them goes."""

import ctypes
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

    fault: Callable[[], object]

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        self.fault()
        return super().product(dtype, kernel, n)


def _segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hang() -> None:
    time.sleep(600)


def _stick() -> None:
    """Hang as a driver does that was called without letting other threads of Python run."""
    ctypes.PyDLL(None).sleep(600)


def _exit() -> None:
    os._exit(3)


def _raise() -> None:
    raise RuntimeError("the firmware is missing")


def _print() -> None:
    os.write(1, b"a driver's banner\n\xff\xfe\x1e{}\n")


def _flood() -> None:
    while True:
        os.write(1, b"x" * 2**16)


def _fill_memory() -> None:
    hoard = [b"x" * 2**24 for _ in range(24)]
    time.sleep(600)
    print(len(hoard))


FAULTS: dict[str, Callable[[], object]] = {
    "crash": _segfault,
    "hang": _hang,
    "stick": _stick,
    "exit": _exit,
    "raise": _raise,
    "chatty": _print,
    "flood": _flood,
    "fill memory": _fill_memory,
}


def open_device(info: DeviceInfo) -> FakeDevice:
    """Open a device for measuring; its name tells its fault, and whether opening has it.

    ``crash later:`` and ``wrong later:`` with a file's path are faults of all sittings but the
    first, which makes the file.
    """
    name, _, seen = info.name.removesuffix(" when opened").partition(" later:")
    if seen and not Path(seen).exists():
        Path(seen).touch()
        return FakeDevice({"float32": {"plain": 64.0}})
    if name == "wrong":
        return FakeDevice({"float32": {"plain": -64.0}})
    if name == "tells its process":
        return FakeDevice({"float32": {"plain": 64.0}}, launch_ns=os.getpid())
    if name not in FAULTS:
        return FakeDevice({"float32": {"plain": 64.0}})
    if info.name.endswith(" when opened"):
        FAULTS[name]()
    device = Faulty({"float32": {"plain": 64.0}})
    device.fault = FAULTS[name]
    return device
