"""State of the server: loading, ready, leaving. One owner changes it, other parts read it."""

from enum import Enum


class State(Enum):
    """LOADING  It listens, and answers that it lives. Every golden vector passes -> READY; a signal ->
    REFUSING
    READY    Every request is accepted. A signal -> LEAVING
    LEAVING  Readiness is false, so clients stop sending; requests are accepted. Notice is over -> REFUSING
    REFUSING Requests are refused. Earlier ones are answered, then the process ends.
    """

    LOADING = "loading"
    READY = "ready"
    LEAVING = "leaving"
    REFUSING = "refusing"


class Lifecycle:
    """The state of one server. Only the event loop's thread changes it; any thread may ask."""

    def __init__(self) -> None:
        self.state = State.LOADING

    @property
    def is_ready(self) -> bool:
        """Answer to a readiness check."""
        return self.state is State.READY

    @property
    def accepts(self) -> bool:
        """Whether a new request is answered by a model."""
        return self.state in (State.READY, State.LEAVING)

    def loaded(self) -> None:
        """Models are loaded and checked. A server that is leaving stays in its state."""
        if self.state is State.LOADING:
            self.state = State.READY

    def leave(self) -> None:
        """A signal has arrived."""
        self.state = State.LEAVING if self.accepts else State.REFUSING

    def refuse(self) -> None:
        """The notice is over."""
        self.state = State.REFUSING
