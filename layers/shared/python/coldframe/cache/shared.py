"""The shared cache: queried when it pays, never waited for past its deadline, never an error."""

import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from coldframe.cache.aws_clients import AwsClients, Failure
from coldframe.cache.dynamodb_store import GET_KEYS, ITEM_LIMIT_BYTES, DynamoDbStore, Item, item_bytes
from coldframe.cache.policy import Breaker, BreakerState, Costs, Policy
from coldframe.cache.s3_store import S3Store
from coldframe.cache.values import CorruptValue, Kind, Shapes, decode, encode, encode_pointer, pointed_size
from coldframe.config import Settings
from coldframe.timing import Clock, Deadline, MovingAverage

_NO_KEY = bytes(16)
_CONNECT_S = 2.0


class Found(Struct):
    """Payloads by key, counts of expired and corrupt values, and failures."""

    payloads: dict[bytes, bytes] = field(default_factory=dict)
    was_queried: bool = False
    expired: int = 0
    corrupt: int = 0
    failures: list[str] = field(default_factory=list)
    """Names of errors, for the log."""


class Saved(Struct, frozen=True):
    """Number of values written, number of values to write, and the error that stopped the rest."""

    values: int
    of: int
    failure: str | None = None


class SharedCache:
    """The table and the bucket, behind a policy, a deadline and two circuit breakers.

    Safe for threads: breakers, costs and clients are, and all other state belongs to one call.
    """

    def __init__(
        self,
        table: DynamoDbStore,
        bucket: S3Store | None,
        costs: Costs,
        policy: Policy,
        deadline_s: float,
        ttl_s: int,
        item_limit_bytes: int = ITEM_LIMIT_BYTES,
        clock: Clock = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """now: clock of the time of day, in seconds."""
        self._table = table
        self._bucket = bucket
        self.costs = costs
        self._policy = policy
        self._deadline_s = deadline_s
        self._ttl_s = ttl_s
        self._item_limit_bytes = item_limit_bytes
        self._clock = clock
        self._now = now
        self._forget_faults()

    @property
    def breaker(self) -> BreakerState:
        """State of the table's breaker."""
        return self._breaker.state

    def set_up(self) -> None:
        """Imports boto3, creates the client and connects, ahead of traffic."""
        if self._policy is not Policy.OFF and self._set_up() is None:
            # A key that does not exist. An error now says nothing about later calls.
            self._table.get_many([_NO_KEY], Deadline(_CONNECT_S, self._clock))

    def before_snapshot(self) -> None:
        """Closes connections and forgets credentials."""
        self._table.close()

    def after_restore(self) -> None:
        """Discards measurements from before the snapshot; creates a client with new credentials."""
        self.costs.forget()
        self._forget_faults()
        if self._policy is not Policy.OFF:
            self._set_up()

    def get_many(self, kinds: Mapping[bytes, Kind], characters: Sequence[int], shapes: Shapes) -> Found:
        """Stored values that are intact and not expired.

        characters: lengths of the texts to look up. shapes: expected shapes of the values.
        """
        result = Found()
        if not kinds or not self._may_ask(kinds, characters):
            return result
        result.was_queried = True
        if failure := self._set_up():
            result.failures.append(failure.name)
            return result
        started_s = self._clock()
        deadline = Deadline(self._deadline_s, self._clock)
        read = self._table.get_many(kinds, deadline)
        self._report(self._breaker, read.failure if not read.answered_keys else None)
        self.costs.looked_up(len(kinds), (self._clock() - started_s) * 1e3)
        result.corrupt += read.foreign
        if read.failure is not None:
            result.failures.append(read.failure.name)
        now_s = self._now()
        for key, item in read.items.items():
            if item.expires_at_s <= now_s:
                result.expired += 1
            else:
                self._open(key, kinds[key], shapes, item.value, deadline, result)
        return result

    def put_many(self, values: Mapping[bytes, tuple[Kind, bytes]], time_left_s: float) -> Saved:
        """Writes what fits into the deadline and the time left; writes nothing without an earlier lookup."""
        limit_s = min(self._deadline_s, time_left_s)
        if limit_s <= 0 or not self._table.ready or not self._breaker.allow():
            return Saved(0, len(values))
        deadline = Deadline(limit_s, self._clock)
        expires_at_s = int(self._now()) + self._ttl_s
        items: dict[bytes, Item] = {}
        for key, (kind, payload) in values.items():
            item = self._item(key, Item(encode(key, kind, payload), expires_at_s), deadline)
            if item is not None:
                items[key] = item
        if not items:
            return Saved(0, len(values))
        result = self._table.put_many(items, deadline)
        self._report(self._breaker, result.failure if not result.keys else None)
        return Saved(len(result.keys), len(values), result.failure.name if result.failure else None)

    def _forget_faults(self) -> None:
        self._breaker = Breaker(self._clock)
        self._bucket_breaker = Breaker(self._clock)

    def _may_ask(self, kinds: Mapping[bytes, Kind], characters: Sequence[int]) -> bool:
        if self._policy is Policy.OFF:
            return False
        if self._policy is Policy.ADAPTIVE and not self.costs.worth_asking(
            characters, len(kinds), self._table.ready
        ):
            self.costs.skipped()
            return False
        return self._breaker.allow()

    def _set_up(self) -> Failure | None:
        failure = None if self._table.ready else self._table.set_up()
        if failure is not None:
            self._report(self._breaker, failure)
        return failure

    def _open(
        self, key: bytes, expected: Kind, shapes: Shapes, value: bytes, deadline: Deadline, result: Found
    ) -> None:
        """Puts the payload of a stored value into `result`, or counts why it is missing."""
        try:
            kind, payload = decode(key, value)
            if kind is Kind.POINTER:
                content = self._fetch(key, pointed_size(payload), deadline, result)
                if content is None:
                    return
                kind, payload = decode(key, content)
        except CorruptValue:
            result.corrupt += 1
            return
        if kind is expected and shapes.fit(kind, payload):
            result.payloads[key] = payload
        else:
            result.corrupt += 1

    def _fetch(self, key: bytes, size_bytes: int, deadline: Deadline, result: Found) -> bytes | None:
        if self._bucket is None or not self._bucket_breaker.allow():
            return None
        content = self._bucket.get(key, size_bytes, deadline)
        failure = content if isinstance(content, Failure) else None
        # A missing object does not mean that the bucket fails.
        self._report(self._bucket_breaker, failure if failure and not failure.missing else None)
        if isinstance(content, Failure):
            result.failures.append(content.name)
            return None
        return content

    def _item(self, key: bytes, item: Item, deadline: Deadline) -> Item | None:
        """The item for the table: the value itself, or a pointer to the object that holds it."""
        if item_bytes(key, item) <= self._item_limit_bytes:
            return item
        if self._bucket is None or not self._bucket_breaker.allow():
            return None
        failure = self._bucket.put(key, item.value, deadline)
        self._report(self._bucket_breaker, failure)
        return Item(encode_pointer(key, len(item.value)), item.expires_at_s) if failure is None else None

    def _report(self, breaker: Breaker, failure: Failure | None) -> None:
        if failure is None:
            breaker.success()
        else:
            breaker.failure(failure.permanent)


def make_shared_cache(settings: Settings, max_text_tokens: int, ms_per_token: MovingAverage) -> SharedCache:
    """The shared cache with the endpoints in boto3's variables. Neither imports nor calls anything yet."""
    deadline_s = settings.cache_deadline_ms / 1e3
    clients = AwsClients(deadline_s)
    return SharedCache(
        DynamoDbStore(settings.cache_table, clients),
        S3Store(settings.cache_bucket, clients) if settings.cache_bucket else None,
        Costs(max_text_tokens, GET_KEYS, ms_per_token),
        Policy(settings.cache_policy),
        deadline_s,
        settings.cache_ttl_s,
    )
