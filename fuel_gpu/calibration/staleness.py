"""Whether a table still describes the machine in front of us."""

import hashlib
import platform
from collections.abc import Iterator

from fuel_gpu.calibration.table import INCOMPLETE, Machine, Table
from fuel_gpu.probes.report import DeviceInfo, ProbeReport


def describe_machine(report: ProbeReport) -> Machine:
    """Name the machine of a report; its fingerprint changes with system, CPU or memory size.

    Memory counts in whole GiB, because the system keeps a varying few MiB for itself. The host name
    stays out: it changes in containers, and is nobody's business.
    """
    cpu = next((d for d in report.devices if d.backend == "cpu"), None)
    name = cpu.name if cpu else platform.processor()
    memory = round(cpu.memory_bytes / 2**30) if cpu else 0
    system = f"{platform.system()} {platform.machine()}"
    digest = hashlib.sha256(f"{system}|{name}|{memory}".encode()).hexdigest()
    return Machine(
        fingerprint=digest[:16],
        system=system,
        cpu=f"{name}, {memory} GiB",
        python=platform.python_version(),
    )


def stale(table: Table, report: ProbeReport) -> list[str]:
    """Name each way in which the machine is not as the table says; empty if it is current.

    A device that was not measured, or not to the end, is among them. One of which the table notes
    that measuring it failed is not: it would fail again.
    """
    differences = []
    if (other := other_machine(table, report)) is not None:
        differences.append(f"other machine: {other}")
    known = {d.id: d for d in table.devices}
    found = {d.id: d for d in report.devices if not d.simulated}
    for name, device in known.items():
        if name not in found:
            differences.append(f"{name}: device gone ({device.name})")
        else:
            differences += _changes(device, found[name])
    for device in found.values():
        differences += _unmeasured(table, device)
    return differences


def other_machine(table: Table, report: ProbeReport) -> str | None:
    """Say in what the table's machine is not the one of the report; None if it is that one."""
    there, here = table.machine, describe_machine(report)
    if there.fingerprint == here.fingerprint:
        return None
    parts = [(there.cpu, here.cpu), (there.system, here.system)]
    named = [(before, now) for before, now in parts if before and before != now]
    if not named:
        named = [(f"fingerprint {there.fingerprint}", f"fingerprint {here.fingerprint}")]
    before, now = (", ".join(words) for words in zip(*named, strict=True))
    return f"the table is of {before}, this is {now}"


def same_device(before: DeviceInfo, now: DeviceInfo) -> bool:
    """Whether measurements of a device described `before` still hold for it as it is `now`."""
    return not _changes(before, now)


def _changes(before: DeviceInfo, now: DeviceInfo) -> list[str]:
    if before.name != now.name:
        return [f"{now.id}: other device: the table has {before.name}, here is {now.name}"]
    if before.driver != now.driver:
        return [
            f"{now.id}: other driver: the table has {before.driver or 'none'}, "
            f"here is {now.driver or 'none'}"
        ]
    return []


def _unmeasured(table: Table, device: DeviceInfo) -> Iterator[str]:
    notes = [note for note in table.notes if note.startswith(f"{device.id}: ")]
    incomplete = [note for note in notes if note.startswith(f"{device.id}: {INCOMPLETE}")]
    yield from incomplete
    if not notes and not any(rate.device == device.id for rate in table.rates):
        if any(device.id == known.id for known in table.devices):
            yield f"{device.id}: not measured ({device.name})"
        else:
            yield f"{device.id}: new device ({device.name}), not in the table"
