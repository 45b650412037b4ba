"""A machine without a card, and one with one."""

import pytest
from plugin_machines import NO_CARD, ONE_CARD, Machine

from fuel_gpu.probes import machine


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a processor that is driven as an OpenCL and a Vulkan device too."""
    found = Machine(NO_CARD)
    monkeypatch.setattr(machine, "probe", found.probe)
    return found


@pytest.fixture
def one_card(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The same machine with a CUDA card of 8 GiB."""
    found = Machine(ONE_CARD)
    monkeypatch.setattr(machine, "probe", found.probe)
    return found
