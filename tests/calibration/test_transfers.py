"""Transfer estimates: direct, through the host, by class; never wrapping, never falling."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Provenance, Table, Transfer
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import Device
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.probes.report import DeviceInfo

CPU, GPU, GPU1, CL = Device("cpu"), Device("cuda"), Device("cuda", 1), Device("opencl")


def transfer(
    src: str,
    dst: str,
    latency_ns: int,
    bytes_per_ns: float,
    provenance: Provenance = "measured",
    memory: str = "pageable",
) -> Transfer:
    curve = line_curve(latency_ns, bytes_per_ns)
    return Transfer(src=src, dst=dst, memory=memory, points=(), curve=curve, provenance=provenance)


def table(*transfers: Transfer, unified: str = "") -> Table:
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="test"),
        created="",
        devices=tuple(
            DeviceInfo(
                id=name,
                backend=name[:-2],
                name=name,
                memory_bytes=1,
                unified_memory=name == unified,
            )
            for name in ("cpu:0", "cuda:0", "cuda:1", "opencl:0")
        ),
        transfers=transfers,
        rates=(),
    )


def test_a_device_to_itself_costs_nothing() -> None:
    transfers = TableTransfers(table())
    assert transfers.estimate_transfer_ns(GPU, GPU, 10**9) == 0
    assert transfers.estimate_transfer_ns_array(GPU, GPU, np.array([5], np.uint64)).tolist() == [0]
    assert str(transfers.provenance_of(GPU, GPU)) == "same device"


def test_a_measured_pair_is_priced_from_its_own_curve_in_its_own_direction() -> None:
    transfers = TableTransfers(
        table(transfer("cpu:0", "cuda:0", 100, 2.0), transfer("cuda:0", "cpu:0", 300, 1.0))
    )
    assert transfers.estimate_transfer_ns(CPU, GPU, 1000) == 600
    assert transfers.estimate_transfer_ns(GPU, CPU, 1000) == 1300
    assert str(transfers.provenance_of(CPU, GPU)) == "measured, direct"


def test_pageable_memory_is_priced_even_where_pinned_was_measured() -> None:
    pinned = transfer("cpu:0", "cuda:0", 100, 20.0, memory="pinned")
    pageable = transfer("cpu:0", "cuda:0", 100, 5.0)
    for both in ((pinned, pageable), (pageable, pinned)):
        assert TableTransfers(table(*both)).estimate_transfer_ns(CPU, GPU, 1000) == 300
    assert TableTransfers(table(pinned)).estimate_transfer_ns(CPU, GPU, 1000) == 150


def test_kinds_of_memory_count_in_the_order_of_their_likeness_to_an_ordinary_array() -> None:
    kinds = ("pageable", "mapped", "shared", "pinned", "unheard of")
    entries = [
        transfer("cpu:0", "cuda:0", 100 * k, 1.0, memory=kind) for k, kind in enumerate(kinds, 1)
    ]
    for first in range(len(kinds)):
        left = reversed(entries[first:])
        assert TableTransfers(table(*left)).estimate_transfer_ns(CPU, GPU, 0) == 100 * (first + 1)


def test_an_unmeasured_pair_whose_legs_are_known_costs_both() -> None:
    transfers = TableTransfers(
        table(
            transfer("cuda:0", "cpu:0", 100, 2.0),
            transfer("cpu:0", "opencl:0", 50, 4.0, provenance="datasheet"),
        )
    )
    assert transfers.estimate_transfer_ns(GPU, CL, 1000) == (100 + 500) + (50 + 250)
    assert str(transfers.provenance_of(GPU, CL)) == "datasheet, through cpu:0"


@pytest.mark.parametrize(
    ("src", "dst", "unified", "ns", "path"),
    [
        (CPU, GPU, "", 30_000 + 1_000_000 // 8, "device copy"),
        (GPU, CPU, "", 30_000 + 1_000_000 // 8, "device copy"),
        (CPU, CL, "opencl:0", 2_000 + 1_000_000 // 20, "shared memory"),
        (GPU, CL, "opencl:0", 60_000 + 1_000_000 // 4, "staged through the host"),
        (GPU, GPU1, "", 60_000 + 1_000_000 // 4, "staged through the host"),
    ],
)
def test_what_was_not_measured_falls_back_by_class(
    src: Device, dst: Device, unified: str, ns: int, path: str
) -> None:
    transfers = TableTransfers(table(unified=unified))
    assert transfers.estimate_transfer_ns(src, dst, 1_000_000) == ns
    assert str(transfers.provenance_of(src, dst)) == f"fallback, {path}"


def test_cards_that_both_have_nvlinks_are_taken_for_peers() -> None:
    linked = table()
    devices = [
        msgspec.structs.replace(d, details={"nvlinks": 4} if d.backend == "cuda" else {})
        for d in linked.devices
    ]
    transfers = TableTransfers(msgspec.structs.replace(linked, devices=tuple(devices)))
    assert transfers.estimate_transfer_ns(GPU, GPU1, 12_000) == 15_000 + 1_000
    assert transfers.provenance_of(GPU, CL).path == "staged through the host"


def test_one_known_leg_is_not_enough() -> None:
    transfers = TableTransfers(table(transfer("cuda:0", "cpu:0", 1, 1.0)))
    assert transfers.provenance_of(GPU, GPU1).path == "staged through the host"


def test_devices_that_no_table_has_are_priced_all_the_same() -> None:
    unknown = Device("metal", 7)
    assert TableTransfers(table()).estimate_transfer_ns(CPU, unknown, 0) == 30_000


@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_time_never_falls_and_saturates(a: int, b: int) -> None:
    transfers = TableTransfers(
        table(transfer("cuda:0", "cpu:0", 100, 2.0), transfer("cpu:0", "opencl:0", 9, 1e-3))
    )
    low = transfers.estimate_transfer_ns(GPU, CL, min(a, b))
    assert low <= transfers.estimate_transfer_ns(GPU, CL, max(a, b)) <= U64_MAX
    assert transfers.estimate_transfer_ns(GPU, CL, 2**70) == U64_MAX


@given(st.lists(st.integers(0, U64_MAX), max_size=20))
def test_the_array_form_agrees_through_the_host(sizes: list[int]) -> None:
    transfers = TableTransfers(
        table(transfer("cuda:0", "cpu:0", 100, 2.0), transfer("cpu:0", "opencl:0", 9, 0.7))
    )
    many = transfers.estimate_transfer_ns_array(GPU, CL, np.array(sizes, np.uint64))
    assert many.tolist() == [transfers.estimate_transfer_ns(GPU, CL, n) for n in sizes]
