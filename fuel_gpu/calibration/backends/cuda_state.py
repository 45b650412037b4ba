"""What a card's own counters say under load, read through NVML: link, clocks, throttling."""

import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any, Final

from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes.report import DeviceInfo

_EVERY_S: Final = 0.02
"""Readings are so far apart at least: one takes some 0.1 ms."""

_SHARE: Final = 0.1
"""A reason that fewer readings show moves no median."""

_REASONS: Final = {
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}
"""Bits of nvmlClocksThrottleReasons (nvml.h); idling and what somebody has set are left out."""


class CardCounters:
    """Readings of one card since the latest `watch`.

    Parameters
    ----------
    nvml
        The module ``pynvml``, or one with its functions; initialised.
    handle
        The card, as NVML knows it.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self.watch()

    def watch(self) -> None:
        """Forget all readings."""
        self._next_s = 0.0
        self._seen: dict[str, list[int]] = {}

    def look(self) -> None:
        """Read the counters, unless they were read a moment ago. Never raises."""
        if time.monotonic() < self._next_s:
            return
        nvml = self._nvml
        for name, function, *arguments in (
            ("generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
            ("width", "nvmlDeviceGetCurrPcieLinkWidth"),
            ("sm", "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            ("memory", "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            ("reasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
        ):
            value = self._ask(getattr(nvml, function), *arguments)
            if value is not None:
                self._seen.setdefault(name, []).append(value)
        self._next_s = time.monotonic() + _EVERY_S

    def conditions(self) -> Conditions | None:
        """Sum up the readings; None if there are none."""
        if not self._seen:
            return None
        reasons = self._seen.get("reasons", [])
        return Conditions(
            link_generation=max(self._seen.get("generation", ()), default=None),
            link_width=max(self._seen.get("width", ()), default=None),
            sm_clock_mhz=_range(self._seen.get("sm")),
            memory_clock_mhz=_range(self._seen.get("memory")),
            throttled=tuple(
                words
                for bit, words in _REASONS.items()
                if sum(bool(value & bit) for value in reasons) > _SHARE * len(reasons)
            ),
        )

    def _ask(self, function: Callable[..., int], *arguments: int) -> int | None:
        try:
            return function(self._handle, *arguments)
        except self._nvml.NVMLError:  # this card, or this driver, does not tell
            return None


def open_counters(info: DeviceInfo) -> CardCounters | None:
    """Give the counters of a card; None without nvidia-ml-py, NVML, or the card in it."""
    if info.pci_address is None or importlib.util.find_spec("pynvml") is None:
        return None
    nvml = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
        return CardCounters(nvml, nvml.nvmlDeviceGetHandleByPciBusId(info.pci_address))
    except nvml.NVMLError:
        return None


def _range(values: list[int] | None) -> tuple[int, int] | None:
    return (min(values), max(values)) if values else None
