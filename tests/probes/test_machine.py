"""The probe of the whole machine reports what is here and what is not, and survives its parts."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_metadata import write_plugins

from fuel_gpu.errors import UsageError
from fuel_gpu.probes.isolation import Ending
from fuel_gpu.probes.machine import probe, read_ending
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

WELL_BEHAVED = """
from fuel_gpu.probes.report import DeviceInfo, ProbeReport
backend = "npu"
def enumerate_devices():
    print("a driver's greeting on standard output")
    return ProbeReport(
        devices=tuple(
            DeviceInfo(id=f"npu:{i}", backend="npu", name="Model One", memory_bytes=2**30)
            for i in range(2)
        )
    )
"""


def test_the_processor_is_always_a_device() -> None:
    report = probe(["cpu"])
    assert [device.id for device in report.devices] == ["cpu:0"]
    assert report.unavailable == ()


def test_a_backend_that_was_asked_for_and_has_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugins(
        tmp_path,
        {
            "npu": """
                from fuel_gpu.probes.report import ProbeReport
                def enumerate_devices():
                    return ProbeReport(devices=())
                """
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert probe(["npu"]) == ProbeReport(
        devices=(),
        unavailable=(Unavailable(backend="npu", reason="no device of this backend is found"),),
    )


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(UsageError, match="'npu' is not a backend; known are cpu, cuda, opencl"):
        probe(["cpu", "npu"])


@pytest.mark.parametrize("timeout_s", [0, -1.0, float("nan"), float("inf"), 1e300, 90_000, "5"])
def test_a_time_limit_is_up_to_a_day(timeout_s: float) -> None:
    with pytest.raises(UsageError, match=re.escape(f"is {timeout_s!r}: give seconds, above 0")):
        probe(["cpu"], timeout_s=timeout_s)


def test_one_backend_needs_no_list() -> None:
    assert [device.id for device in probe("cpu").devices] == ["cpu:0"]


@pytest.mark.parametrize("backends", [5, object()])
def test_what_names_no_backends_is_refused(backends: Any) -> None:
    with pytest.raises(UsageError, match=r"backends: .* is no list of backends' names"):
        probe(backends)


def test_a_plugins_devices_come_after_the_built_in_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugins(tmp_path, {"npu": WELL_BEHAVED})
    monkeypatch.syspath_prepend(tmp_path)
    report = probe(["npu", "cpu"])
    assert [device.id for device in report.devices] == ["cpu:0", "npu:0", "npu:1"]
    assert report.unavailable == ()


def test_five_broken_plugins_are_five_lines_and_the_rest_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugins(
        tmp_path,
        {
            "npu": WELL_BEHAVED,
            "segfaults": """
                import ctypes
                def enumerate_devices():
                    ctypes.string_at(0)
                """,
            "hangs": """
                import time
                def enumerate_devices():
                    time.sleep(600)
                """,
            "raises": """
                def enumerate_devices():
                    raise ValueError("no such firmware")
                """,
            "rambles": """
                def enumerate_devices():
                    return {"devices": 42}
                """,
            "exits": """
                import os
                def enumerate_devices():
                    os._exit(0)
                """,
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    # the limit is over once all but the one that hangs have ended
    others = {child.pid for child in psutil.Process().children()}

    def monotonic() -> float:
        left = [c for c in psutil.Process().children() if c.pid not in others]
        return time.monotonic() + (600.0 if len(left) == 1 else 0.0)

    clock = SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
    monkeypatch.setattr("fuel_gpu.probes.isolation.time", clock)
    backends = ["cpu", "npu", "segfaults", "hangs", "raises", "rambles", "exits"]
    report = probe(backends, timeout_s=300.0)
    assert [device.id for device in report.devices] == ["cpu:0", "npu:0", "npu:1"]
    assert {line.backend: line.reason for line in report.unavailable} == {
        "segfaults": "its probe crashed with SIGSEGV",
        "hangs": "its probe did not answer within 300 s and was stopped",
        "raises": "its probe raised ValueError: no such firmware",
        "rambles": "its probe returned nonsense: Expected `array`, got `int` - at `$.devices`",
        "exits": "its probe exited before it reported",
    }
    assert all(line.remedy for line in report.unavailable)


@pytest.mark.parametrize(
    ("device", "complaint"),
    [
        (DeviceInfo(id="cuda:0", backend="cuda", name="x", memory_bytes=1), "a cuda device"),
        (DeviceInfo(id="npu:1", backend="npu", name="x", memory_bytes=1), "npu:1 where npu:0"),
        (DeviceInfo(id="npu:0", backend="npu", name="x", memory_bytes=-1), "negative memory"),
    ],
)
def test_a_probe_that_names_devices_wrongly_is_not_believed(
    device: DeviceInfo, complaint: str
) -> None:
    payload = msgspec.json.encode(ProbeReport(devices=(device,)))
    report = read_ending("npu", Ending(payload))
    assert report.devices == ()
    assert complaint in report.unavailable[0].reason


@given(st.binary())
def test_bytes_that_are_no_report_are_one_line(payload: bytes) -> None:
    report = read_ending("npu", Ending(payload))
    assert report.devices == ()
    (line,) = report.unavailable
    assert line.backend == "npu"
    assert line.reason.startswith("its probe returned nonsense: ")


@given(
    st.lists(
        st.builds(
            Unavailable, backend=st.just("npu"), reason=st.text(max_size=20), remedy=st.text()
        ),
        max_size=3,
    ),
    st.integers(0, 3),
)
def test_a_report_comes_back_as_it_was_sent(lines: list[Unavailable], count: int) -> None:
    devices = tuple(
        DeviceInfo(id=f"npu:{i}", backend="npu", name="Model One", memory_bytes=2**i)
        for i in range(count)
    )
    report = ProbeReport(devices=devices, unavailable=tuple(lines))
    assert read_ending("npu", Ending(msgspec.json.encode(report))) == report
