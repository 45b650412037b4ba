"""Whether a table still describes the machine in front of us."""

import hashlib
import platform

from fuel_gpu.calibration.table import Machine, Table
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

    A device of which the table notes that it could not be measured is not counted as new.
    """
    differences = []
    here = describe_machine(report)
    if table.machine.fingerprint != here.fingerprint:
        differences.append(
            f"other machine: the table is of {_name(table.machine)}, this is {_name(here)}"
        )
    known = {d.id: d for d in table.devices}
    found = {d.id: d for d in report.devices if not d.simulated}
    for name, device in known.items():
        if name not in found:
            differences.append(f"{name}: device gone ({device.name})")
        else:
            differences += _changes(device, found[name])
    differences += [
        f"{name}: new device ({device.name}), not in the table"
        for name, device in found.items()
        if name not in known and not any(note.startswith(f"{name}: ") for note in table.notes)
    ]
    return differences


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


def _name(machine: Machine) -> str:
    return machine.cpu or machine.fingerprint
