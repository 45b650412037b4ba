"""Cores, caches and NUMA nodes of a Linux machine, as far as this process may use them."""

import re
from collections.abc import Set
from pathlib import Path
from typing import Any

_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_cpu_list(text: str) -> set[int]:
    """Read the kernel's notation for a set of processors, such as ``0-3,8``."""
    processors: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            processors |= set(range(int(first), int(last or first) + 1))
    return processors


def format_cpu_list(processors: Set[int]) -> str:
    """Write a set of processors in the kernel's notation."""
    runs: list[list[int]] = []
    for processor in sorted(processors):
        if runs and runs[-1][1] == processor - 1:
            runs[-1][1] = processor
        else:
            runs.append([processor, processor])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def physical_cores(usable: Set[int], root: Path = Path("/")) -> int | None:
    """Count the distinct cores that `usable` logical processors lie on; None if not told."""
    cores = {
        (
            _read(folder / "physical_package_id").strip(),
            _read(folder / "die_id").strip(),
            _read(folder / "core_id").strip(),
        )
        for cpu in usable
        if (folder := root / f"sys/devices/system/cpu/cpu{cpu}/topology").is_dir()
    }
    return len(cores) or None


def caches(usable: Set[int], root: Path = Path("/")) -> list[dict[str, Any]]:
    """List the data caches that `usable` processors reach, smallest level first.

    Returns
    -------
    list
        For each level: `level`, `size_bytes` of one instance, and how many `instances`.
    """
    instances: dict[tuple[int, int], set[str]] = {}
    for cpu in usable:
        for folder in (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
            size = re.fullmatch(r"(\d+)([KMG]?)", _read(folder / "size").strip())
            level = _read(folder / "level").strip()
            if size and level.isdecimal() and _read(folder / "type").strip() != "Instruction":
                key = int(level), int(size[1]) * _UNIT[size[2]]
                instances.setdefault(key, set()).add(_read(folder / "shared_cpu_list").strip())
    return [
        {"level": level, "size_bytes": size, "instances": len(shared_by)}
        for (level, size), shared_by in sorted(instances.items())
    ]


def numa_nodes(usable: Set[int], root: Path = Path("/")) -> list[dict[str, Any]]:
    """List the memory nodes.

    Returns
    -------
    list
        For each: its number `node`, the usable `cpus` beside it, and its `memory_bytes`.
    """
    nodes = []
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        memory = re.search(r"MemTotal:\s*(\d+) kB", _read(folder / "meminfo"))
        nodes.append(
            {
                "node": int(folder.name.removeprefix("node")),
                "cpus": format_cpu_list(parse_cpu_list(_read(folder / "cpulist")) & usable),
                "memory_bytes": int(memory[1]) << 10 if memory else None,
            }
        )
    return sorted(nodes, key=lambda node: int(str(node["node"])))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
