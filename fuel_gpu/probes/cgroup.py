"""The processor time and memory that Linux control groups leave to this process (v1 and v2)."""

from collections.abc import Iterator
from pathlib import Path


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Processors' worth of time that the control groups allow; None if they set no limit.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are mounted.
    """
    quotas = []
    for folder in _folders(root, "cpu"):
        words = _read(folder / "cpu.max").split()  # v2: "quota period"
        if not words:
            words = [
                _read(folder / "cpu.cfs_quota_us").strip(),
                _read(folder / "cpu.cfs_period_us").strip(),
            ]
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def cpu_periods(root: Path = Path("/")) -> tuple[int, int] | None:
    """Count the scheduler's periods so far, and those in which a quota made a group wait.

    Of the group that waited most; None where none counts them.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are mounted.
    """
    counts = []
    for folder in _folders(root, "cpu"):
        words = dict(line.split() for line in _read(folder / "cpu.stat").splitlines())
        if "nr_periods" in words and "nr_throttled" in words:
            counts.append((int(words["nr_periods"]), int(words["nr_throttled"])))
    return max(counts, key=lambda count: count[1], default=None)


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Bytes that the control groups allow; None if they set no limit.

    Version 1 states "no limit" as a number near 2**63: compare with the machine's memory.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are mounted.
    """
    limits = []
    for folder in _folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            word = _read(folder / name).strip()
            if word.isdecimal():
                limits.append(int(word))
    return min(limits, default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Give the folders whose limits bind this process: its group's and all of its ancestors'.

    In a container the group's path may be the host's, and the container's own group be mounted at
    the top: folders that do not exist are given too, and read as empty.
    """
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top = mount
        elif controller in controllers.split(","):
            top = mount / controller
        else:
            continue
        group = top / path.lstrip("/")
        while group != top:
            yield group
            group = group.parent
        yield top


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
