"""Values made once, in the background or by whoever comes first."""

import sys
import threading
from collections.abc import Iterator

import pytest

from coldframe.coldstart.lazy import Background


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_made_when_first_needed() -> None:
    """Nothing is made before it is asked for, and then once."""
    numbers = iter(range(10))
    value = Background(lambda: next(numbers))
    assert not value.is_made
    assert (value.get(), value.get()) == (0, 0)
    assert value.is_made


def test_started_before_it_is_needed() -> None:
    """A thread makes it; whoever needs it meanwhile waits for that one."""
    begun, go_on = threading.Event(), threading.Event()

    def make() -> str:
        begun.set()
        go_on.wait()
        return threading.current_thread().name

    value = Background(make)
    value.start()
    value.start()
    begun.wait()
    assert not value.is_made
    go_on.set()
    assert value.get() != threading.current_thread().name


@pytest.mark.usefixtures("restless_threads")
def test_many_at_once() -> None:
    """However many threads need it at once, it is made once and all get the same, whole."""
    for _ in range(50):
        made: list[object] = []

        def make(made: list[object] = made) -> dict[int, int]:
            made.append(object())
            return {number: number for number in range(100)}

        value = Background(make)
        got: list[dict[int, int]] = []
        threads = [threading.Thread(target=lambda v=value, g=got: g.append(v.get())) for _ in range(8)]
        value.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1
        assert [len(each) for each in got] == [100] * 8


def test_failure_is_told_to_everybody() -> None:
    """What goes wrong, in a thread too, is raised for each who needs the value, and not tried again."""
    tried: list[int] = []
    failed = threading.Event()

    def make() -> str:
        tried.append(1)
        failed.set()
        raise ValueError("broken")

    value = Background(make)
    value.start()
    failed.wait()
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            value.get()
    assert tried == [1]
