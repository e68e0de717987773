"""How much the server takes in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import Overloaded
from coldframe.server.intake import Intake


def room(requests: int = 2, total_bytes: int = 100, wait_s: float = 2.5) -> Intake:
    return Intake(requests, total_bytes, lambda requests, total: None, lambda: wait_s)


def test_a_full_room_says_when_to_come_again() -> None:
    """No place for a third request: the refusal has the expected wait, in whole seconds."""
    full = room()
    with full.request(), full.request(), pytest.raises(Overloaded) as caught, full.request():
        pass
    assert caught.value.headers == {"retry-after": "3"}
    assert full.requests == 0


@given(st.lists(st.lists(st.integers(0, 60), max_size=4), max_size=6))
def test_what_is_taken_is_given_back(bodies: list[list[int]]) -> None:
    """Whatever requests come, and whichever are refused on the way: nothing stays taken, nothing exceeds."""
    found = room(requests=3)

    def enter(rest: list[list[int]]) -> None:
        if not rest:
            return
        try:
            with found.request() as place:
                for count in rest[0]:
                    place.add(count)
                assert found.bytes <= 100 and found.requests <= 3
                enter(rest[1:])
        except Overloaded:
            pass

    enter(bodies)
    assert (found.requests, found.bytes) == (0, 0)
