"""What the server is doing: loading, ready, leaving. One owner says so, everybody asks it."""

from enum import Enum


class State(Enum):
    """
    LOADING  It listens, and answers that it lives. Every golden vector passes -> READY; a signal -> REFUSING
    READY    Every request is accepted. A signal -> LEAVING
    LEAVING  Readiness is false, so that nobody sends more; requests are accepted. Notice is over -> REFUSING
    REFUSING No request is accepted. Those accepted before are answered, then the process ends.
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
        """What readiness answers."""
        return self.state is State.READY

    @property
    def accepts(self) -> bool:
        """Whether a request that comes now is answered by a model."""
        return self.state in (State.READY, State.LEAVING)

    def loaded(self) -> None:
        """Models are loaded and checked. A server that is leaving stays so."""
        if self.state is State.LOADING:
            self.state = State.READY

    def leave(self) -> None:
        """A signal came."""
        self.state = State.LEAVING if self.accepts else State.REFUSING

    def refuse(self) -> None:
        """The notice is over."""
        self.state = State.REFUSING
