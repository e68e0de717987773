"""Number of processors that this process may use, which in a container is less than the machine has."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cpus(cgroup: Path = _CGROUP) -> int:
    """Whole processors, at least one: the affinity of this process, or its control group's quota if less."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity, int(_quota(cgroup) or affinity)))


def _quota(cgroup: Path) -> float | None:
    """Processors by cgroup v2 (`cpu.max`) or v1 (`cpu/cpu.cfs_quota_us`); None without a readable limit.

    https://docs.kernel.org/admin-guide/cgroup-v2.html, read 2026-11-22
    """
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None
