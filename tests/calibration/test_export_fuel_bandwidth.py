"""The Rust planner's file: backends as it spells them, nanoseconds a byte, what is left out."""

import json
from typing import Any

import msgspec
from export_tables import DOWN, MACHINE, MIB, UP, copies, device

from fuel_gpu.calibration.export_fuel_bandwidth import fuel_bandwidth
from fuel_gpu.calibration.table import Table


def entries(table: Table, size_bytes: int) -> list[dict[str, Any]]:
    text, _ = fuel_bandwidth(table, size_bytes)
    document = json.loads(text)
    assert list(document) == ["version", "measurement_bytes", "entries"]
    assert (document["version"], document["measurement_bytes"]) == (1, size_bytes)
    found: list[dict[str, Any]] = document["entries"]
    return found


def test_measured_copies_are_nanoseconds_a_byte() -> None:
    assert entries(MACHINE, 32 * MIB) == [
        {"src": "Cpu", "dst": "Cuda", "ns_per_byte": 0.125},
        {"src": "Cuda", "dst": "Cpu", "ns_per_byte": 0.25},
    ]


def test_an_entry_that_was_not_measured_says_so() -> None:
    """Between 1 and 32 MiB, 15 of 31 parts of the way from 2**17 to 2**22 ns."""
    up = entries(MACHINE, 16 * MIB)[0]
    assert up["ns_per_byte"] == (2**17 + 15 * (2**22 - 2**17) // 31) / (16 * MIB)
    assert up["provenance"] == "measured, fitted"


def test_a_backend_without_a_spelling_is_left_out_and_named() -> None:
    _, notes = fuel_bandwidth(MACHINE, 32 * MIB)
    assert notes == ["opencl:0 is left out: the format has no backend opencl"]


def test_every_backend_of_the_format_has_its_spelling() -> None:
    names = ("cpu:0", "cuda:0", "vulkan:0", "metal:0")
    table = msgspec.structs.replace(
        MACHINE,
        devices=tuple(device(name, "a device") for name in names),
        transfers=tuple(copies("cpu:0", name, UP) for name in names[1:]),
    )
    found = entries(table, 32 * MIB)
    assert [(e["src"], e["dst"]) for e in found] == [
        ("Cpu", "Cuda"),
        ("Cpu", "Vulkan"),
        ("Cpu", "Metal"),
    ]


def test_the_first_device_stands_for_its_backend() -> None:
    table = msgspec.structs.replace(
        MACHINE,
        devices=(device("cuda:1", "b"), device("cuda:0", "a"), device("cpu:0", "c")),
        transfers=(copies("cpu:0", "cuda:1", DOWN), copies("cpu:0", "cuda:0", UP)),
    )
    text, notes = fuel_bandwidth(table, 32 * MIB)
    assert [e["ns_per_byte"] for e in json.loads(text)["entries"]] == [0.125]
    assert notes == ["cuda:1 is left out: cuda:0 stands for the backend cuda"]


def test_pageable_memory_comes_first_and_other_memory_before_nothing() -> None:
    pinned = copies("cpu:0", "cuda:0", DOWN, memory="pinned")
    table = msgspec.structs.replace(MACHINE, transfers=(pinned,))
    assert entries(table, 32 * MIB)[0]["ns_per_byte"] == 0.25
    table = msgspec.structs.replace(MACHINE, transfers=(pinned, copies("cpu:0", "cuda:0", UP)))
    assert entries(table, 32 * MIB)[0]["ns_per_byte"] == 0.125


def test_datasheet_figures_never_look_measured() -> None:
    sheet = copies("cpu:0", "cuda:0", UP, provenance="datasheet")
    table = msgspec.structs.replace(MACHINE, transfers=(sheet,), devices=MACHINE.devices[:2])
    text, notes = fuel_bandwidth(table, 32 * MIB)
    assert json.loads(text)["entries"][0]["provenance"] == "datasheet"
    assert notes == ["cpu:0 to cuda:0, 32 MiB: datasheet"]
