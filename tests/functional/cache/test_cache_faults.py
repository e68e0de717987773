"""The shared cache over real HTTP, in front of a store that fails in every way it can.

Whatever the store does, predictions are those of no cache at all. A fault that is
not cut off by its deadline would keep these tests waiting for ever.
"""

import datetime
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import boto3
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from coldframe.api.api import Api
from coldframe.cache.aws_clients import AwsClients
from coldframe.cache.cache import PredictionCache, cache_key
from coldframe.cache.dynamodb_store import GET_KEYS, DynamoDbStore, Item, to_row
from coldframe.cache.policy import BreakerState, Costs, Policy
from coldframe.cache.s3_store import S3Store
from coldframe.cache.shared import SharedCache
from coldframe.cache.values import Kind, encode
from coldframe.config import Settings
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import MovingAverage, StartMark
from coldframe_bench.targets.faulty_server import (
    Exchange,
    Fault,
    FaultyServer,
    breaks_off,
    closed_port,
    content,
    error,
    faulty_server,
    first,
    full_backlog,
    hangs,
    hangs_up,
    processes,
    trickles,
    trickles_headers,
    works,
)
from tests.conftest import TinyEncoder, post, served, tiny_manifest, tiny_predictor
from tests.functional.conftest import BUCKET, SECRET_KEY, TABLE

pytestmark = pytest.mark.waits

VERSION = tiny_manifest().version
TEXTS = ["a first text", "another", "the third of them"]
TTL_S = 1000
PATIENT_S = 60.0  # more than any busy machine needs, where an answer comes
SHORT_S = 0.25  # where none comes


class SteppedClock:
    """The real clock, moved on by hand: cooldowns are stepped over instead of being waited for."""

    def __init__(self) -> None:
        self.offset_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.offset_s

    def step(self, seconds: float) -> None:
        self.offset_s += seconds


@dataclass
class Environments:
    """Fresh environments that share one table."""

    clock: SteppedClock = field(default_factory=SteppedClock)
    now_s: float = 1_800_000_000.0
    pauses: list[float] = field(default_factory=list)
    opened: list[AwsClients] = field(default_factory=list)
    ms_per_token: MovingAverage = field(default_factory=lambda: MovingAverage(0.1))

    def cache(
        self,
        policy: Policy = Policy.ALWAYS,
        deadline_s: float = PATIENT_S,
        l1_bytes: int = 0,
        bucket: str = BUCKET,
        **options: int,
    ) -> PredictionCache:
        clients = AwsClients(deadline_s)
        self.opened.append(clients)
        shared = SharedCache(
            DynamoDbStore(TABLE, clients, sleep=self._sleep, jitter=lambda: 1.0),
            S3Store(bucket, clients) if bucket else None,
            Costs(64, GET_KEYS, self.ms_per_token, set_up_ms=0),
            policy,
            deadline_s,
            TTL_S,
            clock=self.clock,
            now=lambda: self.now_s,
            **options,
        )
        return PredictionCache(l1_bytes, shared)

    def start(self, encoder: TinyEncoder | None = None, **options: object) -> Predictor:
        return tiny_predictor(encoder, cache=self.cache(**options))  # type: ignore[arg-type]

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.step(seconds)


@pytest.fixture
def environments(store: FaultyServer) -> Iterator[Environments]:
    made = Environments()
    yield made
    for clients in made.opened:
        clients.close()


def bits(predictor: Predictor, texts: list[str], heads: list[str]) -> dict[str, bytes]:
    """The answers, to the bit."""
    return {head: b"".join(rows) for head, rows in predictor.predict(texts, heads).answers.items()}


def expected(texts: list[str] = TEXTS, heads: tuple[str, ...] = ("first",)) -> dict[str, bytes]:
    """The answers of an environment without any cache."""
    return bits(tiny_predictor(cache_bytes=0), texts, list(heads))


def fill(environments: Environments, texts: list[str] = TEXTS, heads: tuple[str, ...] = ("first",)) -> None:
    """Predicts and saves, in an environment of its own."""
    predictor = environments.start()
    prediction = predictor.predict(texts, list(heads))
    saved = predictor.cache.save(prediction.unsaved)
    assert saved is not None
    assert saved.values == saved.of == len(texts) * (1 + len(heads))


def rows_of(texts: list[str], head: str = "first") -> list[bytes]:
    return [cache_key(VERSION, head, text) for text in texts]


def put(moto: str, key: bytes, item: Item) -> None:
    """Writes an item past our own code."""
    client = boto3.client("dynamodb", endpoint_url=moto)
    client.put_item(TableName=TABLE, Item=to_row(key, item))
    client.close()


# --- when it works --------------------------------------------------------------------


def test_shared_between_environments(store: FaultyServer, environments: Environments) -> None:
    """What one environment computed, another one reads: the same to the bit, without tokenizer or encoder."""
    fill(environments)
    encoder = TinyEncoder()
    predictor = environments.start(encoder)
    prediction = predictor.predict(TEXTS, ["first"])
    assert b"".join(prediction.answers["first"]) == expected()["first"]
    assert (encoder.tokenized, encoder.batches) == ([], [])
    usage = prediction.usage.cache
    assert (usage.l1, usage.l2, usage.embedding, usage.miss) == (0, 3, 0, 0)
    assert predictor.cache.save(prediction.unsaved) is None


def test_new_head_on_known_texts(store: FaultyServer, environments: Environments) -> None:
    """A head that was never asked works on the stored embedding: no encoding, the same bits."""
    fill(environments)
    encoder = TinyEncoder()
    predictor = environments.start(encoder)
    prediction = predictor.predict(TEXTS, ["second", "first"])
    assert encoder.batches == []
    got = {head: b"".join(rows) for head, rows in prediction.answers.items()}
    assert got == expected(heads=("second", "first"))
    usage = prediction.usage.cache
    assert (usage.l2, usage.embedding, usage.miss) == (3, 3, 0)
    saved = predictor.cache.save(prediction.unsaved)
    assert saved is not None
    assert (saved.values, saved.of) == (3, 3)  # the new predictions, and nothing that was there


def test_memory_comes_first(store: FaultyServer, environments: Environments) -> None:
    """What was read from the table is in memory then: the second request makes no call."""
    fill(environments)
    predictor = environments.start(l1_bytes=1 << 20)
    predictor.predict(TEXTS, ["first"])
    calls = len(store.calls)
    usage = predictor.predict(TEXTS, ["first"]).usage.cache
    assert (usage.l1, usage.l2, len(store.calls)) == (3, 0, calls)


def test_bypass(store: FaultyServer, environments: Environments) -> None:
    """`cache: false` neither reads nor writes."""
    predictor = environments.start()
    prediction = predictor.predict(TEXTS, ["first"], use_cache=False)
    assert predictor.cache.save(prediction.unsaved) is None
    assert store.calls == []


def test_nothing_but_digests_leaves(store: FaultyServer, environments: Environments) -> None:
    """No text is in what is sent to the store."""
    fill(environments)
    assert store.bodies
    for text in TEXTS:
        assert not [body for body in store.bodies if text.encode() in body]


def test_batches_and_one_connection(store: FaultyServer, environments: Environments) -> None:
    """120 texts are read in batches of 100 keys and written in batches of 25 items, over one connection."""
    texts = [f"text {number}" for number in range(120)]
    predictor = environments.start()
    prediction = predictor.predict(texts, ["first"])
    predictor.cache.save(prediction.unsaved)
    assert store.count("BatchGetItem") == 3  # 240 keys: a prediction and an embedding each
    assert store.count("BatchWriteItem") == 10
    assert store.connections == 1
    assert environments.start().predict(texts, ["first"]).usage.cache.l2 == 120


def test_connections_do_not_outlive_a_long_rest(
    store: FaultyServer, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a freeze a new connection is made: the old one may be dead without having said so."""
    predictor = environments.start()
    predictor.predict(TEXTS, ["first"])
    predictor.predict(TEXTS, ["first"])
    assert store.connections == 1
    started_s = time.time()
    monkeypatch.setattr("coldframe.cache.deadline_http.time.time", lambda: started_s + 60)
    predictor.predict(TEXTS, ["first"])
    assert store.connections == 2


def test_connection_closed_meanwhile(store: FaultyServer, environments: Environments) -> None:
    """A connection that the other side closed after its answer is replaced, and nothing is counted."""
    predictor = environments.start()

    def answers_and_closes(exchange: Exchange) -> bool:
        exchange.close_connection = True
        return False

    store.fault = answers_and_closes
    usages = [predictor.predict(TEXTS, ["first"]).usage.cache for _ in range(3)]
    assert [usage.errors for usage in usages] == [0, 0, 0]
    assert store.connections == 3


def test_restored_from_a_snapshot(store: FaultyServer, environments: Environments) -> None:
    """Restored from a snapshot, an environment asks a table that failed before, over a new connection."""
    fill(environments)
    predictor = environments.start()
    store.fault = error("AccessDeniedException")
    predictor.predict(TEXTS, ["first"])
    store.fault = works
    assert predictor.predict(TEXTS, ["first"]).usage.cache.breaker == BreakerState.OPEN
    connections = store.connections
    predictor.cache.before_snapshot()
    predictor.cache.after_restore()
    usage = predictor.predict(TEXTS, ["first"]).usage.cache
    assert (usage.l2, usage.breaker) == (len(TEXTS), BreakerState.CLOSED)
    assert store.connections == connections + 1


def test_policy_off_asks_nobody(store: FaultyServer, environments: Environments) -> None:
    """Turned off, the table does not exist."""
    predictor = environments.start(policy=Policy.OFF)
    prediction = predictor.predict(TEXTS, ["first"])
    assert b"".join(prediction.answers["first"]) == expected()["first"]
    predictor.cache.set_up()
    assert predictor.cache.save(prediction.unsaved) is None
    assert store.calls == []


# --- when it does not -----------------------------------------------------------------

GARBAGE = [
    b"",
    b"not JSON",
    b"<html>captive portal</html>",
    b"[]",
    b"null",
    b"{}",
    b'{"Responses": []}',
    b'{"Responses": {"predictions": {"a": 1}}}',
    b'{"Responses": {"predictions": []}, "UnprocessedKeys": 7}',
    b"\xff\xfe\x00",
]

FAULTS: dict[str, Fault] = {
    "hangs": hangs,
    "trickles": trickles,
    "trickles in the header": trickles_headers,
    "hangs up": hangs_up,
    "breaks off": breaks_off,
    "throttles": error("ProvisionedThroughputExceededException"),
    "throttles otherwise": error("ThrottlingException"),
    "processes no key": processes(0),
    "access denied": error("AccessDeniedException"),
    "no such table": error("ResourceNotFoundException"),
    "bad signature": error("InvalidSignatureException", 403),
    "expired token": error("ExpiredTokenException"),
    "out of order": error("InternalServerError", 500),
    "gateway": content(b"<html>bad gateway</html>", 502, "text/html"),
    "redirects": content(b"", 301),
    **{f"garbage {body[:40]!r}": content(body) for body in GARBAGE},
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault(store: FaultyServer, environments: Environments, name: str) -> None:
    """Same answers and no error; calls end, but for single probes, until the store works again."""
    fill(environments)
    predictor = environments.start(deadline_s=SHORT_S)
    store.fault = FAULTS[name]
    for _ in range(3):
        prediction = predictor.predict(TEXTS, ["first"])
        assert b"".join(prediction.answers["first"]) == expected()["first"]
        assert (
            predictor.cache.save(prediction.unsaved) is None
        )  # a store that does not answer is not written to
    assert prediction.usage.cache.breaker == "open"
    assert prediction.usage.cache.l2 == 0

    calls = len(store.calls)
    for _ in range(5):
        usage = predictor.predict(TEXTS, ["first"]).usage.cache
        assert (usage.skipped, usage.errors, usage.breaker) == (3, 0, "open")
    assert len(store.calls) == calls  # nobody is asked while the breaker is open

    environments.clock.step(1.5)
    assert predictor.predict(TEXTS, ["first"]).usage.cache.errors == 1  # the probe
    calls = len(store.calls)
    environments.clock.step(1.5)
    predictor.predict(TEXTS, ["first"])
    assert len(store.calls) == calls  # it failed: twice the time to the next one

    store.fault = works
    environments.clock.step(1.5)
    assert predictor.cache._shared is not None
    predictor.cache._shared._deadline_s = PATIENT_S
    healed = predictor.predict(TEXTS, ["first"])
    assert (healed.usage.cache.l2, healed.usage.cache.breaker) == (3, "closed")
    assert b"".join(healed.answers["first"]) == expected()["first"]


@pytest.mark.parametrize("permanent", ["access denied", "no such table", "bad signature", "expired token"])
def test_permanent_faults_open_at_once(
    store: FaultyServer, environments: Environments, permanent: str
) -> None:
    """What will fail until somebody acts is tried once."""
    predictor = environments.start()
    store.fault = FAULTS[permanent]
    usages = [predictor.predict(TEXTS, ["first"]).usage.cache for _ in range(3)]
    assert [usage.errors for usage in usages] == [1, 0, 0]
    assert store.calls == ["BatchGetItem"]


@pytest.mark.parametrize("where", ["refused", "black hole", "no such name"])
def test_no_connection(
    store: FaultyServer, environments: Environments, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Nobody listens, or packets get lost on the way, or the name is unknown: as if there were no table."""
    with full_backlog() as black_hole:
        url = {"refused": closed_port(), "black hole": black_hole, "no such name": "http://table.invalid"}
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url[where])
        predictor = environments.start(deadline_s=SHORT_S)
        usages = []
        for _ in range(4):
            prediction = predictor.predict(TEXTS, ["first"])
            assert b"".join(prediction.answers["first"]) == expected()["first"]
            usages.append(prediction.usage.cache)
        assert [usage.errors for usage in usages] == [1, 1, 1, 0]
        assert usages[-1].breaker == "open"
        assert predictor.cache.save(prediction.unsaved) is None


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        (["AWS_DEFAULT_REGION"], "NoRegionError"),
        (["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], "NoCredentialsError"),
        (["AWS_SECRET_ACCESS_KEY"], "PartialCredentialsError"),
    ],
)
def test_unusable_configuration(
    store: FaultyServer,
    environments: Environments,
    monkeypatch: pytest.MonkeyPatch,
    missing: list[str],
    name: str,
) -> None:
    """Without a region or credentials there is no client: counted, named, not tried again at once."""
    for variable in missing:
        monkeypatch.delenv(variable)
    predictor = environments.start()
    first_prediction = predictor.predict(TEXTS, ["first"])
    assert b"".join(first_prediction.answers["first"]) == expected()["first"]
    assert first_prediction.cache_error == name
    assert predictor.predict(TEXTS, ["first"]).usage.cache.breaker == "open"
    assert store.calls == []


@pytest.mark.parametrize(
    "fault",
    [
        first(2, error("ProvisionedThroughputExceededException")),
        first(2, error("InternalServerError", 500)),
        first(2, processes(0)),
        processes(2),
        first(1, hangs_up),
    ],
    ids=["throttled", "out of order", "unprocessed", "by and by", "connection lost"],
)
def test_repeated_within_the_deadline(store: FaultyServer, environments: Environments, fault: Fault) -> None:
    """A store that is busy for a moment is asked again after growing pauses; nothing counts as an error."""
    fill(environments)
    calls = len(store.calls)
    store.fault = fault
    usage = environments.start().predict(TEXTS, ["first"]).usage.cache
    assert (usage.l2, usage.errors, usage.breaker) == (3, 0, "closed")
    assert len(store.calls) - calls > 1
    assert environments.pauses
    assert all(pause <= 0.1 for pause in environments.pauses)


def test_pauses_end_at_the_deadline(store: FaultyServer, environments: Environments) -> None:
    """Pauses grow, and none is made that would end after the deadline."""
    store.fault = error("ThrottlingException")
    environments.start(deadline_s=5.0).predict(TEXTS, ["first"])
    growing = environments.pauses[:5]
    assert growing == sorted(growing)
    assert len(set(growing)) == len(growing)
    assert sum(environments.pauses) < 5.0


def test_part_of_an_answer_is_used(store: FaultyServer, environments: Environments) -> None:
    """When the second batch does not come, what the first one brought is used, and only the rest computed."""
    texts = [f"text {number}" for number in range(120)]
    fill(environments, texts)
    calls = [0]

    def second_hangs(exchange: Exchange) -> bool:
        calls[0] += 1
        return hangs(exchange) if calls[0] > 1 else False

    store.fault = second_hangs
    prediction = environments.start(deadline_s=2.0).predict(texts, ["first"])
    usage = prediction.usage.cache
    assert (usage.l2, usage.miss, usage.errors, usage.breaker) == (50, 70, 1, "closed")
    assert b"".join(prediction.answers["first"]) == expected(texts)["first"]


def test_expired_items(store: FaultyServer, environments: Environments) -> None:
    """A table full of items past their time is a table of misses; they are written anew."""
    fill(environments)
    environments.now_s += TTL_S
    predictor = environments.start()
    prediction = predictor.predict(TEXTS, ["first"])
    usage = prediction.usage.cache
    assert (usage.l2, usage.miss, usage.expired, usage.errors) == (0, 3, 6, 0)
    assert b"".join(prediction.answers["first"]) == expected()["first"]
    assert predictor.cache.save(prediction.unsaved) is not None
    assert environments.start().predict(TEXTS, ["first"]).usage.cache.l2 == 3


def prediction_of(text: str) -> bytes:
    return expected([text])["first"]


FOREIGN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda key: b"",
    "random": lambda key: bytes(range(200)),
    "cut": lambda key: encode(key, Kind.PREDICTION, prediction_of(TEXTS[0]))[:-1],
    "flipped bit": lambda key: encode(key, Kind.PREDICTION, prediction_of(TEXTS[0]))[:-1] + b"\x00",
    "another version": lambda key: b"\x02" + encode(key, Kind.PREDICTION, bytes(16))[1:],
    "another key's": lambda key: encode(rows_of(["else"])[0], Kind.PREDICTION, prediction_of("else")),
    "another kind": lambda key: encode(key, Kind.EMBEDDING, bytes(32)),
    "another size": lambda key: encode(key, Kind.PREDICTION, bytes(12)),
    "that of `auto`": lambda key: encode(key, Kind.AUTO, bytes(13)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_corrupt_and_foreign_values(
    store: FaultyServer, environments: Environments, moto: str, name: str
) -> None:
    """A value that is damaged or not ours is a miss and a counter, and is replaced."""
    (key,) = rows_of(TEXTS[:1])
    put(moto, key, Item(FOREIGN[name](key), 2_000_000_000))
    predictor = environments.start()
    prediction = predictor.predict(TEXTS, ["first"])
    usage = prediction.usage.cache
    assert (usage.l2, usage.miss, usage.corrupt, usage.errors) == (0, 3, 1, 0)
    assert b"".join(prediction.answers["first"]) == expected()["first"]
    predictor.cache.save(prediction.unsaved)
    assert environments.start().predict(TEXTS, ["first"]).usage.cache.l2 == 3


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"value": {"S": "words"}, "expires_at_s": {"N": "2000000000"}},
        {"value": {"B": b"x"}},
        {"value": {"B": b"x"}, "expires_at_s": {"S": "soon"}},
        {"value": {"B": b"x"}, "expires_at_s": {"N": "1.5"}},
    ],
)
def test_items_of_others(
    store: FaultyServer, environments: Environments, moto: str, attributes: dict[str, object]
) -> None:
    """An item with other attributes, or of other types, is counted as corrupt."""
    client = boto3.client("dynamodb", endpoint_url=moto)
    client.put_item(TableName=TABLE, Item={"cache_key": {"S": rows_of(TEXTS)[0].hex()}, **attributes})
    client.close()
    usage = environments.start().predict(TEXTS, ["first"]).usage.cache
    assert (usage.corrupt, usage.miss, usage.errors) == (1, 3, 0)


def test_answers_about_other_keys(store: FaultyServer, environments: Environments) -> None:
    """Items that nobody asked for are not taken."""
    row = {"cache_key": {"S": "ab" * 16}, "value": {"B": "eA=="}, "expires_at_s": {"N": "2000000000"}}
    store.fault = lambda exchange: exchange.answer_json(200, {"Responses": {TABLE: [row]}})
    usage = environments.start().predict(TEXTS, ["first"]).usage.cache
    assert (usage.l2, usage.miss, usage.errors) == (0, 3, 0)


# --- TLS, as AWS is reached -------------------------------------------------------------


@pytest.fixture
def secure_store(
    store: FaultyServer, moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[FaultyServer]:
    """The same store behind TLS, with a certificate that boto3 is told to trust."""
    certificate = self_signed(tmp_path / "certificate.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with faulty_server(moto, context) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url)
        yield server


def self_signed(path: Path) -> Path:
    """A certificate for 127.0.0.1, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def test_shared_over_tls(secure_store: FaultyServer, environments: Environments) -> None:
    """Over TLS the cache works the same, large values included, over one connection for each service."""
    predictor = environments.start(item_limit_bytes=100)
    prediction = predictor.predict(TEXTS, ["first"])
    predictor.cache.save(prediction.unsaved)
    assert secure_store.connections == 2
    usage = environments.start().predict(TEXTS, ["first", "second"]).usage.cache
    assert (usage.l2, usage.embedding, usage.miss, usage.errors) == (3, 3, 0, 0)


@pytest.mark.parametrize("name", ["hangs", "trickles", "trickles in the header", "hangs up", "breaks off"])
def test_faults_over_tls(secure_store: FaultyServer, environments: Environments, name: str) -> None:
    """The deadline holds inside TLS, too."""
    secure_store.fault = FAULTS[name]
    prediction = environments.start(deadline_s=1.0).predict(TEXTS, ["first"])
    assert b"".join(prediction.answers["first"]) == expected()["first"]
    assert (prediction.usage.cache.l2, prediction.usage.cache.errors) == (0, 1)


def test_untrusted_certificate(
    secure_store: FaultyServer, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store whose certificate nobody vouches for is not spoken to."""
    monkeypatch.delenv("AWS_CA_BUNDLE")
    prediction = environments.start().predict(TEXTS, ["first"])
    assert prediction.cache_error == "SSLError"
    assert secure_store.calls == []


# --- writing --------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAULTS)
def test_failing_writes(store: FaultyServer, environments: Environments, name: str) -> None:
    """A write that fails costs nothing but itself."""
    predictor = environments.start()
    prediction = predictor.predict(TEXTS, ["first"])
    store.fault = FAULTS[name]
    assert predictor.cache._shared is not None
    predictor.cache._shared._deadline_s = SHORT_S
    saved = predictor.cache.save(prediction.unsaved)
    assert saved is not None
    assert (saved.values, saved.of) == (0, 6)
    assert saved.failure
    store.fault = works
    assert bits(predictor, TEXTS, ["first"]) == expected()


def test_unprocessed_items_are_written_again(store: FaultyServer, environments: Environments) -> None:
    """Items that a busy table hands back are sent again."""
    store.fault = processes(4)
    fill(environments)
    assert store.count("BatchWriteItem") == 2


def test_writes_fit_into_the_invocation(store: FaultyServer, environments: Environments) -> None:
    """Nothing is written when Lambda is about to stop the function."""
    predictor = environments.start()
    prediction = predictor.predict(TEXTS, ["first"])
    saved = predictor.cache.save(prediction.unsaved, time_left_s=-0.1)
    assert saved is not None
    assert (saved.values, saved.of) == (0, 6)
    assert store.count("BatchWriteItem") == 0


# --- large values ---------------------------------------------------------------------


def test_large_values_are_in_the_bucket(store: FaultyServer, environments: Environments) -> None:
    """What does not fit into an item is an object, and the item points to it."""
    predictor = environments.start(item_limit_bytes=100)  # embeddings are larger
    prediction = predictor.predict(TEXTS, ["first"])
    predictor.cache.save(prediction.unsaved)
    assert store.count("PUT") == 3
    encoder = TinyEncoder()
    usage = environments.start(encoder).predict(TEXTS, ["second"]).usage.cache
    assert (usage.embedding, usage.miss, usage.errors) == (3, 0, 0)
    assert encoder.batches == []
    assert store.count("GET") == 3


def s3_only(fault: Fault) -> Fault:
    return lambda exchange: fault(exchange) if exchange.operation in ("GET", "PUT") else False


S3_FAULTS: dict[str, Fault] = {
    "hangs": hangs,
    "trickles": trickles,
    "hangs up": hangs_up,
    "breaks off": breaks_off,
    "garbage": content(b"garbage"),
    "garbage of the right size": content(bytes(42)),
    "denied": content(b"<Error><Code>AccessDenied</Code></Error>", 403, "application/xml"),
    "gone": content(b"<Error><Code>NoSuchKey</Code></Error>", 404, "application/xml"),
    "slow down": content(b"<Error><Code>SlowDown</Code></Error>", 503, "application/xml"),
    "not XML": content(b"oops", 500, "text/plain"),
}


@pytest.mark.parametrize("name", S3_FAULTS)
def test_failing_bucket(store: FaultyServer, environments: Environments, name: str) -> None:
    """A bucket that fails makes its values misses; the table goes on."""
    predictor = environments.start(item_limit_bytes=100)
    prediction = predictor.predict(TEXTS, ["first"])
    predictor.cache.save(prediction.unsaved)
    store.fault = s3_only(S3_FAULTS[name])
    predictor = environments.start(deadline_s=1.0)
    for _ in range(6):
        prediction = predictor.predict(TEXTS, ["first", "second"])
        usage = prediction.usage.cache
        assert (usage.l2, usage.embedding, usage.miss, usage.breaker) == (3, 0, 3, "closed")
        assert usage.errors + usage.corrupt > 0 or prediction.cache_error is None
        got = {head: b"".join(rows) for head, rows in prediction.answers.items()}
        assert got == expected(heads=("first", "second"))
    if name not in ("garbage of the right size", "gone", "denied"):
        calls = store.count("GET")
        predictor.predict(TEXTS, ["first", "second"])
        assert store.count("GET") == calls  # the bucket's own breaker is open


@pytest.mark.parametrize("name", ["hangs", "hangs up", "denied", "slow down", "not XML"])
def test_failing_writes_to_the_bucket(store: FaultyServer, environments: Environments, name: str) -> None:
    """No item points to an object that was not written."""
    predictor = environments.start(deadline_s=1.0, item_limit_bytes=100)
    prediction = predictor.predict(TEXTS, ["first"])
    store.fault = s3_only(S3_FAULTS[name])
    saved = predictor.cache.save(prediction.unsaved)
    assert saved is not None
    assert saved.values <= 3
    store.fault = works
    usage = environments.start().predict(TEXTS, ["second"]).usage.cache
    assert (usage.embedding, usage.miss, usage.errors, usage.corrupt) == (0, 3, 0, 0)


def test_no_bucket(store: FaultyServer, environments: Environments) -> None:
    """Without a bucket large values are not kept, small ones are."""
    predictor = environments.start(item_limit_bytes=100, bucket="")
    prediction = predictor.predict(TEXTS, ["first"])
    saved = predictor.cache.save(prediction.unsaved)
    assert saved is not None
    assert (saved.values, saved.of) == (3, 6)
    assert store.count("PUT") == 0
    assert environments.start().predict(TEXTS, ["first"]).usage.cache.l2 == 3


# --- the policy -----------------------------------------------------------------------


def test_slow_store_is_asked_less(store: FaultyServer, environments: Environments) -> None:
    """A store that answers in time, but later than computing would take, is soon asked rarely."""
    texts = [["a long text " * 20 + str(number)] for number in range(60)]

    def slow(exchange: Exchange) -> bool:
        environments.clock.step(0.2)  # 200 ms pass, and nobody waits for them
        return False

    store.fault = slow
    predictor = environments.start(policy=Policy.ADAPTIVE)
    environments.ms_per_token.add(10)  # a slow encoder: worth a try
    for text in texts:
        assert bits(predictor, text, ["first"]) == expected(text)
    assert 1 <= store.count("BatchGetItem") < len(texts) / 4


def test_short_texts_are_not_worth_a_call(store: FaultyServer, environments: Environments) -> None:
    """By default a short text is computed: boto3 stays unimported and the table unasked."""
    predictor = environments.start(policy=Policy.ADAPTIVE)
    prediction = predictor.predict(["short"], ["first"])
    usage = prediction.usage.cache
    assert (usage.skipped, usage.miss) == (1, 1)
    assert predictor.cache.save(prediction.unsaved) is None
    assert store.calls == []
    assert not environments.opened[-1].has("dynamodb")


# --- what is reported -----------------------------------------------------------------


def test_log_line(store: FaultyServer, environments: Environments) -> None:
    """Answer and log line count alike; the log names what went wrong, and no secret and no text."""
    lines: list[str] = []
    engine = Api(served(environments.start()), Settings(), StartMark(), lines.append)
    answer = msgspec.json.decode(post(engine, {"texts": TEXTS}).body)
    assert answer["usage"]["cache"] == {"l1": 0, "l2": 0, "embedding": 0, "miss": 3}
    line = msgspec.json.decode(lines[-1])
    assert line["usage"] == answer["usage"]
    assert (line["cache_write"]["values"], line["cache_write"]["of"]) == (6, 6)
    store.fault = error("AccessDeniedException")
    answer = msgspec.json.decode(post(engine, {"texts": TEXTS}).body)
    assert answer["usage"]["cache"] == {
        "l1": 0, "l2": 0, "embedding": 0, "miss": 3, "errors": 1, "breaker": "open",
    }  # fmt: skip
    line = msgspec.json.decode(lines[-1])
    assert line["cache_error"] == "AccessDeniedException"
    assert "cache_write" not in line
    assert not [line for line in lines for word in (SECRET_KEY, *TEXTS) if word in line]


def test_answer_is_built_before_the_write(store: FaultyServer, environments: Environments) -> None:
    """When the table is written to, the encoder has done its work; a write that hangs costs its deadline."""
    lines: list[str] = []
    encoder = TinyEncoder()
    engine = Api(served(environments.start(encoder, deadline_s=1.0)), Settings(), StartMark(), lines.append)
    done: list[int] = []

    def writes_hang(exchange: Exchange) -> bool:
        if exchange.operation == "BatchGetItem":
            return False
        done.append(len(encoder.batches))
        return hangs(exchange)

    store.fault = writes_hang
    reply = post(engine, {"texts": TEXTS})
    assert reply.status == 200
    line = msgspec.json.decode(lines[-1])
    assert line["cache_write"]["values"] == 0
    assert line["cache_write"]["error"] in {"ReadTimeoutError", "DeadlineExceeded"}
    assert done == [line["usage"]["batches"]]
