"""The ``bandwidth.json`` of the Rust planner fuel: nanoseconds a byte between pairs of backends."""

from typing import Any, Final

import msgspec

from fuel_gpu.calibration.export_matrix import Paths, host_memory_kinds
from fuel_gpu.calibration.table import Table
from fuel_gpu.device import HOST
from fuel_gpu.sizes import size_text

FUEL_SIZE_BYTES: Final = 16 * 2**20
"""What that project measures with unless told otherwise."""

_VERSION: Final = 1
_SPELLINGS: Final = {"cpu": "Cpu", "cuda": "Cuda", "vulkan": "Vulkan", "metal": "Metal"}


def fuel_bandwidth(table: Table, size_bytes: int) -> tuple[str, list[str]]:
    """Give the file's text, and what of the table it leaves out or does not vouch for.

    The format names backends, not devices: the first device of each stands for it, as in that
    project's own measurement. Only direct copies are entries; its reader goes through the host
    elsewhere by itself. Pageable memory comes first, because that is what its tensors lie in. An
    entry that was not measured at exactly this size says so under `provenance`, a key that the
    reader passes over.
    """
    firsts: dict[str, str] = {}
    notes: list[str] = []
    for info in sorted(table.devices, key=lambda d: d.device.index):
        if info.backend not in _SPELLINGS:
            notes.append(f"{info.id} is left out: the format has no backend {info.backend}")
        elif info.backend in firsts:
            first = firsts[info.backend]
            notes.append(f"{info.id} is left out: {first} stands for the backend {info.backend}")
        else:
            firsts[info.backend] = info.id
    kinds = sorted(host_memory_kinds(table), key=lambda kind: kind != "pageable")
    paths = Paths(table, kinds)
    entries = []
    ordered = [(spelling, firsts[name]) for name, spelling in _SPELLINGS.items() if name in firsts]
    for src_spelling, src in ordered:
        for dst_spelling, dst in ordered:
            cell = paths.cell(src, dst, size_bytes)
            if cell is None or f"through {HOST}" in cell.basis:
                continue
            entry: dict[str, Any] = {
                "src": src_spelling,
                "dst": dst_spelling,
                "ns_per_byte": cell.ns / size_bytes,
            }
            if not cell.is_measured:
                entry["provenance"] = str(cell)
                notes.append(f"{src} to {dst}, {size_text(size_bytes)}: {cell}")
            entries.append(entry)
    document = {"version": _VERSION, "measurement_bytes": size_bytes, "entries": entries}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n", notes
