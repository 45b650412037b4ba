"""What is read from CUDA's runtime, over a stand-in for the module ``cupy.cuda.runtime``."""

from typing import Any

import pytest

from fuel_gpu.probes.cuda_runtime import Ordinal, Runtime, read_runtime, version_text


class CUDARuntimeError(RuntimeError):
    """CuPy's error: the runtime's code as `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


class StandIn:
    """The functions of ``cupy.cuda.runtime`` that the probe calls, for one H200."""

    CUDARuntimeError = CUDARuntimeError

    def __init__(self, error: int | None = None, driver: int = 12080) -> None:
        self.error = error
        self.driver = driver

    def runtimeGetVersion(self) -> int:  # noqa: N802 - CuPy's name
        return 12090

    def driverGetVersion(self) -> int:  # noqa: N802 - CuPy's name
        return self.driver

    def getDeviceCount(self) -> int:  # noqa: N802 - CuPy's name
        if self.error is not None:
            raise CUDARuntimeError(self.error)
        return 1

    def deviceGetPCIBusId(self, device: int) -> str:  # noqa: N802 - CuPy's name
        assert device == 0
        return "0000:18:00.0"

    def getDeviceProperties(self, device: int) -> dict[str, Any]:  # noqa: N802 - CuPy's name
        assert device == 0
        return {
            "name": b"NVIDIA H200",
            "uuid": bytes(range(16)),
            "totalGlobalMem": 150_121_545_728,
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 132,
            "integrated": 0,
        }


def test_a_device_as_the_runtime_describes_it() -> None:
    assert read_runtime(StandIn()) == Runtime(
        installed=True,
        ordinals=(
            Ordinal(
                name="NVIDIA H200",
                pci_address="0000:18:00.0",
                uuid="00010203-0405-0607-0809-0a0b0c0d0e0f",
                memory_bytes=150_121_545_728,
                compute_capability=(9, 0),
                multiprocessors=132,
                integrated=False,
            ),
        ),
        version=12090,
        driver_supports=12080,
    )


@pytest.mark.parametrize("status", [35, 100])
def test_an_error_keeps_its_code_and_the_versions(status: int) -> None:
    assert read_runtime(StandIn(error=status, driver=11040)) == Runtime(
        installed=True,
        version=12090,
        driver_supports=11040,
        error=status,
        error_text=f"cudaError {status}",
    )


def test_how_a_version_is_written() -> None:
    assert version_text(12040) == "12.4"
    assert version_text(13000) == "13.0"
