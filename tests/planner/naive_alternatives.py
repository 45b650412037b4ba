"""The plainest possible ranking and retention: loops over lists, nothing shared with the package.

A row is ``(time, host_bytes, device_bytes, digits, accuracy, device, backend)``. Results are
indices into the rows.
"""

from collections.abc import Callable, Sequence

Row = tuple[int, int, int, int, int, int, int]

U64_MAX = 2**64 - 1
_AXES: tuple[Callable[[Row], float], ...] = (
    lambda row: float(row[0]),
    lambda row: float(row[1]),
    lambda row: float(row[2]),
    lambda row: float(row[3]),
    lambda row: float(row[4]),
)


def order_key(row: Row) -> tuple[int, int, int, int]:
    """Time, higher precision, higher accuracy, lower total memory."""
    return (row[0], -row[3], -row[4], min(row[1] + row[2], U64_MAX))


def dominates(a: Row, b: Row) -> bool:
    """No worse everywhere, better somewhere."""
    no_worse = a[0] <= b[0] and a[1] <= b[1] and a[2] <= b[2] and a[3] >= b[3] and a[4] >= b[4]
    better = a[0] < b[0] or a[1] < b[1] or a[2] < b[2] or a[3] > b[3] or a[4] > b[4]
    return no_worse and better


def rank(rows: Sequence[Row]) -> list[int]:
    """Give the indices in ranked order; equal keys keep their order."""
    return sorted(range(len(rows)), key=lambda i: order_key(rows[i]))


def retain(rows: Sequence[Row], keep: int) -> list[int]:
    """Give the indices that stay, ascending; row 0 counts as the winner."""
    keep = max(keep, 1)
    if not rows:
        return []
    buckets: list[tuple[int, list[int]]] = []
    for i, row in enumerate(rows):
        for device, members in buckets:
            if device == row[5]:
                members.append(i)
                break
        else:
            buckets.append((row[5], [i]))
    kept: list[int] = []
    for device, members in buckets:
        frontier = [
            i for i in members if not any(j != i and dominates(rows[j], rows[i]) for j in members)
        ]
        backends: list[int] = []
        for i in members:
            if rows[i][6] not in backends:
                backends.append(rows[i][6])
        for backend in backends:
            if not any(rows[i][6] == backend for i in frontier):
                of_backend = [i for i in members if rows[i][6] == backend]
                frontier.append(min(of_backend, key=lambda i: order_key(rows[i])))
        if device == rows[0][5] and 0 not in frontier:
            frontier.append(0)
        points = [[axis(rows[i]) for axis in _AXES] for i in frontier]
        labels = [rows[i][6] for i in frontier]
        stays = crowding(points, labels, [i == 0 for i in frontier], keep)
        kept.extend(frontier[position] for position in stays)
    return sorted(set(kept))


def rank_and_retain(rows: Sequence[Row], keep: int) -> list[int]:
    """Rank, retain, rank again: indices into `rows`, the winner first."""
    order = rank(rows)
    ranked = [rows[i] for i in order]
    kept = [order[i] for i in retain(ranked, keep)]
    return [kept[i] for i in rank([rows[i] for i in kept])]


def crowding(
    points: Sequence[Sequence[float]],
    labels: Sequence[int],
    protected: Sequence[bool],
    keep: int,
) -> list[int]:
    """Positions that survive dropping the most crowded point, one at a time."""
    alive = list(range(len(points)))
    while len(alive) > keep:
        distance = distances([points[i] for i in alive])
        victim = None
        for position, i in enumerate(alive):
            if protected[i] or sum(labels[j] == labels[i] for j in alive) <= 1:
                continue
            if victim is None or distance[position] < distance[victim]:
                victim = position
        if victim is None:
            break
        del alive[victim]
    return alive


def distances(points: Sequence[Sequence[float]]) -> list[float]:
    """Crowding distance of each point: the sum over the axes of its neighbours' gap."""
    m = len(points)
    infinity = float("inf")
    if m <= 2:
        return [infinity] * m
    distance = [0.0] * m
    for axis in range(len(points[0])):
        order = sorted(range(m), key=lambda i: points[i][axis])
        spread = points[order[-1]][axis] - points[order[0]][axis]
        distance[order[0]] = infinity
        distance[order[-1]] = infinity
        if spread <= 0.0:
            continue
        for k in range(1, m - 1):
            gap = points[order[k + 1]][axis] - points[order[k - 1]][axis]
            distance[order[k]] += gap / spread
    return distance
