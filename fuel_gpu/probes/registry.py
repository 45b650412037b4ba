"""Which probes there are: this package's own, and those that plugins register."""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError
from fuel_gpu.probes.protocol import Probe

ENTRY_POINT_GROUP: Final = "fuel_gpu.probes"

BUILT_IN: Final[dict[str, str]] = {
    "cpu": "fuel_gpu.probes.cpu",
    "cuda": "fuel_gpu.probes.cuda",
    "opencl": "fuel_gpu.probes.opencl",
    "vulkan": "fuel_gpu.probes.vulkan",
}
"""Module of each built-in probe, by backend."""

ALSO_FOUND_BY: Final[dict[str, str]] = {"metal": "vulkan", "d3d12": "vulkan"}
"""Backends without a probe of their own, and the probe that finds their devices."""

BACKEND_ORDER: Final = ("cpu", "cuda", "opencl", "vulkan", "metal", "d3d12")
"""The order of a report; plugins' backends follow, by name."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins' probes by backend, and why some names under the group cannot be one."""

    entry_points: dict[str, EntryPoint]
    rejected: dict[str, str]


def plugins() -> Plugins:
    """Find the registered plugins without importing any of them."""
    claims: dict[str, dict[str, EntryPoint]] = {}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        claims.setdefault(entry_point.name, {})[entry_point.value] = entry_point
    accepted: dict[str, EntryPoint] = {}
    rejected: dict[str, str] = {}
    for name, by_value in sorted(claims.items()):
        who = " and ".join(sorted(by_value))
        if name in BACKEND_ORDER:
            rejected[name] = f"the plugin {who} takes the name of a built-in backend"
        elif not _is_backend_name(name):
            rejected[name] = f"the plugin {who} calls its backend {name!r}, which is no device name"
        elif len(by_value) > 1:
            rejected[name] = f"the plugins {who} claim the same backend"
        else:
            (accepted[name],) = by_value.values()
    return Plugins(accepted, rejected)


def known_backends(registered: Plugins | None = None) -> list[str]:
    """List the backends that can be named, the plugins' included, in a report's order."""
    registered = registered or plugins()
    return in_report_order({*BACKEND_ORDER, *registered.entry_points, *registered.rejected})


def _is_backend_name(name: str) -> bool:
    try:
        return Device.parse(name).backend == name
    except UsageError:
        return False


def load(backend: str) -> Probe:
    """Import the probe of a backend: call it only where a broken driver may do harm.

    Raises
    ------
    LookupError
        If there is no such probe.
    """
    if backend in BUILT_IN:
        return cast(Probe, importlib.import_module(BUILT_IN[backend]))
    entry_point = plugins().entry_points.get(backend)
    if entry_point is None:
        raise LookupError(f"no probe is registered for the backend {backend!r}")
    return cast(Probe, entry_point.load())


def in_report_order(backends: Iterable[str]) -> list[str]:
    """Sort backends as a report lists them."""
    return sorted(
        backends,
        key=lambda name: (
            BACKEND_ORDER.index(name) if name in BACKEND_ORDER else len(BACKEND_ORDER),
            name,
        ),
    )
