"""AWS clients for the cache, and the meaning of their errors. boto3 is imported at its first use."""

import threading
from typing import Any

from msgspec import Struct

_CLOSED_BY_PEER = frozenset({"ConnectionClosedError"})
_BUSY = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingException",
    }
)
_PERMANENT = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "ModuleNotFoundError",
        "NoCredentialsError",
        "NoRegionError",
        "NoSuchBucket",
        "PartialCredentialsError",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
        "ValidationException",
    }
)
_MISSING = frozenset({"NoSuchKey", "AccessDenied"})
_GARBAGE = "GarbageAnswer"
_CONNECTIONS = 16  # kept open; created as threads need them, and one thread needs one


class Failure(Struct, frozen=True):
    """Reason why a call failed: the service's error code, or the type of the exception. Never its message."""

    name: str

    @property
    def may_repeat(self) -> bool:
        """The same call may succeed after a pause."""
        return self.name in _BUSY or self.name in _CLOSED_BY_PEER

    @property
    def permanent(self) -> bool:
        """The call fails until somebody changes something."""
        return self.name in _PERMANENT

    @property
    def missing(self) -> bool:
        """The object does not exist; S3 says so only to callers that may list the bucket."""
        return self.name in _MISSING


GARBAGE = Failure(_GARBAGE)
"""The answer does not have the form that the service documents."""

OUT_OF_TIME = Failure("DeadlineExceeded")
"""Some items were not answered before the deadline."""


def failure_of(exc: Exception) -> Failure:
    """The failure that an exception of a client, or of its creation, stands for."""
    response = getattr(exc, "response", None)
    if isinstance(response, dict):
        error = response.get("Error")
        code = error.get("Code") if isinstance(error, dict) else None
        # A code is a word. Anything longer is an answer that botocore did not understand.
        return Failure(code) if isinstance(code, str) and code.isalnum() and len(code) < 64 else GARBAGE
    return Failure(type(exc).__name__)


class AwsClients:
    """AWS clients by service name, created at their first use, with connections that keep the deadline.

    boto3 finds endpoints, region and credentials.
    Safe for threads: a lock guards creation, because a session is not safe for threads. A client is.
    https://github.com/boto/boto3/issues/1592, read 2026-11-21
    """

    def __init__(self, timeout_s: float) -> None:
        """timeout_s: limit of calls without a deadline, such as those to the metadata service for
        credentials.
        """
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._session: Any = None
        self._loader: Any = None
        self._clients: dict[str, Any] = {}

    def has(self, service: str) -> bool:
        """Whether `get` returns at once."""
        return service in self._clients

    def get(self, service: str) -> Any:
        """The client of `dynamodb` or `s3`. Imports boto3: hundreds of milliseconds when it is cold."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def close(self) -> None:
        """Closes all connections and forgets all credentials; `get` creates new clients, quicker than
        before.
        """
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            self._session = None

    def _make(self, service: str) -> Any:
        import botocore.session
        from boto3.session import Session
        from botocore.config import Config

        from coldframe.cache.deadline_http import enforce_deadlines

        if self._session is None:
            session = botocore.session.get_session()
            # The descriptions of the services take most of the time: the new session reuses them.
            self._loader = self._loader or session.get_component("data_loader")
            session.register_component("data_loader", self._loader)
            # Lambda has credentials in its environment. Elsewhere, nobody waits for a metadata service that
            # does not exist.
            session.set_config_variable("metadata_service_timeout", self._timeout_s)
            session.set_config_variable("metadata_service_num_attempts", 1)
            self._session = Session(botocore_session=session)
        client = self._session.client(
            service,
            config=Config(
                connect_timeout=self._timeout_s,
                read_timeout=self._timeout_s,
                retries={
                    "total_max_attempts": 1,
                    "mode": "standard",
                },  # the store retries, and knows the deadline
                max_pool_connections=_CONNECTIONS,
                parameter_validation=False,
                request_checksum_calculation="when_required",  # values have a checksum of their own
                response_checksum_validation="when_required",
            ),
        )
        enforce_deadlines(client)
        return client
