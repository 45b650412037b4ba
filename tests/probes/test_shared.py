"""Several processes share one probe's report."""

import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from fuel_gpu.probes import shared
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

REPORT = ProbeReport(
    devices=(DeviceInfo(id="npu:0", backend="npu", name="Model One", memory_bytes=1),)
)


def test_the_second_reads_what_the_first_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "probe", lambda: REPORT)
    assert shared.shared_report(tmp_path) == REPORT
    monkeypatch.setattr(shared, "probe", lambda: pytest.fail("it probed again"))
    assert shared.shared_report(tmp_path) == REPORT


def test_a_probe_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> ProbeReport:
        raise OSError("no processes left")

    monkeypatch.setattr(shared, "probe", broken)
    with pytest.raises(OSError, match="no processes left"):
        shared.shared_report(tmp_path)
    monkeypatch.setattr(shared, "probe", lambda: REPORT)
    assert shared.shared_report(tmp_path) == REPORT


def test_processes_at_once_probe_once(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        import msgspec
        from fuel_gpu.probes import shared
        from fuel_gpu.probes.report import ProbeReport

        folder = Path(sys.argv[1])

        def probe():
            with (folder / "log").open("a") as log:
                log.write("probed\\n")
            time.sleep(0.3)
            return ProbeReport(devices=())

        shared.probe = probe
        print(msgspec.json.encode(shared.shared_report(folder)).decode())
        """
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    told = [child.communicate()[0].strip() for child in children]
    assert told == [msgspec.json.encode(ProbeReport(devices=())).decode()] * 3
    assert (tmp_path / "log").read_text() == "probed\n"
