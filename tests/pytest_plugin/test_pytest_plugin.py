"""Tests with devices: skipped with the probe's reason where the device is missing."""

from importlib.metadata import entry_points

import pytest
from plugin_machines import Machine, run

from fuel_gpu import pytest_plugin
from fuel_gpu.probes import machine
from fuel_gpu.probes.report import ProbeReport

pytest_plugins = ["pytester"]


def test_the_package_registers_it() -> None:
    (entry_point,) = entry_points(group="pytest11", name="fuel_gpu")
    assert entry_point.load() is pytest_plugin


def test_the_marks_are_listed(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--markers").stdout.fnmatch_lines(
        [
            "@pytest.mark.gpu: *",
            "@pytest.mark.cuda: *",
            "@pytest.mark.opencl: *",
            "@pytest.mark.vulkan: *",
            "@pytest.mark.device(name): *",
            "@pytest.mark.device_memory(size): *",
        ]
    )


# ------------------------------------------------------------------------ the device is there


@pytest.mark.usefixtures("one_card")
@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        (["gpu"], "cuda:0"),
        (["cuda"], "cuda:0"),
        (["opencl"], "opencl:0"),
        (["vulkan"], "vulkan:0"),
        (['device("cuda:0")'], "cuda:0"),
        (['device("cpu")'], "cpu:0"),
        (['device_memory("8GiB")'], "cuda:0"),
        (['device_memory("1GiB")', "opencl"], "opencl:0"),
        (["gpu", "cuda"], "cuda:0"),
        (["opencl", "cuda"], "cuda:0"),  # two devices; the mark closest to the function names one
        (["cuda", "opencl"], "opencl:0"),
    ],
    ids=" ".join,
)
def test_the_fixture_gives_the_device_that_the_marks_ask_for(
    pytester: pytest.Pytester, marks: list[str], expected: str
) -> None:
    lines = [f"@pytest.mark.{mark}" for mark in marks]
    lines += ["def test_it(fuel_device):", f"    assert fuel_device.id == {expected!r}"]
    run(pytester, "\n".join(lines)).assert_outcomes(passed=1)


@pytest.mark.usefixtures("one_card")
def test_marks_on_a_class_a_module_and_a_parameter_count(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import unittest

        pytestmark = pytest.mark.device_memory("1GiB")

        @pytest.mark.opencl
        class TestClass:
            def test_it(self, fuel_device):
                assert fuel_device.id == "opencl:0"

        @pytest.mark.vulkan
        class TestCase(unittest.TestCase):
            def test_it(self):
                pass

        @pytest.mark.parametrize(
            "expected",
            [
                pytest.param("cuda:0", marks=pytest.mark.cuda),
                pytest.param("vulkan:0", marks=pytest.mark.vulkan),
            ],
        )
        def test_it(fuel_device, expected):
            assert fuel_device.id == expected
        """,
    ).assert_outcomes(passed=4)


# -------------------------------------------------------------------------- the device is not


@pytest.mark.usefixtures("no_card")
@pytest.mark.parametrize(
    ("marks", "reason"),
    [
        (["cuda"], "no cuda device: the driver is asleep"),
        (['device("cuda:1")'], "no cuda:1: the driver is asleep"),
        (["gpu"], "no GPU: cuda: the driver is asleep; opencl:0 (Model of opencl:0) is no GPU;*"),
        (["gpu", "vulkan"], "no vulkan device that is a GPU: vulkan:0 (*) is no GPU"),
        (
            ["opencl", 'device_memory("9GiB")'],
            "no opencl device with 9 GiB: opencl:0 (*) has *",
        ),
        (['device_memory("1GiB")'], "no GPU with 1 GiB: cuda: the driver is asleep;*"),
        (["opencl", "cuda"], "no cuda device: the driver is asleep"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_test_without_its_device_is_skipped_with_the_probes_reason(
    pytester: pytest.Pytester, marks: list[str], reason: str
) -> None:
    lines = [f"@pytest.mark.{mark}" for mark in marks]
    result = run(pytester, "\n".join([*lines, "def test_it():", "    raise AssertionError"]))
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED * {reason}"])
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.usefixtures("no_card")
def test_tests_skipped_for_one_reason_are_one_line(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        @pytest.mark.cuda
        class TestMany:
            @pytest.mark.parametrize("i", range(20))
            def test_it(self, i):
                pass
        """,
    )
    lines = [line for line in result.outlines if line.startswith("SKIPPED")]
    assert len(lines) == 1
    assert lines[0].startswith("SKIPPED [20] ")


@pytest.mark.usefixtures("no_card")
def test_no_fixture_is_set_up_for_a_device_that_is_missing(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        @pytest.fixture
        def context(fuel_device):
            raise AssertionError("set up")

        @pytest.mark.cuda
        def test_it(context):
            pass
        """,
    ).assert_outcomes(skipped=1)


# -------------------------------------------------------------------------------- the probe runs


def test_the_probe_runs_once(pytester: pytest.Pytester, one_card: Machine) -> None:
    run(
        pytester,
        """
        @pytest.mark.cuda
        def test_one(): pass

        @pytest.mark.gpu
        def test_two(fuel_device): pass

        @pytest.mark.device("cuda:1")
        def test_three(): pass
        """,
        "--require-device=cuda:0",
    ).assert_outcomes(passed=2, skipped=1)
    assert one_card.probed == 1


@pytest.mark.parametrize(
    ("mark", "arguments"),
    [
        ("cuda", ["--collect-only"]),
        ("cuda", ["--collect-only", "--require-device=cuda"]),
        ("cuda", ["-k", "other"]),
        ("cuda", ["-m", "not cuda"]),
        ("skip\n@pytest.mark.cuda", []),
        ("cuda\n@pytest.mark.skipif(True, reason='not today')", ["--require-device=opencl"]),
        ("usefixtures()", []),
    ],
)
def test_the_probe_does_not_run_for_a_test_that_does_not(
    pytester: pytest.Pytester, no_card: Machine, mark: str, arguments: list[str]
) -> None:
    source = f"@pytest.mark.{mark}\ndef test_it(): pass\n\ndef test_other(): pass"
    asks = "--require-device=opencl" in arguments
    assert run(pytester, source, *arguments).ret == pytest.ExitCode.OK
    assert no_card.probed == asks  # a required device is looked for when the run ends


@pytest.mark.parametrize("error", [OSError("no processes left"), AttributeError("a bug")], ids=str)
def test_a_probe_that_fails_is_the_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def probe() -> ProbeReport:
        raise error

    monkeypatch.setattr(machine, "probe", probe)
    result = run(pytester, "@pytest.mark.opencl\ndef test_it(): pass\ndef test_other(): pass")
    result.assert_outcomes(passed=1, skipped=1)
    words = f"{type(error).__name__}: {error}"
    result.stdout.fnmatch_lines([f"SKIPPED * no opencl device: the probe failed: {words}"])


def test_a_driver_that_hangs_or_crashes_is_the_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = pytester.mkdir("plugins-1.0.dist-info")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugins\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[fuel_gpu.probes]\nhangs = hanging_probe\ncrashes = crashing_probe\n"
    )
    pytester.makepyfile(
        hanging_probe="import time\ndef enumerate_devices():\n    time.sleep(600)",
        crashing_probe="import os\ndef enumerate_devices():\n    os.abort()",
    )
    pytester.syspathinsert()
    probe = machine.probe
    monkeypatch.setattr(machine, "probe", lambda: probe(["cpu", "hangs", "crashes"], timeout_s=2))
    result = run(
        pytester,
        """
        @pytest.mark.device("hangs:0")
        def test_one(): pass

        @pytest.mark.device("crashes:0")
        def test_two(): pass

        @pytest.mark.device("cpu:0")
        def test_three(): pass
        """,
    )
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED * no hangs:0: its probe did not answer within 2 s and was stopped",
            "SKIPPED * no crashes:0: its probe crashed with SIGABRT*",
        ]
    )


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("device", "the mark device takes one argument: device(name): needs this device*"),
        ('device("a", "b")', "the mark device takes one argument*"),
        ('device("not a name")', "'not a name' is not a device*"),
        (
            'device("zzz:0")',
            "'zzz:0' is no device that a probe could find; known backends are cpu, cuda, *",
        ),
        ('device("gpu")', "'gpu' is no device that a probe could find; known backends are cpu, *"),
        ("gpu(1)", "the mark gpu takes no argument: gpu: needs a GPU of any backend"),
        ("cuda(index=1)", "the mark cuda takes no argument: cuda: needs a CUDA device"),
        ('device_memory(size="1GiB")', "the mark device_memory takes one argument*"),
        ('device_memory("8 gigs")', "'8 gigs' is not a size: write a number and a unit*"),
    ],
)
def test_a_mark_that_cannot_be_meant_costs_its_own_test(
    pytester: pytest.Pytester, no_card: Machine, mark: str, message: str
) -> None:
    result = run(pytester, f"@pytest.mark.{mark}\ndef test_it(): pass\ndef test_other(): pass")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([message])
    assert no_card.probed == 0


def test_the_fixture_alone_says_which_mark_it_wants(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(fuel_device): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["fuel_device: say which device by a mark on the test: gpu, *"])


# ------------------------------------------------------------------------------ --require-device


HEAVY = {"cupy", "msgspec", "numpy", "onnx", "psutil", "pyopencl", "rich", "scipy", "typer", "wgpu"}


def test_a_run_without_marks_imports_nothing_heavy(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        f"""
        import sys

        def test_it(request):
            assert request.config.pluginmanager.has_plugin("fuel_gpu")
            assert {HEAVY} & set(sys.modules) == set()
            assert sorted(name for name in sys.modules if name.startswith("fuel_gpu")) == [
                "fuel_gpu", "fuel_gpu.device", "fuel_gpu.errors", "fuel_gpu.pytest_plugin"
            ]
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # what others import is theirs
    result = pytester.runpytest_subprocess("-p", "fuel_gpu")
    result.assert_outcomes(passed=1)


def test_all_workers_share_one_probe(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    pytester.makeconftest(
        """
        from pathlib import Path

        from fuel_gpu.probes import machine
        from fuel_gpu.probes.report import DeviceInfo, ProbeReport

        def probe():
            with Path(__file__).with_name("log").open("a") as log:
                log.write("probed\\n")
            info = DeviceInfo(id="opencl:0", backend="opencl", name="PoCL", memory_bytes=1)
            return ProbeReport(devices=(info,))

        machine.probe = probe
        """
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.opencl
        @pytest.mark.parametrize("i", range(4))
        def test_it(fuel_device, i):
            assert fuel_device.name == "PoCL"

        @pytest.mark.cuda
        @pytest.mark.parametrize("i", range(2))
        def test_cuda(i):
            pass
        """
    )
    result = pytester.runpytest_subprocess("-n2", "--dist=each", "--require-device=opencl")
    result.assert_outcomes(passed=8, skipped=4)
    assert (pytester.path / "log").read_text() == "probed\n"
    result = pytester.runpytest_subprocess("-n2", "--require-device=cuda")
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(["cuda: no cuda device: the probe knows of none"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_what_the_workers_shared_is_removed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    pytester.makepyfile("def test_it(): pass")
    pytester.runpytest_subprocess("-n1").assert_outcomes(passed=1)
    assert not list((pytester.path / "temporary").glob("fuel-gpu-*"))
