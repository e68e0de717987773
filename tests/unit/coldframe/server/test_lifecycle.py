"""What the server is doing."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe.server.lifecycle import Lifecycle, State


def test_a_life() -> None:
    """Loading, ready, leaving, refusing: readiness turns first, then nothing is accepted."""
    life = Lifecycle()
    seen = [(life.is_ready, life.accepts)]
    for step in (life.loaded, life.leave, life.refuse):
        step()
        seen.append((life.is_ready, life.accepts))
    assert seen == [(False, False), (True, True), (False, True), (False, False)]


def test_leaving_before_it_is_ready() -> None:
    """A signal while it loads: nobody is ever accepted, also when loading ends."""
    life = Lifecycle()
    life.leave()
    life.loaded()
    assert life.state is State.REFUSING


@given(st.lists(st.sampled_from(["loaded", "leave", "refuse"]), max_size=8))
def test_nothing_leads_back(steps: list[str]) -> None:
    """After a signal the server is never ready again; after refusing it accepts nothing."""
    life, has_left, has_refused = Lifecycle(), False, False
    for step in steps:
        getattr(life, step)()
        has_left, has_refused = has_left or step != "loaded", has_refused or step == "refuse"
        assert not (has_left and life.is_ready)
        assert not (has_refused and life.accepts)
