"""``fuel-gpu diff``: what it prints, and the status that a CI job goes by."""

import json
from pathlib import Path

import msgspec
import pytest

from fuel_gpu.calibration.curves import fit_curve
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Point, Rate, Table, Transfer
from fuel_gpu.calibration.table_file import save_table
from fuel_gpu.cli.main import run
from fuel_gpu.probes.report import DeviceInfo

SIZES = (4096, 8192, 16384)


def table(ns_by_size: tuple[int, ...], *, driver: str = "535", gflops: float = 1_000.0) -> Table:
    """A card with copies to it, each within 2 % of its median, and one rate without samples."""
    points = tuple(
        Point(bytes=size, ns=ns, samples=(ns,) * 7, interval=(ns - ns // 50, ns + ns // 50))
        for size, ns in zip(SIZES, ns_by_size, strict=True)
    )
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="abc", cpu="a processor"),
        created="2025-01-01T00:00:00+00:00",
        devices=(
            DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34),
            DeviceInfo(
                id="cuda:0", backend="cuda", name="a card", memory_bytes=2**33, driver=driver
            ),
        ),
        transfers=(
            Transfer(
                src="cpu:0",
                dst="cuda:0",
                points=points,
                curve=fit_curve(SIZES, ns_by_size),
                provenance="measured",
            ),
        ),
        rates=(
            Rate(
                device="cuda:0",
                dtype="float32",
                flops_per_ns=gflops,
                bytes_per_ns=None,
                launch_ns=5_000,
                provenance="datasheet",
            ),
        ),
        notes=("cuda:0: throttled",),
    )


OLD = table((10_000, 20_000, 40_000))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    save_table(OLD, tmp_path / "old.json")
    return tmp_path / "old.json", tmp_path / "new.json"


def diff(files: tuple[Path, Path], new: Table, *arguments: str) -> int:
    save_table(new, files[1])
    return run(["diff", str(files[0]), str(files[1]), *arguments])


def test_nothing_changed_is_status_0(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(files, table((10_300, 19_500, 40_000))) == 0
    assert capsys.readouterr().out == (
        "5 figures compared; beyond their noise and 10 %: 0 slower, 0 faster\n"
    )


def test_slower_copies_are_one_line_and_status_1(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(files, table((12_000, 20_000, 60_000))) == 1
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "slower" in line and "copy" in line]
    assert row.split("  ")[0].strip() == "1.50x slower"
    assert "copy cpu:0 to cuda:0, pageable, 16 KiB, and 1 more size " in row
    assert "40 us (39.2 us .. 40.8 us)" in row
    assert "60 us (58.8 us .. 61.2 us)" in row
    assert "note in the new table: cuda:0: throttled" in lines
    assert lines[-1] == "5 figures compared; beyond their noise and 10 %: 2 slower, 0 faster"


def test_faster_is_status_0_and_says_what_was_never_measured(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(files, table((10_000, 20_000, 40_000), gflops=1_500.0)) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "1.50x faster" in line]
    assert "compute cuda:0, float32" in row
    assert "1000 GFLOP/s, datasheet" in row
    assert "1500 GFLOP/s, datasheet" in row


def test_another_driver_and_a_lost_device_are_named(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(files, table((10_000, 20_000, 40_000), driver="550")) == 0
    assert "cuda:0: other driver: 535 before, 550 now\n" in capsys.readouterr().out
    alone = msgspec.structs.replace(OLD, devices=OLD.devices[:1], transfers=(), rates=())
    assert diff(files, alone) == 0
    assert "cuda:0 disappeared (a card)\n" in capsys.readouterr().out


def test_the_threshold_is_in_percent(files: tuple[Path, Path]) -> None:
    new = table((11_500, 20_000, 40_000))
    assert diff(files, new) == 1
    assert diff(files, new, "--threshold", "20") == 0
    assert diff(files, new, "--threshold", "14") == 1


def test_json_has_every_change(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(files, table((12_000, 20_000, 60_000)), "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["compared"], document["threshold"]) == (5, 0.1)
    assert [(c["kind"], c["bytes"], c["factor"]) for c in document["changes"]] == [
        ("slower", 16384, 1.5),
        ("slower", 4096, 1.2),
    ]
    assert document["changes"][0]["new"] == {
        "value": 60_000,
        "low": 58_800,
        "high": 61_200,
        "provenance": "measured",
    }


@pytest.mark.parametrize("threshold", ["-1", "nan", "inf"])
def test_a_threshold_that_means_nothing_is_status_2(
    threshold: str, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(files, OLD, "--threshold", threshold) == 2
    assert f"--threshold {threshold}: a change in percent is 0 or more" in capsys.readouterr().err


def test_a_table_that_cannot_be_read_is_no_regression(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", str(files[0]), "/nowhere/t.json"]) == 2
    assert "/nowhere/t.json: there is no such table" in capsys.readouterr().err
    files[1].write_text("{")
    assert run(["diff", str(files[0]), str(files[1])]) == 2
    assert str(files[1]) in capsys.readouterr().err


def test_one_table_is_wrong_usage(files: tuple[Path, Path]) -> None:
    assert run(["diff", str(files[0])]) == 2
