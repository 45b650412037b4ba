"""The peers' benchmark: what it reads from StarPU and clpeak, and what it says without them."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import Machine, Point, Rate, Table, Transfer
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "peers.py"
MIB = 2**20

STARPU = """\
1 STARPU_OPENCL_WORKER worker:
\tOpenCL 0 (pthread-skylake-avx512-AMD EPYC 15.9 GiB)
\tOpenCL 1 (Other card 8.0 GiB)

bandwidth (MB/s) and latency (us)...
from/to\tNUMA 0\tOpenCL 0\tOpenCL 1\t
NUMA 0\t0\t5127\t12000\t
OpenCL 0\t9038\t0\t4000\t
OpenCL 1\t13000\t4100\t0\t

NUMA 0\t0\t36\t20\t
OpenCL 0\t33\t0\t50\t
"""

CLPEAK = """<?xml version="1.0"?>
<clpeak os="Linux x64"><platform name="PoCL">
<device name="other"><single_precision_compute><float>9</float></single_precision_compute></device>
<device name="pthread-AMD EPYC">
<global_memory_bandwidth unit="gbps">
<float>4.5</float><float2>8.75</float2>
</global_memory_bandwidth>
<single_precision_compute unit="gflops">
<float>0.5</float><float16>16.25</float16>
</single_precision_compute>
</device></platform></clpeak>
"""

CPU = DeviceInfo(id="opencl:0", backend="opencl", name="pthread-AMD EPYC", memory_bytes=2**34)


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["peers"] = module
    spec.loader.exec_module(module)
    return module


def table(
    copy_interval: tuple[int, int], flops: float, flops_interval: tuple[float, float]
) -> Table:
    transfer = Transfer(
        src="cpu:0",
        dst="opencl:0",
        points=(
            Point(bytes=16 * MIB, ns=1_000_000, interval=copy_interval),
            Point(bytes=32 * MIB, ns=4_000_000, interval=(3_900_000, 4_100_000)),
        ),
        curve=line_curve(0, 8.0),
        provenance="measured",
    )
    rate = Rate(
        device="opencl:0",
        dtype="float32",
        flops_per_ns=flops,
        bytes_per_ns=40.0,
        launch_ns=20_000,
        provenance="measured",
        flops_interval=flops_interval,
    )
    return Table(
        version=1,
        machine=Machine(fingerprint="x"),
        created="",
        devices=(CPU,),
        transfers=(transfer,),
        rates=(rate,),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pthread-skylake-avx512-AMD EPYC", {"to the device": 5.127, "from the device": 9.038}),
        ("Other card", {"to the device": 12.0, "from the device": 13.0}),
        ("a third", {}),
    ],
)
def test_starpu_is_read_by_the_devices_name(
    peers: ModuleType, name: str, expected: dict[str, float]
) -> None:
    assert peers.starpu_bandwidths(STARPU, name) == expected


def test_starpu_that_says_nothing_is_nothing(peers: ModuleType) -> None:
    assert peers.starpu_bandwidths("", CPU.name) == {}


def test_clpeak_is_taken_at_its_best_width(peers: ModuleType) -> None:
    assert peers.clpeak_bests(CLPEAK, CPU.name) == {"float32": 16.25, "memory": 8.75}
    assert peers.clpeak_bests(CLPEAK, "other") == {"float32": 9.0}
    assert peers.clpeak_bests("", CPU.name) == {}


def test_the_tables_figures_are_in_gigabytes_a_second(peers: ModuleType) -> None:
    found = dict(peers.our_figures(table((1, 2), 100.0, (90.0, 110.0)), CPU))
    assert found == {
        "to the device, 16 MiB": 16.777216,
        "to the device, 32 MiB": 8.388608,
        "float32": 100.0,
        "memory": 40.0,
    }


def test_calibrations_agree_where_their_intervals_overlap(peers: ModuleType) -> None:
    one = table((900_000, 1_100_000), 100.0, (90.0, 110.0))
    other = table((1_200_000, 1_300_000), 110.0, (105.0, 120.0))
    assert peers.repeatability([one, other]).splitlines()[1:] == [
        "copies: 95 % intervals overlap for 1 of 2 (50%);"
        " medians differ by 0.0%, by 0.0% in the worst tenth",
        "rates and launches: 95 % intervals overlap for 1 of 1 (100%);"
        " medians differ by 10.0%, by 10.0% in the worst tenth",
    ]


def test_a_peer_that_is_not_installed_is_named(
    peers: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    console = peers.Console(width=200)
    assert peers.starpu_figures(CPU, console) == {}
    assert peers.clpeak_figures(CPU, console) == {}
    assert capsys.readouterr().out.splitlines() == [
        "StarPU is not installed (apt install starpu-tools): left out",
        "clpeak is not installed (apt install clpeak): left out",
    ]


def test_without_a_device_it_says_why(
    peers: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = Unavailable(backend="opencl", reason="pyopencl is not installed")
    monkeypatch.setattr(
        peers.fg, "probe", lambda backends: ProbeReport(devices=(), unavailable=(line,))
    )
    monkeypatch.setattr(sys, "argv", ["peers.py"])
    peers.main()
    assert "pyopencl is not installed" in capsys.readouterr().out
