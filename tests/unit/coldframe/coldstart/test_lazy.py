"""Values made once, in the background or by whoever comes first."""

import sys
import threading
from collections.abc import Iterator

import pytest

from coldframe.coldstart.lazy import LazyValue


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
    value = LazyValue(lambda: next(numbers))
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

    value = LazyValue(make)
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

        value = LazyValue(make)
        got: list[dict[int, int]] = []
        threads = [threading.Thread(target=lambda v=value, g=got: g.append(v.get())) for _ in range(8)]
        value.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1
        assert [len(each) for each in got] == [100] * 8


def test_failure_is_told_and_tried_again() -> None:
    """What goes wrong, in a thread too, is raised for who needs the value; the next one tries again."""
    tried: list[int] = []

    def make() -> str:
        tried.append(1)
        if len(tried) < 3:
            raise ValueError("not yet")
        return "made"

    value = LazyValue(make)
    value.start()
    while not tried:  # the thread's attempt
        threading.Event().wait(0.001)
    with pytest.raises(ValueError, match="not yet"):
        value.get()
    assert not value.is_made
    assert (value.get(), value.get()) == ("made", "made")
    assert len(tried) == 3


def test_attempts_are_bounded() -> None:
    """What fails three times fails for good: nobody pays for a fourth attempt, and all are told why."""
    tried: list[int] = []

    def make() -> str:
        tried.append(1)
        raise ValueError(f"broken {len(tried)}")

    value = LazyValue(make)
    for attempt in (1, 2, 3, 3, 3):
        with pytest.raises(ValueError, match=f"broken {attempt}"):
            value.get()
    value.start()
    assert len(tried) == 3


@pytest.mark.usefixtures("restless_threads")
def test_who_waited_for_a_failed_attempt_makes_another() -> None:
    """A request that was waiting when an attempt failed gets the value of the next attempt."""
    for _ in range(20):
        tried: list[int] = []

        def make(tried: list[int] = tried) -> str:
            tried.append(1)
            if len(tried) == 1:
                raise ValueError("not yet")
            return "made"

        value = LazyValue(make)
        got: list[str] = []

        def need(value: LazyValue[str] = value, got: list[str] = got) -> None:
            try:
                got.append(value.get())
            except ValueError as exc:
                got.append(str(exc))

        threads = [threading.Thread(target=need) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == ["made"] * 7 + ["not yet"]
        assert len(tried) == 2
