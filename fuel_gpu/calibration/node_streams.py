"""Streaming in each of a processor's NUMA nodes by itself."""

import time

import msgspec

from fuel_gpu.calibration.backends import NodedDevice
from fuel_gpu.calibration.effort import Effort
from fuel_gpu.calibration.kernel_trials import collect, stream_bytes
from fuel_gpu.calibration.sampling import summarize
from fuel_gpu.calibration.table import NodeStream
from fuel_gpu.probes.report import DeviceInfo


def measure_node_streams(
    info: DeviceInfo, device: NodedDevice, dtype: str, effort: Effort, deadline: float
) -> tuple[NodeStream, ...]:
    """Bytes read and written a nanosecond by the cores of each node, in that node's memory.

    Raises
    ------
    RuntimeError
        If a copy is wrong.
    """
    found = []
    begun, nodes = time.monotonic(), device.memory_nodes
    for index, node in enumerate(nodes, start=1):
        memory_bytes = node.memory_bytes or info.memory_bytes // len(nodes)
        nbytes = stream_bytes(msgspec.structs.replace(info, memory_bytes=memory_bytes))
        work = device.node_stream(node, dtype, nbytes)
        work.run()
        until = begun + (deadline - begun) * index / len(nodes)
        samples = [work.amount / ns for ns in collect(work.run, effort, until)]
        if not work.correct():
            raise RuntimeError(f"node {node.node}: wrong result after many runs")
        summary = summarize(samples, width=effort.width)
        found.append(
            NodeStream(
                node=node.node,
                cpus=node.cpus,
                bytes_per_ns=summary.median,
                samples=tuple(samples),
                interval=summary.interval,
                flags=summary.flags,
            )
        )
    return tuple(found)
