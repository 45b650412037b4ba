"""The probe of the whole machine: every backend at once, each where it can do no harm."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from fuel_gpu.errors import UsageError
from fuel_gpu.probes import cpu, registry
from fuel_gpu.probes.cards import with_card_memory
from fuel_gpu.probes.isolation import Ending, run_isolated
from fuel_gpu.probes.report import ProbeReport, Unavailable

DEFAULT_TIMEOUT_S: Final = 20.0
"""Long enough for a server's driver that first has to wake eight cards."""

_MOST_TIMEOUT_S: Final = 86_400.0
"""A day: whoever writes more has mistaken the unit."""


def probe(
    backends: str | Sequence[str] | None = None, *, timeout_s: float = DEFAULT_TIMEOUT_S
) -> ProbeReport:
    """Find the devices of this machine, and say why the missing ones are missing.

    Each backend but the CPU is enumerated in a child process. A driver that crashes, hangs,
    exits, prints garbage or fills memory costs its own devices and one line of the report.

    Parameters
    ----------
    backends
        Only these: ``cpu``, ``cuda``, ``opencl``, ``vulkan``, ``metal``, ``d3d12``, or a plugin's.
        None for all.
    timeout_s
        Seconds that each backend may take, at most a day; they run side by side.

    Returns
    -------
    ProbeReport
        Devices in the order cpu, cuda, opencl, vulkan, metal, d3d12, plugins by name.

    Raises
    ------
    UsageError
        If a backend is unknown, or the limit is no number of seconds above 0 and up to a day.
    """
    _check_limit(timeout_s)
    plugins = registry.plugins()
    known = registry.known_backends(plugins)
    wanted = known if backends is None else _named(backends, known)
    to_run = registry.in_report_order(
        {registry.ALSO_FOUND_BY.get(name, name) for name in wanted}
        & {*registry.BUILT_IN, *plugins.entry_points}
    )
    endings = run_isolated(
        {
            name: ("-m", "fuel_gpu.probes.child", name, str(timeout_s))
            for name in to_run
            if name != cpu.backend
        },
        timeout_s=timeout_s,
    )
    reports = [
        read_ending(name, endings[name]) if name in endings else cpu.enumerate_devices()
        for name in to_run
    ]
    rejected = tuple(
        Unavailable(backend=name, reason=reason, remedy="uninstall it, or have it renamed")
        for name, reason in plugins.rejected.items()
        if name in wanted
    )
    devices = with_card_memory(device for report in reports for device in report.devices)
    lines = [*(line for report in reports for line in report.unavailable), *rejected]
    if backends is not None:
        told = {device.backend for device in devices} | {line.backend for line in lines}
        lines += [_not_here(name) for name in wanted if name not in told]
    return ProbeReport(
        devices=tuple(
            device
            for name in registry.in_report_order({device.backend for device in devices})
            if name in wanted
            for device in devices
            if device.backend == name
        ),
        unavailable=tuple(lines),
    )


def read_ending(backend: str, ending: Ending) -> ProbeReport:
    """Read what a backend's child handed back; whatever is wrong with it becomes one line."""
    if ending.payload is None:
        return _broken(backend, f"its probe {ending.failure}")
    try:
        report = msgspec.json.decode(ending.payload, type=ProbeReport)
    except msgspec.DecodeError as error:
        return _broken(backend, f"its probe returned nonsense: {error}")
    counts = {backend: 0} | {b: 0 for b, by in registry.ALSO_FOUND_BY.items() if by == backend}
    for device in report.devices:
        if device.backend not in counts:
            return _broken(backend, f"its probe returned nonsense: a {device.backend} device")
        due = f"{device.backend}:{counts[device.backend]}"
        if device.id != due:
            return _broken(backend, f"its probe returned nonsense: {device.id} where {due} was due")
        if device.memory_bytes < 0:
            return _broken(backend, f"its probe returned nonsense: {due} has negative memory")
        counts[device.backend] += 1
    return report


def _check_limit(timeout_s: object) -> None:
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 < timeout_s <= _MOST_TIMEOUT_S:  # type: ignore[operator]  # a number
        raise UsageError(
            f"a probe's time limit (timeout) is {timeout_s!r}: give seconds, above 0 and at most "
            f"{_MOST_TIMEOUT_S:g}"
        )


def _named(backends: object, known: Sequence[str]) -> list[str]:
    names = [backends] if isinstance(backends, str) else backends
    if not isinstance(names, Collection):
        raise UsageError(f"backends: {backends!r} is no list of backends' names")
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is not a backend; known are {', '.join(known)}")
    return list(dict.fromkeys(names))


def _not_here(backend: str) -> Unavailable:
    return Unavailable(
        backend=backend,
        reason="no device of this backend is found",
        remedy="metal is macOS' and d3d12 is Windows'; a card that Vulkan drives is listed there"
        if backend in registry.ALSO_FOUND_BY
        else "",
    )


def _broken(backend: str, reason: str) -> ProbeReport:
    if backend in registry.BUILT_IN:
        remedy = f"the {backend} driver is at fault: update, repair or remove it"
        if "did not answer" in reason:
            remedy += "; if it is only slow, allow it more time (--timeout)"
    else:
        remedy = f"the plugin that registers {backend!r} is at fault: update or uninstall it"
    line = Unavailable(backend=backend, reason=reason, remedy=remedy)
    return ProbeReport(devices=(), unavailable=(line,))
