"""Streaming in each of a processor's NUMA nodes by itself."""

import time

import msgspec

from fuel_gpu.calibration.backends import NodedDevice
from fuel_gpu.calibration.effort import Effort
from fuel_gpu.calibration.figures import node_stream
from fuel_gpu.calibration.kernel_trials import measure_rate, stream_bytes
from fuel_gpu.calibration.table import NodeStream
from fuel_gpu.probes.report import DeviceInfo


def measure_node_streams(
    info: DeviceInfo, device: NodedDevice, dtype: str, effort: Effort, deadline: float
) -> tuple[NodeStream, ...]:
    """Bytes read and written a nanosecond by the cores of each node, in that node's memory.

    Raises
    ------
    WrongResult
        If a copy is wrong.
    """
    found = []
    begun, nodes = time.monotonic(), device.memory_nodes
    for index, node in enumerate(nodes, start=1):
        memory_bytes = node.memory_bytes or info.memory_bytes // len(nodes)
        within = msgspec.structs.replace(info, memory_bytes=memory_bytes)
        nbytes = stream_bytes(within, effort.stream_caches)
        work = device.node_stream(node, dtype, nbytes)
        work.run()
        until = begun + (deadline - begun) * index / len(nodes)
        moved = measure_rate(device, work, "", effort, until)
        found.append(node_stream(node.node, node.cpus, moved))
    return tuple(found)
