"""Memory pools: the memory of each device, counted once however many doors lead to it."""

from collections.abc import Mapping, Sequence

from fuel_gpu.calibration.table import Table
from fuel_gpu.device import Device
from fuel_gpu.planner.fit import Pool
from fuel_gpu.probes.cards import cards


def memory_pools(table: Table, limits: Mapping[Device, int]) -> tuple[Pool, ...]:
    """List the pools that a placement must fit: every device's memory, and every shared card's.

    Parameters
    ----------
    table
        Its device descriptions say how much memory there is, and which devices share it.
    limits
        Limits in bytes that the caller sets in place of a device's whole memory.
    """
    described = {d.device: d for d in table.devices}
    pools = [
        Pool(str(device), (device,), limits.get(device, info.memory_bytes))
        for device, info in described.items()
        if limits.get(device, info.memory_bytes) > 0
    ]
    for card in cards(table.devices):
        doors = tuple(door.device for door in card.doors)
        if len(doors) > 1:
            largest = max(limits.get(door.device, door.memory_bytes) for door in card.doors)
            pools.append(Pool(" + ".join(map(str, doors)), doors, largest))
    return tuple(pools)


def device_limits(pools: Sequence[Pool]) -> dict[Device, int]:
    """Give the tightest limit on each device, bytes."""
    limits: dict[Device, int] = {}
    for pool in pools:
        for device in pool.devices:
            limits[device] = min(limits.get(device, pool.limit_bytes), pool.limit_bytes)
    return limits
