"""Writes the example tables: three machines described from their makers' public datasheets.

Run ``python examples/tables/make_tables.py`` after changing a figure here. Every number is a peak
that a datasheet states, or follows from one by the arithmetic shown; none is derated and none was
measured. Latencies and launch overheads are in no datasheet: they are round assumptions, and the
notes of every entry that has one say so.
"""

from dataclasses import dataclass
from pathlib import Path

from fuel_gpu.calibration.curves import CurveTimes, line_curve
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Point, Rate, Table, Transfer
from fuel_gpu.calibration.table_text import encode_table
from fuel_gpu.probes.report import DeviceInfo

GIB = 2**30
SIZES_BYTES = tuple(2**k for k in range(12, 29))
PEAKS = "peaks from datasheets, not derated, not measured"


@dataclass(frozen=True)
class Chip:
    """A device as its datasheet gives it: FLOP/ns by dtype, byte/ns, and where that stands."""

    info: DeviceInfo
    flops_per_ns: dict[str, float]
    bytes_per_ns: float
    launch_ns: int
    source: str


@dataclass(frozen=True)
class Link:
    """A path between two devices, the same both ways."""

    a: str
    b: str
    latency_ns: int
    bytes_per_ns: float
    memory: str
    source: str


def cpu_flops(cores: int, base_ghz: float) -> dict[str, float]:
    """Zen 4 peaks: two 256-bit FMA units a core are 32 float32 or 16 float64 FLOP a cycle."""
    return {"float32": cores * base_ghz * 32, "float64": cores * base_ghz * 16}


def chip(
    name: str,
    id: str,
    *,
    memory_gib: int,
    flops: dict[str, float],
    gb_per_s: float,
    launch_ns: int,
    source: str,
    unified: bool = False,
    details: dict[str, object] | None = None,
) -> Chip:
    """Describe one device."""
    return Chip(
        info=DeviceInfo(
            id=id,
            backend=id.partition(":")[0],
            name=name,
            memory_bytes=memory_gib * GIB,
            dtypes=tuple(flops),
            equivalence_key=f"datasheet {name}",
            unified_memory=unified or id == "cpu:0",
            host_processor=id == "cpu:0",
            details=details or {},
        ),
        flops_per_ns=flops,
        bytes_per_ns=gb_per_s,
        launch_ns=launch_ns,
        source=source,
    )


def rates(device: Chip) -> list[Rate]:
    """One rate a dtype."""
    note = f"{PEAKS}; {device.source}; launch_ns is an assumption"
    return [
        Rate(
            device=device.info.id,
            dtype=dtype,
            flops_per_ns=flops,
            bytes_per_ns=device.bytes_per_ns,
            launch_ns=device.launch_ns,
            provenance="datasheet",
            notes=note,
        )
        for dtype, flops in device.flops_per_ns.items()
    ]


def transfers(link: Link) -> list[Transfer]:
    """Both directions of a link."""
    curve = line_curve(link.latency_ns, link.bytes_per_ns)
    times = CurveTimes(curve)
    points = tuple(Point(bytes=size, ns=times.at(size)) for size in SIZES_BYTES)
    return [
        Transfer(
            src=src,
            dst=dst,
            memory=link.memory,
            points=points,
            curve=curve,
            provenance="datasheet",
            notes=f"{PEAKS}; {link.source}; the latency of {link.latency_ns} ns is an assumption",
        )
        for src, dst in ((link.a, link.b), (link.b, link.a))
    ]


def machine(name: str, cpu: str, chips: list[Chip], links: list[Link]) -> Table:
    """Put a machine together."""
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint=f"datasheet-{name}", cpu=cpu),
        created="2025-01-01T00:00:00+00:00",
        devices=tuple(c.info for c in chips),
        transfers=tuple(t for link in links for t in transfers(link)),
        rates=tuple(r for c in chips for r in rates(c)),
        notes=(
            f"Described from datasheets: every figure here is one of {PEAKS}. "
            "A real machine reaches a part of them; calibrate it to know which.",
        ),
    )


def desktop() -> Table:
    """Describe a 16-core desktop with one gaming card, which has eight PCIe 4 lanes."""
    cpu = chip(
        "AMD Ryzen 9 7950X",
        "cpu:0",
        memory_gib=32,
        flops=cpu_flops(16, 4.5),
        gb_per_s=83.2,
        launch_ns=1_000,
        source=(
            "AMD Ryzen 9 7950X product page: 16 cores, 4.5 GHz base, two channels of DDR5-5200 "
            "(2 x 8 B x 5.2 GT/s); Zen 4: 32 float32 FLOP a cycle and core"
        ),
        details={"cores": 16},
    )
    card = chip(
        "NVIDIA GeForce RTX 4060",
        "cuda:0",
        memory_gib=8,
        flops={
            "float32": 15_110.0,
            "tf32": 15_110.0,
            "float16": 30_220.0,
            "bfloat16": 30_220.0,
            "float64": 236.0,
            "int8": 120_900.0,
        },
        gb_per_s=272.0,
        launch_ns=5_000,
        source=(
            "NVIDIA GeForce RTX 4060 specifications (3,072 cores, 2.46 GHz boost, 272 GB/s) and "
            "Ada GPU Architecture whitepaper: dense tensor-core rates against float32 are 1 for "
            "tf32, 2 for float16 with float32 accumulation, 8 for int8; float64 is 1/64"
        ),
        details={"compute_capability": "8.9", "pcie_generation": 4, "pcie_width": 8},
    )
    pcie = Link(
        "cpu:0",
        "cuda:0",
        latency_ns=10_000,
        bytes_per_ns=15.75,
        memory="pinned",
        source="PCI Express 4.0 x8: 16 GT/s x 8 lanes x 128/130 / 8 = 15.75 GB/s each way",
    )
    return machine("desktop", "AMD Ryzen 9 7950X, 32 GiB", [cpu, card], [pcie])


def server() -> Table:
    """Describe a 96-core server with two data-centre cards joined by NVLink."""
    cpu = chip(
        "AMD EPYC 9654",
        "cpu:0",
        memory_gib=768,
        flops=cpu_flops(96, 2.4),
        gb_per_s=460.8,
        launch_ns=1_000,
        source=(
            "AMD EPYC 9654 product page: 96 cores, 2.4 GHz base, twelve channels of DDR5-4800, "
            "460.8 GB/s; Zen 4: 32 float32 FLOP a cycle and core"
        ),
        details={"cores": 96},
    )
    cards = [
        chip(
            "NVIDIA H100 80GB HBM3",
            f"cuda:{i}",
            memory_gib=80,
            flops={
                "float32": 66_900.0,
                "tf32": 494_700.0,
                "float16": 989_400.0,
                "bfloat16": 989_400.0,
                "float64": 66_900.0,
                "int8": 1_978_900.0,
            },
            gb_per_s=3_350.0,
            launch_ns=5_000,
            source=(
                "NVIDIA H100 Tensor Core GPU Architecture whitepaper and H100 datasheet, SXM5 "
                "column: dense tensor-core rates (float64 as well), 3.35 TB/s"
            ),
            details={"compute_capability": "9.0", "pcie_generation": 5, "pcie_width": 16},
        )
        for i in range(2)
    ]
    pcie = [
        Link(
            "cpu:0",
            f"cuda:{i}",
            latency_ns=10_000,
            bytes_per_ns=63.0,
            memory="pinned",
            source="PCI Express 5.0 x16: 32 GT/s x 16 lanes x 128/130 / 8 = 63 GB/s each way",
        )
        for i in range(2)
    ]
    nvlink = Link(
        "cuda:0",
        "cuda:1",
        latency_ns=10_000,
        bytes_per_ns=450.0,
        memory="peer",
        source="NVIDIA H100 datasheet: fourth-generation NVLink, 900 GB/s, half of it each way",
    )
    return machine("server", "AMD EPYC 9654, 768 GiB", [cpu, *cards], [*pcie, nvlink])


def laptop() -> Table:
    """Describe a laptop whose graphics unit works in the CPU's memory."""
    cpu = chip(
        "AMD Ryzen 7 7840U",
        "cpu:0",
        memory_gib=32,
        flops=cpu_flops(8, 3.3),
        gb_per_s=120.0,
        launch_ns=1_000,
        source=(
            "AMD Ryzen 7 7840U product page: 8 cores, 3.3 GHz base, LPDDR5X-7500 on a 128-bit bus "
            "(16 B x 7.5 GT/s); Zen 4: 32 float32 FLOP a cycle and core"
        ),
        details={"cores": 8},
    )
    graphics = chip(
        "AMD Radeon 780M",
        "opencl:0",
        memory_gib=16,
        flops={
            "float32": 12 * 256 * 2.7,
            "float16": 12 * 512 * 2.7,
            "float64": 12 * 8 * 2.7,
            "int8": 12 * 512 * 2.7,
        },
        gb_per_s=120.0,
        launch_ns=10_000,
        source=(
            "AMD Ryzen 7 7840U product page: Radeon 780M, 12 compute units, 2.7 GHz, the CPU's own "
            "memory; RDNA 3 instruction set guide: per unit and cycle 256 float32 (dual issue), "
            "512 float16 or int8 (matrix) and 8 float64 operations"
        ),
        unified=True,
    )
    memory = Link(
        "cpu:0",
        "opencl:0",
        latency_ns=2_000,
        bytes_per_ns=60.0,
        memory="shared",
        source="a copy reads and writes the one memory: half of its 120 GB/s",
    )
    return machine("laptop", "AMD Ryzen 7 7840U, 32 GiB", [cpu, graphics], [memory])


def main() -> None:
    """Write the three files beside this one."""
    folder = Path(__file__).parent
    for name, table in (("desktop", desktop()), ("server", server()), ("laptop", laptop())):
        (folder / f"{name}.json").write_bytes(encode_table(table))


if __name__ == "__main__":
    main()
