"""How many processors a process may use."""

from pathlib import Path

import pytest

from coldframe.cpus import usable_cpus


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "150000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
    ids=["half", "one and a half", "version 1"],
)
def test_a_quota_is_what_may_be_used(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    """Whole processors of a control group, at least one."""
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert usable_cpus(tmp_path) == expected


@pytest.mark.parametrize("files", [{}, {"cpu.max": "max 100000\n"}, {"cpu.max": "garbage"}], ids=str)
def test_without_a_quota_the_machine_is_what_may_be_used(tmp_path: Path, files: dict[str, str]) -> None:
    """No file, no limit, or nothing that can be read: what the process may run on."""
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert usable_cpus(tmp_path) == usable_cpus(tmp_path / "nothing") >= 1
