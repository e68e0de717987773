"""Log groups: lines in order, by their moment, and the oldest ones forgotten."""

from __future__ import annotations

import itertools
import resource
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from coldframe_local.emulator.lambda_service.telemetry import log_groups
from coldframe_local.emulator.lambda_service.telemetry.log_groups import LogGroups


@pytest.fixture
def groups() -> Iterator[LogGroups]:
    """Groups of small files; each line comes a second after the one before it."""
    seconds = itertools.count(1)
    with closing(LogGroups(lambda: float(next(seconds)), file_bytes=1000)) as groups:
        yield groups


def messages(groups: LogGroups, start_ms: int = 0, end_ms: int = 2**62) -> list[str]:
    return [event.message for event in groups.events("group", start_ms, end_ms)]


def test_lines_are_read_by_their_moment(groups: LogGroups) -> None:
    """Both ends belong to the time; numbers grow; a line may hold anything, line feeds included."""
    for message in ("first", "second\nline", "\ud800 third"):
        groups.add("group", message)
    assert messages(groups) == ["first", "second\nline", "\ud800 third"]
    assert messages(groups, 2000, 2000) == ["second\nline"]
    assert [event.number for event in groups.events("group", 0, 9000)] == [1, 2, 3]
    assert messages(groups) == ["first", "second\nline", "\ud800 third"]


def test_a_group_without_lines_is_there_once_it_is_created(groups: LogGroups) -> None:
    """Other names are no groups."""
    groups.create("group")
    assert "group" in groups
    assert "other" not in groups
    assert messages(groups) == []


def test_the_oldest_lines_leave(groups: LogGroups) -> None:
    """A group keeps its latest lines in order: at most two files of them, and at least one."""
    for number in range(500):
        groups.add("group", f"line {number:03}")
    kept = messages(groups)
    assert kept == [f"line {number:03}" for number in range(500 - len(kept), 500)]
    assert 1000 <= len(kept) * len('[500, 500000, "line 499"]\n') <= 2000


def test_a_full_disk_loses_lines_and_nothing_else(groups: LogGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier lines stay, and those that come once there is room again."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    groups.add("group", "kept" * 245)
    with monkeypatch.context() as disk:
        disk.setattr(log_groups, "TemporaryFile", full)
        groups.add("group", "lost")
    groups.add("group", "later")
    assert messages(groups) == ["kept" * 245, "later"]


def test_a_line_is_whole_or_absent(groups: LogGroups) -> None:
    """A disk that takes half a line: the file goes on after the line before it."""
    groups.add("group", "kept")
    with limited_files(60):
        groups.add("group", "lost" * 20)
    groups.add("group", "later")
    assert messages(groups) == ["kept", "later"]


@contextmanager
def limited_files(size_bytes: int) -> Iterator[None]:
    """No file of this process grows beyond a size: the system writes what fits, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
