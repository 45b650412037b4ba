"""A stale table is noticed, and each difference named."""

import msgspec
import pytest

from fuel_gpu.calibration.staleness import describe_machine, same_device, stale
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Rate, Table
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

CPU = DeviceInfo(id="cpu:0", backend="cpu", name="Processor X", memory_bytes=16 * 2**30)
CARD = DeviceInfo(
    id="cuda:0", backend="cuda", name="Card Y", memory_bytes=2**33, driver="NVIDIA 535"
)
REPORT = ProbeReport(devices=(CPU, CARD))


def table_of(report: ProbeReport, *notes: str) -> Table:
    return Table(
        version=FORMAT_VERSION,
        machine=describe_machine(report),
        created="",
        devices=report.devices,
        transfers=(),
        rates=tuple(rate(d.id) for d in report.devices),
        notes=notes,
    )


def rate(device: str) -> Rate:
    return Rate(
        device=device,
        dtype="float32",
        flops_per_ns=1.0,
        bytes_per_ns=1.0,
        launch_ns=1,
        provenance="measured",
    )


def test_the_machine_it_was_made_on_is_current() -> None:
    assert stale(table_of(REPORT), REPORT) == []


def test_another_driver_is_named() -> None:
    newer = msgspec.structs.replace(CARD, driver="NVIDIA 550")
    assert stale(table_of(REPORT), ProbeReport(devices=(CPU, newer))) == [
        "cuda:0: other driver: the table has NVIDIA 535, here is NVIDIA 550"
    ]


def test_another_card_under_the_same_name_is_named() -> None:
    other = msgspec.structs.replace(CARD, name="Card Z")
    assert stale(table_of(REPORT), ProbeReport(devices=(CPU, other))) == [
        "cuda:0: other device: the table has Card Y, here is Card Z"
    ]


def test_a_device_gone_and_a_new_one_are_named() -> None:
    other = DeviceInfo(id="opencl:0", backend="opencl", name="PoCL", memory_bytes=1)
    assert stale(table_of(REPORT), ProbeReport(devices=(CPU, other))) == [
        "cuda:0: device gone (Card Y)",
        "opencl:0: new device (PoCL), not in the table",
    ]


def test_a_simulator_is_not_missed() -> None:
    simulator = DeviceInfo(
        id="opencl:0", backend="opencl", name="Oclgrind", memory_bytes=1, simulated=True
    )
    assert stale(table_of(REPORT), ProbeReport(devices=(CPU, CARD, simulator))) == []


def test_a_device_that_could_not_be_measured_is_not_new() -> None:
    broken = DeviceInfo(id="opencl:0", backend="opencl", name="PoCL", memory_bytes=1)
    table = table_of(REPORT, "opencl:0: its measuring process crashed with SIGSEGV")
    assert stale(table, ProbeReport(devices=(CPU, CARD, broken))) == []


def test_another_machine_is_named_by_processor_and_memory() -> None:
    larger = msgspec.structs.replace(CPU, memory_bytes=32 * 2**30)
    assert stale(table_of(REPORT), ProbeReport(devices=(larger, CARD))) == [
        "other machine: the table is of Processor X, 16 GiB, this is Processor X, 32 GiB"
    ]


@pytest.mark.parametrize(
    ("changes", "before", "now"),
    [
        ({"system": "Plan9 x86"}, "Plan9 x86", "{here.system}"),
        ({"cpu": "P, 1 GiB", "system": "Plan9"}, "P, 1 GiB, Plan9", "{here.cpu}, {here.system}"),
        ({}, "fingerprint an older way", "fingerprint {here.fingerprint}"),
        ({"cpu": "", "system": ""}, "fingerprint an older way", "fingerprint {here.fingerprint}"),
    ],
)
def test_what_differs_between_two_machines_is_named(
    changes: dict[str, str], before: str, now: str
) -> None:
    here = describe_machine(REPORT)
    there: Machine = msgspec.structs.replace(here, fingerprint="an older way", **changes)
    table = msgspec.structs.replace(table_of(REPORT), machine=there)
    expected = f"other machine: the table is of {before}, this is {now.format(here=here)}"
    assert stale(table, REPORT) == [expected]


def test_a_device_that_was_not_measured_to_the_end_is_named() -> None:
    table = table_of(REPORT, "cuda:0: incomplete: it was not measured to the end")
    assert stale(table, REPORT) == ["cuda:0: incomplete: it was not measured to the end"]


def test_a_device_without_rates_is_named() -> None:
    table = msgspec.structs.replace(table_of(REPORT), rates=(rate("cpu:0"),))
    assert stale(table, REPORT) == ["cuda:0: not measured (Card Y)"]


def test_a_few_mebibytes_that_the_system_keeps_do_not_make_another_machine() -> None:
    smaller = msgspec.structs.replace(CPU, memory_bytes=16 * 2**30 - 300 * 2**20)
    assert stale(table_of(REPORT), ProbeReport(devices=(smaller, CARD))) == []


def test_measurements_hold_while_name_and_driver_stay() -> None:
    assert same_device(CARD, msgspec.structs.replace(CARD, details={"pcie_generation": 1}))
    assert not same_device(CARD, msgspec.structs.replace(CARD, driver=""))
