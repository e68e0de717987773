"""The states of a job and of its parts: pure rules, which every store keeps.

A job is `queued` until its first part is recorded or sent from its source, then `running`. It ends once, as
`done`, `failed` or `cancelled`, and then never changes: messages are delivered more than once, and late.
"""

from enum import StrEnum


class State(StrEnum):
    """State of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self in _ENDED


class Event(StrEnum):
    """Change of a job."""

    PROGRESS = "progress"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"


_ENDED = frozenset({State.DONE, State.FAILED, State.CANCELLED})
_TARGETS = {
    Event.PROGRESS: State.RUNNING,
    Event.FINISH: State.DONE,
    Event.FAIL: State.FAILED,
    Event.CANCEL: State.CANCELLED,
}
_ALLOWED = {
    Event.PROGRESS: frozenset({State.QUEUED, State.RUNNING}),
    Event.FINISH: frozenset({State.RUNNING}),
    Event.FAIL: frozenset({State.QUEUED, State.RUNNING}),
    Event.CANCEL: frozenset({State.QUEUED, State.RUNNING}),
}


def states_before(event: Event) -> frozenset[State]:
    """States in which an event changes something: the condition of a store's write."""
    return _ALLOWED[event]


def state_after(event: Event) -> State:
    """The state that an event leads to."""
    return _TARGETS[event]


def step(state: State, event: Event) -> State:
    """The state after an event; unchanged if the event comes too late or too early."""
    return _TARGETS[event] if state in _ALLOWED[event] else state
