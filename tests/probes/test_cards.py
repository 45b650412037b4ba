"""Devices of one piece of hardware are one card, and its memory counts once."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.probes.cards import cards, with_card_memory
from fuel_gpu.probes.report import DeviceInfo

GIB = 2**30
UUID = "8f6d2c1e-0a4b-4c7d-9e21-aa00bb11cc22"


def device(name: str, memory_bytes: int, **fields: Any) -> DeviceInfo:
    return DeviceInfo(
        id=name, backend=name.partition(":")[0], name=name, memory_bytes=memory_bytes, **fields
    )


CPU = device("cpu:0", 64 * GIB, host_processor=True, unified_memory=True)
POCL = device("opencl:1", 48 * GIB, host_processor=True, unified_memory=True)
OTHER_POCL = device("opencl:2", 40 * GIB, host_processor=True, unified_memory=True)
LLVMPIPE = device("vulkan:1", 64 * GIB, host_processor=True, unified_memory=True, uuid="6d65")
CUDA = device("cuda:0", 80 * GIB, uuid=UUID, pci_address="0000:3b:00.0")
CUDA_TWIN = device("cuda:1", 80 * GIB, pci_address="0000:5e:00.0")
CARD_BY_OPENCL = device("opencl:0", 79 * GIB, pci_address="0000:3b:00.0")
CARD_BY_VULKAN = device("vulkan:0", 2 * GIB, uuid=UUID, memory_is_lower_bound=True)
SIMULATOR = device("opencl:3", 128 * GIB, simulated=True, unified_memory=True)


def doors_of(*devices: DeviceInfo) -> list[list[str]]:
    return [[door.id for door in card.doors] for card in cards(devices)]


def test_all_that_computes_on_the_hosts_cores_is_one_card() -> None:
    (card,) = cards([CPU, POCL, OTHER_POCL, LLVMPIPE])
    assert [door.id for door in card.doors] == ["cpu:0", "opencl:1", "opencl:2", "vulkan:1"]
    assert card.name == "cpu:0"
    assert card.memory_bytes == 64 * GIB
    assert card.shares_host_memory


def test_one_card_behind_three_doors_tied_by_address_and_by_uuid() -> None:
    (card,) = cards([CUDA, CARD_BY_OPENCL, CARD_BY_VULKAN])
    assert len(card.doors) == 3
    assert card.memory_bytes == 80 * GIB
    assert not card.shares_host_memory


def test_doors_that_only_a_third_ties_together_are_one_card() -> None:
    assert doors_of(CARD_BY_OPENCL, CARD_BY_VULKAN, CUDA) == [["opencl:0", "vulkan:0", "cuda:0"]]


def test_two_cards_of_one_model_stay_two() -> None:
    assert doors_of(CUDA, CUDA_TWIN, CARD_BY_OPENCL) == [["cuda:0", "opencl:0"], ["cuda:1"]]


def test_a_simulator_is_nobodys_door() -> None:
    assert doors_of(CPU, SIMULATOR) == [["cpu:0"], ["opencl:3"]]


def test_a_door_that_does_not_know_its_memory_learns_it_from_the_card() -> None:
    vulkan = with_card_memory([CUDA, CARD_BY_VULKAN])[1]
    assert (vulkan.memory_bytes, vulkan.memory_is_lower_bound) == (80 * GIB, False)
    alone = with_card_memory([CARD_BY_VULKAN])[0]
    assert (alone.memory_bytes, alone.memory_is_lower_bound) == (2 * GIB, True)


@given(
    st.permutations(
        [CPU, POCL, LLVMPIPE, CUDA, CUDA_TWIN, CARD_BY_OPENCL, CARD_BY_VULKAN, SIMULATOR]
    )
)
def test_cards_do_not_depend_on_the_order_of_devices(devices: list[DeviceInfo]) -> None:
    assert {frozenset(doors) for doors in doors_of(*devices)} == {
        frozenset({"cpu:0", "opencl:1", "vulkan:1"}),
        frozenset({"cuda:0", "opencl:0", "vulkan:0"}),
        frozenset({"cuda:1"}),
        frozenset({"opencl:3"}),
    }
