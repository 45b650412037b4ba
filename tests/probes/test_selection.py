"""Which device of a report answers a wish, and what is said when none does."""

from typing import Any

import pytest

from fuel_gpu.errors import DeviceUnavailableError, UsageError
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable
from fuel_gpu.probes.selection import Wish, is_gpu, parse_name, select

GIB = 2**30


def device(name: str, **fields: Any) -> DeviceInfo:
    values = {"name": f"Model of {name}", "memory_bytes": 8 * GIB, **fields}
    return DeviceInfo(id=name, backend=name.partition(":")[0], **values)


CPU = device("cpu:0", host_processor=True, unified_memory=True)
CARD = device("cuda:0")
LARGER_CARD = device("cuda:1", memory_bytes=80 * GIB)
OPENCL_CARD = device("opencl:0", details={"type": "gpu"})
POCL = device("opencl:1", host_processor=True, details={"type": "cpu"})
FPGA = device("opencl:2", details={"type": "accelerator"})
OCLGRIND = device("opencl:3", simulated=True, details={"type": "gpu"})
VULKAN_CARD = device("vulkan:0", memory_bytes=2 * GIB, memory_is_lower_bound=True)
LLVMPIPE = device("vulkan:1", host_processor=True)
APPLE = device("metal:0", unified_memory=True)
NPU = device("npu:0")


@pytest.mark.parametrize(
    "one", [CARD, OPENCL_CARD, VULKAN_CARD, APPLE, device("d3d12:0")], ids=lambda d: d.id
)
def test_what_draws_or_computes_on_a_card_is_a_gpu(one: DeviceInfo) -> None:
    assert is_gpu(one)


@pytest.mark.parametrize("one", [CPU, POCL, FPGA, OCLGRIND, LLVMPIPE, NPU], ids=lambda d: d.id)
def test_processors_accelerators_simulators_and_plugins_devices_are_no_gpus(
    one: DeviceInfo,
) -> None:
    assert not is_gpu(one)


REPORT = ProbeReport(
    devices=(
        *(CPU, CARD, LARGER_CARD, OPENCL_CARD, POCL, FPGA, OCLGRIND),
        *(VULKAN_CARD, LLVMPIPE, APPLE, NPU),
    )
)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (Wish("gpu"), "cuda:0"),
        (Wish("gpu", memory_bytes=8 * GIB), "cuda:0"),
        (Wish("gpu", memory_bytes=8 * GIB + 1), "cuda:1"),
        (Wish("cuda"), "cuda:0"),
        (Wish("cuda:1"), "cuda:1"),
        (Wish("opencl"), "opencl:0"),
        (Wish("opencl:3"), "opencl:3"),
        (Wish("vulkan"), "vulkan:0"),
        (Wish("vulkan", memory_bytes=2 * GIB), "vulkan:0"),
        (Wish("vulkan", memory_bytes=4 * GIB), "vulkan:1"),
        (Wish("vulkan", on_gpu=True), "vulkan:0"),
        (Wish("metal"), "metal:0"),
        (Wish("npu"), "npu:0"),
        (Wish("cpu:0"), "cpu:0"),
    ],
    ids=str,
)
def test_the_first_device_as_wished_is_given(wish: Wish, expected: str) -> None:
    assert select(REPORT, wish).id == expected


NO_CARD = ProbeReport(
    devices=(CPU, POCL, LLVMPIPE),
    unavailable=(
        Unavailable(backend="cuda", reason="no driver", remedy="install the driver"),
        Unavailable(backend="npu", reason="its probe crashed with SIGSEGV"),
    ),
)


@pytest.mark.parametrize(
    ("report", "wish", "reason", "remedy"),
    [
        (NO_CARD, Wish("cuda"), "no cuda device: no driver", "install the driver"),
        (NO_CARD, Wish("cuda:1"), "no cuda:1: no driver", "install the driver"),
        (
            NO_CARD,
            Wish("gpu"),
            "no GPU: cuda: no driver; opencl:1 (Model of opencl:1) is no GPU; "
            "vulkan:1 (Model of vulkan:1) is no GPU",
            "install the driver",
        ),
        (
            NO_CARD,
            Wish("vulkan", on_gpu=True),
            "no vulkan device that is a GPU: vulkan:1 (Model of vulkan:1) is no GPU",
            "",
        ),
        (NO_CARD, Wish("npu"), "no npu device: its probe crashed with SIGSEGV", ""),
        (NO_CARD, Wish("metal"), "no metal device: the probe knows of none", ""),
        (REPORT, Wish("cuda:2"), "no cuda:2: there is cuda:0, cuda:1", ""),
        (
            REPORT,
            Wish("cuda", memory_bytes=100 * GIB),
            "no cuda device with 100 GiB: cuda:0 (Model of cuda:0) has 8 GiB; "
            "cuda:1 (Model of cuda:1) has 80 GiB",
            "",
        ),
        (
            REPORT,
            Wish("vulkan:0", memory_bytes=4 * GIB),
            "no vulkan:0 with 4 GiB: vulkan:0 (Model of vulkan:0) does not tell its memory, "
            "and one buffer holds 2 GiB",
            "",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Wish) else "",
)
def test_the_reason_is_the_probes_own(
    report: ProbeReport, wish: Wish, reason: str, remedy: str
) -> None:
    with pytest.raises(DeviceUnavailableError) as caught:
        select(report, wish)
    assert (caught.value.reason, caught.value.remedy) == (reason, remedy)
    assert str(caught.value) == reason + (f"; to mend it: {remedy}" if remedy else "")


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (Wish("gpu", on_gpu=True), ["gpu"]),
        (Wish("cuda"), ["cuda"]),
        (Wish("cuda:1"), ["cuda", "cuda:1"]),
        (Wish("vulkan", on_gpu=True), ["gpu", "vulkan"]),
    ],
    ids=str,
)
def test_a_wish_asks_for_all_of_its_names(wish: Wish, names: list[str]) -> None:
    every = ("gpu", "cuda", "cuda:0", "cuda:1", "opencl", "vulkan", "vulkan:0")
    assert [name for name in every if wish.asks_for(name)] == names


def test_names_are_read_in_one_spelling() -> None:
    known = ("cpu", "cuda", "npu")
    names = [parse_name(text, known) for text in ("gpu", "cuda", " cuda:01 ", "npu:0")]
    assert names == ["gpu", "cuda", "cuda:1", "npu:0"]


@pytest.mark.parametrize("text", ["cudo", "cudo:0", "gpu:0", "CUDA", "", "cuda:"])
def test_a_name_of_nothing_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError):
        parse_name(text, ("cpu", "cuda"))
