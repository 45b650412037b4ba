"""What a device's sittings say together: each a fresh process that measures the same again."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from fuel_gpu.calibration.effort import Effort
from fuel_gpu.calibration.figures import Figure, figure, joint_conditions, node_stream, rate_of
from fuel_gpu.calibration.neighbours import complaint
from fuel_gpu.calibration.records import (
    Agenda,
    CopyMeasured,
    Doing,
    DuplexMeasured,
    Finished,
    Note,
    OthersBusy,
    Quantity,
    RateMeasured,
    Record,
    Request,
    Swept,
    Wrong,
)
from fuel_gpu.calibration.sampling import FEWEST_FOR_INTERVAL
from fuel_gpu.calibration.table import Conditions, NodeStream, Rate

_UNSETTLED: Final = "unsettled"

Path = tuple[str, str, str]
"""A copy's source, destination and kind of host memory."""

K = TypeVar("K")
R = TypeVar("R")


class Sittings:
    """The sittings of one request so far, and their records joined.

    Parameters
    ----------
    request
        What the first sitting is asked for.
    effort
        How exact is exact enough.
    count
        How many sittings there are to be at most.
    """

    def __init__(self, request: Request, effort: Effort, count: int) -> None:
        self.device = request.device
        self.ended = 0
        self.failed = False
        self._asked, self._effort, self._count = request, effort, count
        self._copies: dict[tuple[Path, int], dict[int, CopyMeasured]] = {}
        self._conditions: dict[Path, dict[int, Conditions | None]] = {}
        self._swept: dict[Path, Swept] = {}
        self._rates: dict[str, dict[int, RateMeasured]] = {}
        self._duplex: dict[str, dict[int, DuplexMeasured]] = {}
        self._wrong: set[tuple[Quantity, str]] = set()
        self._flags: dict[object, tuple[str, ...]] = {}
        self._busy_cores: list[float] = []

    @property
    def request(self) -> Request:
        """What to ask the next sitting for."""
        if self.ended == 0:
            return self._asked
        return msgspec.structs.replace(self._asked, agenda=self._agenda())

    @property
    def over(self) -> bool:
        """Whether no more is to be measured: all sittings ended, one failed, or all is settled."""
        return self.failed or self.ended == self._count or self._settled()

    def end(self, *, whole: bool) -> None:
        """Take it that a sitting ended; one that is not whole is the last."""
        self.ended += 1
        self.failed = not whole

    def spent(self, of_sitting: float) -> float:
        """Which share of all sittings' time is spent when this much of the one under way is."""
        seconds = [self._effort.sitting_s(first=index == 0) for index in range(self._count)]
        return (sum(seconds[: self.ended]) + of_sitting * seconds[self.ended]) / sum(seconds)

    def joined(self, record: Record) -> Iterator[Record]:
        """Join a record of the sitting under way with the earlier ones' of the same figure.

        None of them ends what it belongs to: what does is held back until all sittings are over.
        """
        match record:
            case CopyMeasured():
                path = (record.src, record.dst, record.memory)
                self._copies.setdefault((path, record.point.bytes), {})[self.ended] = record
                self._conditions.setdefault(path, {})[self.ended] = record.conditions
                yield self._joined_copy(path, record)
            case Swept():
                self._swept[record.src, record.dst, record.memory] = record
            case RateMeasured():
                dtype = record.rate.dtype
                self._rates.setdefault(dtype, {})[self.ended] = record
                yield self._joined_rate(dtype, whole=False)
            case DuplexMeasured():
                memory = record.duplex.memory
                self._duplex.setdefault(memory, {})[self.ended] = record
                if ("duplex", memory) not in self._wrong:
                    yield self._joined_duplex(memory)
            case Wrong():
                self._wrong.add((record.quantity, record.of))
                self._flags.pop((record.quantity, record.of), None)
                if record.quantity == "duplex":
                    yield record
                elif record.of in self._rates:
                    yield self._joined_rate(record.of, whole=False)
            case OthersBusy():
                self._busy_cores.append(record.cores)
            case Doing() | Note() | Finished():
                yield record

    def closing(self) -> Iterator[Record]:
        """Give what was held back: which figures are whole, and whether the machine was quiet."""
        yield from self._swept.values()
        for dtype, by_sitting in self._rates.items():
            if any(one.whole for one in by_sitting.values()):
                yield self._joined_rate(dtype, whole=True)
        if self._busy_cores:
            text = complaint(sum(self._busy_cores) / len(self._busy_cores))
            if text:
                yield Note(text=text)

    def _settled(self) -> bool:
        return self.ended >= FEWEST_FOR_INTERVAL and not any(
            _UNSETTLED in flags for flags in self._flags.values()
        )

    def _agenda(self) -> Agenda:
        sizes: dict[str, set[int]] = {}
        for (_, _, memory), size in self._copies:
            sizes.setdefault(memory, set()).add(size)
        first = {dtype: by_sitting[min(by_sitting)] for dtype, by_sitting in self._rates.items()}
        return Agenda(
            copy_sizes_bytes={memory: tuple(sorted(of)) for memory, of in sizes.items()},
            duplex=tuple(self._right("duplex", self._duplex)),
            products={d: c for d in self._right("flops", first) if (c := first[d].product)},
            streams={d: c for d in self._right("bytes", first) if (c := first[d].stream)},
            noded="".join(d for d in self._right("nodes", first) if first[d].rate.nodes),
        )

    def _right(self, quantity: Quantity, of: Iterable[str]) -> list[str]:
        return [one for one in of if (quantity, one) not in self._wrong]

    def _joined_copy(self, path: Path, record: CopyMeasured) -> CopyMeasured:
        size = record.point.bytes
        taken = in_order(self._copies[path, size])
        found = figure([one.point.samples for one in taken], width=self._effort.width)
        self._flags[path, size] = found.flags
        low, high = found.summary.interval
        point = msgspec.structs.replace(
            record.point,
            ns=round(found.summary.value),
            samples=tuple(ns for one in taken for ns in one.point.samples),
            interval=(round(low), round(high)),
            flags=found.flags,
        )
        conditions = joint_conditions(in_order(self._conditions[path]))
        return msgspec.structs.replace(record, point=point, conditions=conditions)

    def _joined_duplex(self, memory: str) -> DuplexMeasured:
        taken = [one.duplex for one in in_order(self._duplex[memory])]
        found = figure(
            [one.samples for one in taken],
            width=self._effort.width,
            conditions=joint_conditions(one.conditions for one in taken),
        )
        self._flags["duplex", memory] = found.flags
        duplex = msgspec.structs.replace(
            taken[-1],
            bytes_per_ns=found.summary.value,
            samples=found.samples,
            interval=found.summary.interval,
            flags=found.flags,
            conditions=found.conditions,
        )
        return DuplexMeasured(duplex=duplex)

    def _joined_rate(self, dtype: str, *, whole: bool) -> RateMeasured:
        taken = in_order(self._rates[dtype])
        rates = [one.rate for one in taken]
        launch = self._figure("launch", dtype, [
            (r.launch_samples, "", r.launch_conditions) for r in rates
        ])
        flops = self._figure("flops", dtype, [
            (r.flops_samples, r.flops_kernel, r.flops_conditions) for r in rates
        ])
        moved = self._figure("bytes", dtype, [
            (r.bytes_samples, r.bytes_kernel, r.bytes_conditions) for r in rates
        ])
        assert launch is not None  # no rate is made without one
        rate = rate_of(self.device.id, dtype, launch, flops, moved)
        nodes = () if ("nodes", dtype) in self._wrong else self._joined_nodes(rates)
        rate = msgspec.structs.replace(rate, nodes=nodes, measured=rates[-1].measured)
        return RateMeasured(rate=rate, whole=whole)

    def _figure(
        self,
        name: str,
        dtype: str,
        parts: list[tuple[tuple[float, ...], str, Conditions | None]],
    ) -> Figure | None:
        """Join one figure of those sittings that have it; None if none has, or it was wrong."""
        taken = [part for part in parts if part[0]]
        if not taken or (name, dtype) in self._wrong:
            return None
        found = figure(
            [samples for samples, _, _ in taken],
            width=self._effort.width,
            kernel=taken[0][1],
            conditions=joint_conditions(conditions for _, _, conditions in taken),
        )
        self._flags[name, dtype] = found.flags
        return found

    def _joined_nodes(self, rates: list[Rate]) -> tuple[NodeStream, ...]:
        by_node: dict[int, list[NodeStream]] = {}
        for rate in rates:
            for node in rate.nodes:
                by_node.setdefault(node.node, []).append(node)
        made = []
        for number, taken in by_node.items():
            found = figure([one.samples for one in taken], width=self._effort.width)
            self._flags["node", number] = found.flags
            made.append(node_stream(number, taken[0].cpus, found))
        return tuple(made)


def in_order(by_sitting: dict[int, R]) -> list[R]:
    """Give what each sitting found, the first sitting's in front."""
    return [by_sitting[index] for index in sorted(by_sitting)]
