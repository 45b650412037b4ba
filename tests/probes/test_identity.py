"""One card has one address and one UUID, however its drivers spell them."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.probes.identity import (
    equivalence_key,
    normal_pci_address,
    normal_uuid,
    pci_address,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),  # NVML
        ("0000:3b:00.0", "0000:3b:00.0"),  # CUDA's runtime, Linux
        ("00010000:01:00.1", "10000:01:00.1"),
        ("3b:00.0", None),
        ("", None),
    ],
)
def test_spellings_of_a_pci_address(text: str, normal: str | None) -> None:
    assert normal_pci_address(text) == normal


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFF), st.integers(0, 0x1F), st.integers(0, 7))
def test_a_pci_address_is_its_own_normal_form(
    domain: int, bus: int, device: int, function: int
) -> None:
    text = pci_address(domain, bus, device, function)
    assert normal_pci_address(text) == text
    assert normal_pci_address(f"0000{text}".upper()) == text


def test_spellings_of_a_uuid() -> None:
    text = "8f6d2c1e-0a4b-4c7d-9e21-aa00bb11cc22"
    assert normal_uuid(f"GPU-{text}") == text
    assert normal_uuid(text.upper()) == text
    assert normal_uuid(uuid.UUID(text).bytes) == text


@pytest.mark.parametrize(
    "none", [bytes(16), b"short", "GPU-", "00000000-" + "0000-" * 3 + "0" * 12]
)
def test_what_is_no_uuid(none: str | bytes) -> None:
    assert normal_uuid(none) is None


def test_equivalence_needs_backend_model_driver_and_link() -> None:
    key = equivalence_key("cuda", "H200", "550.54", "PCIe 5 x16")
    assert key == equivalence_key("cuda", "H200", "550.54", "PCIe 5 x16")
    assert key != equivalence_key("cuda", "H200", "550.54", "PCIe 5 x8")
    assert key != equivalence_key("cuda", "H200", "560.28", "PCIe 5 x16")
    assert key != equivalence_key("opencl", "H200", "550.54", "PCIe 5 x16")
