"""The example tables: datasheet throughout, as their script makes them, worked by hand."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fuel_gpu.calibration.rates import device_rates
from fuel_gpu.calibration.table import Rate, Table, Transfer
from fuel_gpu.calibration.table_file import load_table
from fuel_gpu.calibration.table_text import encode_table
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import Device

FOLDER = Path(__file__).parents[2] / "examples" / "tables"
NAMES = ("desktop", "server", "laptop")
CPU, GPU, GPU1, CL = Device("cpu"), Device("cuda"), Device("cuda", 1), Device("opencl")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_tables", FOLDER / "make_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(name: str) -> Table:
    return load_table(FOLDER / f"{name}.json")


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_what_the_script_makes(script: ModuleType, name: str) -> None:
    made: Table = getattr(script, name)()
    assert encode_table(made) == (FOLDER / f"{name}.json").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_looks_measured(name: str) -> None:
    table = example(name)
    entries: list[Transfer | Rate] = [*table.transfers, *table.rates]
    assert {entry.provenance for entry in entries} == {"datasheet"}
    assert all("not derated, not measured" in entry.notes for entry in entries)
    assert all(point.samples == () for t in table.transfers for point in t.points)
    assert all(rate.flops_samples == rate.launch_samples == () for rate in table.rates)


@pytest.mark.parametrize("name", NAMES)
def test_every_device_has_rates_and_a_link_both_ways(name: str) -> None:
    table = example(name)
    transfers = TableTransfers(table)
    for info in table.devices:
        assert device_rates(table, info.device)["float32"].provenance == "datasheet"
        if not info.device.is_host:
            for pair in ((CPU, info.device), (info.device, CPU)):
                assert str(transfers.provenance_of(*pair)) == "datasheet, direct"
    assert all(len(t.points) >= 12 for t in table.transfers)


def test_desktop_figures() -> None:
    table = example("desktop")
    cpu, gpu = device_rates(table, CPU), device_rates(table, GPU)
    assert cpu["float32"].flops_per_ns == 16 * 4.5 * 32
    assert (gpu["float32"].flops_per_ns, gpu["float32"].bytes_per_ns) == (15_110.0, 272.0)
    # 15.75 MB over PCIe 4 x8 at 15.75 GB/s: a millisecond and the latency
    assert TableTransfers(table).estimate_transfer_ns(CPU, GPU, 15_750_000) == 1_010_000


def test_server_cards_are_joined_by_nvlink() -> None:
    table = example("server")
    transfers = TableTransfers(table)
    assert transfers.estimate_transfer_ns(GPU, GPU1, 450_000_000) == 1_010_000
    assert transfers.estimate_transfer_ns(GPU, CPU, 63_000_000) == 1_010_000
    assert device_rates(table, GPU1)["bfloat16"].flops_per_ns == 989_400.0


def test_laptop_graphics_shares_the_memory() -> None:
    table = example("laptop")
    assert next(d for d in table.devices if d.id == "opencl:0").unified_memory
    assert TableTransfers(table).estimate_transfer_ns(CPU, CL, 60_000_000) == 1_002_000
