"""The processor: its model, instruction sets, cores, memory nodes, caches and memory."""

import contextlib
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

from fuel_gpu.probes import cgroup, topology
from fuel_gpu.probes.identity import equivalence_key
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

backend: Final = "cpu"

_VECTOR_FLAG = re.compile(
    r"sse4_2|avx\w*|fma|f16c|amx\w*|asimd\w*|neon|fphp|sve\w*|sme(2\w*)?|bf16|i8mm|rv64\w*v|vsx"
)
"""Flags of `/proc/cpuinfo` that tell what a compute kernel can use."""


def enumerate_devices(root: Path = Path("/")) -> ProbeReport:
    """Describe the one CPU device, as far as this process may use it.

    Parameters
    ----------
    root
        Where Linux' ``proc`` and ``sys`` are mounted.
    """
    usable = _usable_processors()
    model, isa = describe_processor(root)
    quota = cgroup.cpu_quota(root)
    memory_bytes = host_memory_bytes(root)
    physical = topology.physical_cores(usable, root) or psutil.cpu_count(logical=False)
    numpy_version = f"NumPy {version('numpy')}"
    details: dict[str, Any] = {
        "architecture": platform.machine(),
        "isa": isa,
        "physical_cores": physical,
        "logical_cores": len(usable),
        "cpu_quota": quota,
        "numa_nodes": topology.numa_nodes(usable, root),
        "caches": topology.caches(usable, root),
        "machine_memory_bytes": psutil.virtual_memory().total,
    }
    cpu = DeviceInfo(
        id="cpu:0",
        backend=backend,
        name=model,
        memory_bytes=memory_bytes,
        dtypes=("float32", "float64"),
        driver=numpy_version,  # what computes on this device; its rates change with it
        unified_memory=True,
        host_processor=True,
        equivalence_key=equivalence_key(
            backend, model, numpy_version, f"{len(usable)} processors, quota {quota}"
        ),
        details=details,
    )
    return ProbeReport(devices=(cpu,))


def host_memory_bytes(root: Path = Path("/")) -> int:
    """Bytes of memory that this process may fill: the machine's, or its control group's limit."""
    total = psutil.virtual_memory().total
    limit = cgroup.memory_limit_bytes(root)
    return total if limit is None else min(total, limit)


def describe_processor(root: Path = Path("/")) -> tuple[str, list[str]]:
    """Give the processor's model name and the vector instruction sets it has.

    Linux tells both in a file; elsewhere py-cpuinfo is asked, which takes a second.
    """
    with contextlib.suppress(OSError):
        first_processor = (root / "proc/cpuinfo").read_text().split("\n\n")[0]
        pairs = (line.partition(":") for line in first_processor.splitlines())
        fields = {key.strip().lower(): value.strip() for key, _, value in pairs}
        named = (fields[key] for key in ("model name", "cpu", "uarch") if fields.get(key))
        model = next(named, platform.machine())
        if "cpu part" in fields:  # Arm gives numbers for the maker and the core, and no name
            model += f" {fields['cpu implementer']}:{fields['cpu part']}"
        flags = fields.get("flags") or fields.get("features") or fields.get("isa") or ""
        return model, sorted(flag for flag in flags.split() if _VECTOR_FLAG.fullmatch(flag))
    import cpuinfo

    facts = cpuinfo.get_cpu_info()
    return str(facts.get("brand_raw") or platform.processor() or platform.machine()), sorted(
        flag for flag in facts.get("flags", ()) if _VECTOR_FLAG.fullmatch(flag)
    )


def _usable_processors() -> set[int]:
    process = psutil.Process()
    if hasattr(process, "cpu_affinity"):  # not on macOS
        return set(process.cpu_affinity() or ())
    return set(range(psutil.cpu_count() or 1))
