"""Callers who leave before, while and after somebody works for them."""

import threading

from coldframe.scheduling.caller import Caller


def test_work_ends_when_the_caller_leaves() -> None:
    """What was to happen happens once for each leave, and not after the work is done."""
    caller, calls = Caller(), []
    caller.when_leaving(lambda: calls.append("left"))
    assert not caller.has_left
    caller.leave()
    assert caller.has_left
    assert calls == ["left"]
    caller.when_leaving(None)
    caller.leave()
    assert calls == ["left"]


def test_a_caller_who_left_before() -> None:
    """Work that begins too late is told at once."""
    caller, calls = Caller(), []
    caller.leave()
    caller.when_leaving(lambda: calls.append("left"))
    assert calls == ["left"]


def test_leaving_is_never_lost() -> None:
    """Of a caller who leaves at the moment when work begins, the work is told in any order."""
    for _ in range(500):
        caller, told, together = Caller(), threading.Event(), threading.Barrier(2)

        def leave(caller: Caller = caller, together: threading.Barrier = together) -> None:
            together.wait()
            caller.leave()

        thread = threading.Thread(target=leave)
        thread.start()
        together.wait()
        caller.when_leaving(told.set)
        thread.join()
        assert told.is_set()
