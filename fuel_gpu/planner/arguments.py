"""Reads what `plan` and `plan_scenarios` are asked for, and refuses what cannot be meant."""

import difflib
from collections.abc import Collection, Mapping, Sequence

from fuel_gpu.calibration.rates import rated_devices
from fuel_gpu.calibration.table import Table
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.planner.cost_vector import MOST_DIGITS


def checked_graph_and_tables(graph: object, tables: Sequence[object]) -> None:
    """Refuse anything that is no graph and no tables.

    Raises
    ------
    UsageError
        If an argument is of another type; the message says what makes one.
    """
    if not isinstance(graph, Graph):
        raise UsageError(f"graph: {graph!r:.60} is no graph: load one with load_onnx(path)")
    for table in tables:
        if not isinstance(table, Table):
            raise UsageError(f"table: {table!r:.60} is no table: load one with load_table(path)")


def checked_devices(table: Table, wanted: Sequence[Device | str] | None) -> tuple[Device, ...]:
    """List the devices to plan over: those asked for, else all with rates.

    Raises
    ------
    UsageError
        If one is not in the table or none is left.
    PlanError
        If none was asked for and the table has rates of none.
    """
    if wanted is None:
        usable = rated_devices(table)
        if not usable:
            raise PlanError("the table has no rates of any device: run `fuel-gpu calibrate` again")
        return usable
    if isinstance(wanted, str):
        raise UsageError(f"devices: {wanted!r} is one name: give a list, such as [{wanted!r}]")
    named = tuple(dict.fromkeys(known_device(table, one, "devices") for one in wanted))
    if not named:
        raise UsageError("devices: no device is left to plan on")
    return named


def known_device(table: Table, value: Device | str, argument: str) -> Device:
    """Take a device that the table has; the host counts as known.

    Raises
    ------
    UsageError
        If it is no device, not in the table, or a simulator.
    """
    device = Device.of(value, argument)
    names = [d.id for d in table.devices if not d.simulated]
    if device != HOST and str(device) not in names:
        raise UsageError(f"{argument}: the table has no device {device}; it has {', '.join(names)}")
    return device


def checked_pins(
    graph: Graph,
    table: Table,
    pins: Mapping[NodeId | str, Device | str],
    allowed: Collection[Device] | None,
) -> dict[NodeId, Device]:
    """Take pins by node id or name, and the graph's own placements with them.

    Parameters
    ----------
    allowed
        The devices that were asked for; None if any will do.

    Raises
    ------
    UsageError
        If a node does not exist or no kernel runs it, or a device is not in the table or not
        among the devices asked for.
    """
    named: list[tuple[NodeId | str, Device | str]] = [*graph.placements.items(), *pins.items()]
    pinned: dict[NodeId, Device] = {}
    for key, value in named:
        node_id = find_node(graph, key)
        node = graph.node(node_id)
        if node.kind not in ("kernel", "copy"):
            raise UsageError(f"pins: {node.name or node_id} is a {node.kind}: no kernel runs it")
        device = known_device(table, value, f"pins: {node.name or node_id}")
        if allowed is not None and device not in allowed:
            raise UsageError(
                f"pins: {node.name or node_id} is pinned to {device}, which is left out; plan over "
                f"{', '.join(map(str, allowed))} and {device}, or drop the pin"
            )
        pinned[node_id] = device
    return pinned


def find_node(graph: Graph, key: NodeId | str) -> NodeId:
    """Find a node by id, by its name, or by the name of a value that it gives.

    Raises
    ------
    UsageError
        If there is none; for a name the message gives similar ones.
    """
    if isinstance(key, int) and not isinstance(key, bool):
        if not 0 <= key < len(graph):
            raise UsageError(f"the graph has no node {key}: its ids go from 0 to {len(graph) - 1}")
        return key
    names = dict(graph.value_names)
    names.update((node.name, node_id) for node_id, node in enumerate(graph.nodes) if node.name)
    if not isinstance(key, str) or key not in names:
        similar = difflib.get_close_matches(str(key), names, n=3)
        hint = f"; did you mean {', '.join(similar)}?" if similar else ""
        raise UsageError(f"the graph has no node {key!r}{hint}")
    return names[key]


def checked_memory(table: Table, memory: Mapping[Device | str, int]) -> dict[Device, int]:
    """Take memory limits.

    Raises
    ------
    UsageError
        If a device is not in the table or a limit is no positive whole number of bytes.
    """
    limits = {}
    for key, limit in memory.items():
        device = known_device(table, key, "memory")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
            raise UsageError(f"memory: {limit!r} for {device} is no positive whole number of bytes")
        limits[device] = limit
    return limits


def checked_count(value: object, argument: str, most: int | None = None) -> None:
    """Refuse what is no whole number from 0 to `most`.

    Raises
    ------
    UsageError
        If it is none; the message names the argument.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 0 or (most is not None and value > most):  # type: ignore[operator]  # whole
        upper = "" if most is None else f" to {most}"
        raise UsageError(f"{argument}: {value!r} is no whole number from 0{upper}")


def checked_digits(digits: int | None) -> None:
    """Refuse digits that no kernel could promise.

    Raises
    ------
    UsageError
        If it is no whole number from 0 to 18.
    """
    if digits is not None:
        checked_count(digits, "precision_digits", MOST_DIGITS)
