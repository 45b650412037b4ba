"""A table that is missing, stale or measured under bad conditions is named."""

from typing import Any

import pytest

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.staleness import describe_machine
from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    Conditions,
    Duplex,
    Rate,
    Table,
    Transfer,
)
from fuel_gpu.calibration.table_health import table_findings
from fuel_gpu.probes.finding import Finding
from fuel_gpu.probes.report import DeviceInfo, ProbeReport


def device(name: str, driver: str = "1.0") -> DeviceInfo:
    return DeviceInfo(
        id=name, backend=name.partition(":")[0], name="Model", memory_bytes=1 << 33, driver=driver
    )


REPORT = ProbeReport(devices=(device("cpu:0"), device("cuda:0")))


def plain_rate(name: str) -> Rate:
    return Rate(
        device=name,
        dtype="float32",
        flops_per_ns=1.0,
        bytes_per_ns=1.0,
        launch_ns=1,
        provenance="measured",
    )


def table(**fields: Any) -> Table:
    values: dict[str, Any] = {"devices": REPORT.devices, "transfers": (), "rates": (), **fields}
    rated = {one.device for one in values["rates"]}
    values["rates"] += tuple(plain_rate(d.id) for d in values["devices"] if d.id not in rated)
    return Table(version=FORMAT_VERSION, machine=describe_machine(REPORT), created="", **values)


def test_a_current_table_has_nothing_to_say() -> None:
    assert table_findings(table(), REPORT) == []


def test_what_was_not_measured_to_the_end_is_said_once() -> None:
    (finding,) = table_findings(table(notes=("cuda:0: incomplete: stopped",)), REPORT)
    assert finding.what == "stale: cuda:0: incomplete: stopped"


def test_no_table_yet_is_a_note() -> None:
    (finding,) = table_findings(None, REPORT)
    assert (finding.severity, finding.subject) == ("note", "table")
    assert finding.remedy == "fuel-gpu calibrate"


def test_each_way_in_which_it_is_stale_is_a_warning() -> None:
    old = table(devices=(device("cpu:0"), device("cuda:0", driver="0.9"), device("opencl:0")))
    assert table_findings(old, REPORT) == [
        Finding(severity="warning", subject="table", what=what, remedy="fuel-gpu calibrate")
        for what in (
            "stale: cuda:0: other driver: the table has 0.9, here is 1.0",
            "stale: opencl:0: device gone (Model)",
        )
    ]


def rate(**fields: Any) -> Rate:
    return Rate(
        device="cuda:0",
        dtype="float32",
        flops_per_ns=1.0,
        bytes_per_ns=1.0,
        launch_ns=1,
        provenance="measured",
        **fields,
    )


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (
            "hardware thermal slowdown",
            "cool the card better (airflow, dust, fan), then fuel-gpu calibrate",
        ),
        (
            "software power cap",
            "nvidia-smi -q -d POWER shows the limit and nvidia-smi -pl raises it where the card"
            " allows; check its power cables; then fuel-gpu calibrate",
        ),
        (
            "CPU quota of the control group",
            "raise this container's CPU quota, then fuel-gpu calibrate",
        ),
        ("board limit", "fuel-gpu calibrate"),
    ],
)
def test_throttling_that_the_table_records_is_a_warning(reason: str, remedy: str) -> None:
    throttled = Conditions(link_generation=4, throttled=(reason,))
    measured = rate(flops_conditions=throttled, bytes_conditions=Conditions())
    assert table_findings(table(rates=(measured,)), REPORT) == [
        Finding(
            severity="warning",
            subject="cuda:0",
            what=f"it was throttled while it was measured: float32 compute ({reason})",
            remedy=remedy,
        )
    ]


def test_throttled_copies_are_their_cards() -> None:
    conditions = Conditions(throttled=("board limit", "reliability limit"))
    copies = tuple(
        Transfer(
            src=src,
            dst=dst,
            memory="pinned",
            points=(),
            curve=line_curve(0, 1.0),
            provenance="measured",
            conditions=conditions,
        )
        for src, dst in (("cpu:0", "cuda:0"), ("cuda:0", "cpu:0"))
    )
    duplex = Duplex(
        ends=("cpu:0", "cuda:0"),
        memory="pinned",
        bytes=1,
        bytes_per_ns=1.0,
        provenance="measured",
        conditions=conditions,
    )
    (finding,) = table_findings(table(transfers=copies, duplex=(duplex,)), REPORT)
    assert finding.subject == "cuda:0"
    assert finding.what == (
        "it was throttled while it was measured: pinned copies (board limit, reliability limit);"
        " pinned copies both ways at once (board limit, reliability limit)"
    )


def test_what_the_table_notes_is_passed_on() -> None:
    notes = ("cuda:0: copies, pinned: out of memory", "interrupted: yes")
    assert [
        (finding.severity, finding.subject, finding.what)
        for finding in table_findings(table(notes=notes), REPORT)
    ] == [
        ("note", "cuda:0", "when it was measured: copies, pinned: out of memory"),
        ("note", "table", "when it was measured: interrupted: yes"),
    ]
