"""Peak memory: inputs and outputs of the running step, what is still needed, resident weights."""

from itertools import product

import pytest
from small_graphs import CPU, GPU, TIMES, diamond_problem

from fuel_gpu.device import Device
from fuel_gpu.planner.memory import peak_bytes, usage_bytes
from fuel_gpu.planner.pricing import residency
from fuel_gpu.planner.problem import Problem


def test_worked_usage_on_one_device() -> None:
    usage = usage_bytes(diamond_problem(TIMES), [0, 0, 0, 0], (CPU, GPU))
    weight = 5000
    assert usage[0].tolist() == [
        weight + 1000 + 400,  # a reads x and writes a
        weight + 400 + 300,  # b; x is dead
        weight + 400 + 300 + 200,  # c; b's value waits for d
        weight + 300 + 200 + 50,  # d; a is dead
    ]
    assert usage[1].tolist() == [0, 0, 0, 0]


def test_worked_usage_across_two_devices() -> None:
    # a on the CPU, b, c, d on the GPU: x and a live on the CPU until a has left
    usage = usage_bytes(diamond_problem(TIMES), [0, 1, 1, 1], (CPU, GPU))
    assert usage[0].tolist() == [1000 + 400, 400, 0, 50]  # the output comes back at the end
    assert usage[1].tolist() == [5000, 5000 + 700, 5000 + 900, 5000 + 550]


@pytest.mark.parametrize("placement", list(product((0, 1), repeat=4)))
def test_usage_equals_a_straightforward_count(placement: tuple[int, ...]) -> None:
    problem = diamond_problem(TIMES)
    counted = peak_bytes(problem, placement, (CPU, GPU))
    assert counted == {device: _peak(problem, placement, device) for device in (CPU, GPU)}


def _peak(problem: Problem, placement: tuple[int, ...], device: Device) -> int:
    """Walk the steps and ask of each value whether it is on the device at that moment."""
    end = len(placement) - 1
    peak = 0
    for now in range(len(placement)):
        used = 0
        for value in problem.values:
            here = [s for s in value.readers if problem.devices[placement[s]] == device]
            if value.is_weight:
                used += value.bytes if here else 0
                continue
            home = residency(problem, placement, value)
            needed = list(here)
            if value.is_output and (device == problem.exit):
                needed.append(end)
            if home == device:
                away: dict[Device, int] = {}
                for step in value.readers:
                    away.setdefault(problem.devices[placement[step]], step)
                if value.is_output:
                    away.setdefault(problem.exit, end)
                needed += [step for where, step in away.items() if where != device]
                start = value.producer or 0
                alive = start <= now <= max([start, *needed])
            else:
                alive = bool(needed) and min(needed) <= now <= max(needed)
            used += value.bytes if alive else 0
        peak = max(peak, used)
    return peak
