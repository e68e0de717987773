"""`POST /v1/feedback` and `DELETE /v1/feedback/{id}`, with ids from `POST /v1/predict`."""

from __future__ import annotations

import base64
import itertools
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from coldframe.api.api import Api, Reply, Request
from coldframe.api.feedback_routes import FeedbackRoutes
from coldframe.config import Settings
from coldframe.errors import BadSetting
from coldframe.feedback.ids import Answer, Signer
from coldframe.feedback.marks import Marker
from coldframe.feedback.schemas import MAX_ITEMS
from coldframe.feedback.table import FeedbackTable
from coldframe.monitoring.reading import Label
from coldframe.timing import StartMark
from tests.conftest import served, tiny_predictor

KEY = "a key of feedback for tests"
DAY_S = 86_400
NOW_S = 1_800_000_000
SECRET = "a text that nobody stores"


class Here:
    """An API with feedback, its table and its clock."""

    settings = Settings(feedback_key=KEY, feedback_table="feedback", feedback_sample=0.5)

    def __init__(self, client: Any) -> None:
        self.client = client
        self.now_s = NOW_S
        self.fails = False
        self.log: list[str] = []
        models = served(tiny_predictor())
        settings = self.settings
        self.api = Api(models, settings, StartMark(), self.log.append)
        self.table = FeedbackTable("feedback", self._client, lambda: self.now_s)
        routes = FeedbackRoutes(models, settings, Signer(KEY), self.table, lambda: self.now_s)
        chance = itertools.cycle([0.49, 0.5]).__next__
        self.api.__dict__["_feedback"] = routes
        has_digests = bool(settings.feedback_text_key)
        self.api._marker = Marker(Signer(KEY), 0.5, lambda: self.now_s, chance, has_digests=has_digests)

    def _client(self) -> Any:
        if self.fails:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
        return self.client

    def answer(self, method: str, path: str, body: object, owner: str = "ann") -> Reply:
        """The reply to one caller."""
        return self.api.answer(Request(method, path, body=msgspec.json.encode(body), principal=owner))

    def predict(self, texts: int = 1) -> list[Any]:
        """Answers of one head."""
        reply = self.answer("POST", "/v1/predict", {"texts": [SECRET] * texts})
        rows = msgspec.json.decode(reply.body)["predictions"]
        return [answer for row in rows for answer in row["heads"].values()]

    def send(self, *pairs: tuple[str, str], owner: str = "ann") -> list[str]:
        """Outcomes of labels."""
        items = [{"id": name, "label": label} for name, label in pairs]
        reply = self.answer("POST", "/v1/feedback", {"feedback": items}, owner)
        assert reply.status == 200
        return [result["outcome"] for result in msgspec.json.decode(reply.body)["results"]]

    def signed_before_texts(self) -> str:
        """An id as it was signed before ids named models and texts."""
        signer = Signer(KEY)
        answer = signer.read(self.predict()[0]["id"], "ann")
        assert answer is not None
        old = msgspec.msgpack.encode(msgspec.structs.astuple(answer)[:7])
        return base64.urlsafe_b64encode(old + signer._mac(old, "ann")).rstrip(b"=").decode()

    def labels(self) -> list[Label]:
        """All labels in the table."""
        return list(self.table.labels(NOW_S - DAY_S, NOW_S + DAY_S))


@pytest.fixture
def here(client: Any) -> Here:
    """An API with feedback."""
    return Here(client)


@pytest.fixture
def label(here: Here) -> str:
    """A label of the model."""
    return here.api.models.default.manifest.labels[0]


def test_a_label_comes_back_as_the_monitor_reads_it(here: Here) -> None:
    """Drawn answers give random labels, and all others complaints."""
    drawn, other = here.predict(2)
    assert drawn["drawn"]
    assert "drawn" not in other
    assert drawn["id"] != other["id"]
    assert here.send((drawn["id"], drawn["label"]), (other["id"], drawn["label"])) == ["stored", "stored"]
    version = here.api.models.default.manifest.version
    kinds = {found.drawn for found in here.labels()}
    assert kinds == {"random", "complaint"}
    assert {(found.model, found.right, found.probability) for found in here.labels()} == {
        (version, True, drawn["probability"])
    }


def test_each_item_has_its_own_result(here: Here, label: str) -> None:
    """A bad item neither stops the others nor stores anything."""
    name = here.predict()[0]["id"]
    sent = [("forged", label), (name, "no label"), (name, label), (name, label)]
    assert here.send(*sent) == ["unknown", "unknown-label", "stored", "stored"]
    assert len(here.labels()) == 1


def test_a_second_label_needs_a_delete(here: Here) -> None:
    """The first label stays until its caller removes it."""
    name = here.predict()[0]["id"]
    first, second = here.api.models.default.manifest.labels[:2]
    assert here.send((name, first), (name, second)) == ["stored", "conflict"]
    assert here.answer("DELETE", f"/v1/feedback/{name}", None).status == 200
    assert here.labels() == []
    assert here.send((name, second)) == ["stored"]


def test_an_id_belongs_to_its_caller(here: Here, label: str) -> None:
    """For another caller the id is forged: to send and to remove."""
    name = here.predict()[0]["id"]
    assert here.send((name, label)) == ["stored"]
    assert here.send((name, label), owner="bob") == ["unknown"]
    assert here.answer("DELETE", f"/v1/feedback/{name}", None, "bob").status == 404
    assert len(here.labels()) == 1


def test_an_old_answer_has_expired(here: Here, label: str) -> None:
    """The last second of the 90 days counts, and no later one."""
    name = here.predict()[0]["id"]
    here.now_s = NOW_S + 90 * DAY_S
    assert here.send((name, label)) == ["expired"]
    here.now_s -= 1
    assert here.send((name, label)) == ["stored"]


def test_an_answer_of_a_model_before(here: Here, label: str) -> None:
    """A version that is no longer served takes the labels of the models that are."""
    answer = Signer(KEY).read(here.predict()[0]["id"], "ann")
    assert answer is not None
    old = msgspec.structs.replace(answer, model="sha256:old", label="gone")
    name = Signer(KEY).id_of(old, "ann")
    assert here.send((name, "no label"), (name, label)) == ["unknown-label", "stored"]
    assert [(found.model, found.right) for found in here.labels()] == [("sha256:old", False)]


def test_too_many_labels_are_refused(here: Here, label: str) -> None:
    """The message names the limit, and nothing is stored."""
    items = [{"id": "x", "label": label}] * 10_000
    reply = here.answer("POST", "/v1/feedback", {"feedback": items})
    assert reply.status == 413
    assert f"at most {MAX_ITEMS}" in reply.body.decode()


class Quick:
    """A table in memory, with DynamoDB's condition and pages. moto takes minutes for 10,000 items."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}

    def put_item(self, **request: Any) -> dict[str, Any]:
        item = request["Item"]
        other = self.items.setdefault(item["nonce"]["S"], item)
        if other["label"] != item["label"]:
            raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "PutItem")
        return {}

    def query(self, **request: Any) -> dict[str, Any]:
        day, start = request["ExpressionAttributeValues"][":day"], request.get("ExclusiveStartKey", 0)
        items = [item for item in self.items.values() if item["day"] == day]
        last = {"LastEvaluatedKey": start + 1000} if start + 1000 < len(items) else {}
        return {"Items": items[start : start + 1000], **last}


def test_ten_thousand_labels_are_stored_in_parts() -> None:
    """Requests of the largest size store 10,000 labels, each once; random ones and complaints stay apart."""
    here = Here(Quick())
    version, label = here.api.models.default.manifest.version, here.api.models.default.manifest.labels[0]
    signer = Signer(KEY)
    answers = [
        Answer(version, "auto", label, 0.9, NOW_S, number % 2 == 0, number.to_bytes(16, "big"))
        for number in range(10_000)
    ]
    names = [signer.id_of(answer, "ann") for answer in answers]
    for start in range(0, len(names), MAX_ITEMS):
        part = [(name, label) for name in names[start : start + MAX_ITEMS]]
        assert set(here.send(*part)) == {"stored"}
        assert set(here.send(*part)) == {"stored"}
    drawn = [found.drawn for found in here.labels()]
    assert (drawn.count("random"), drawn.count("complaint")) == (5_000, 5_000)


def test_a_table_that_fails_stops_no_prediction(here: Here, label: str) -> None:
    """Labels are refused with the time to come back, and predictions are as before."""
    name = here.predict()[0]["id"]
    here.fails = True
    items = {"feedback": [{"id": name, "label": label}]}
    for reply in (
        here.answer("POST", "/v1/feedback", items),
        here.answer("DELETE", f"/v1/feedback/{name}", None),
    ):
        assert (reply.status, reply.headers["retry-after"]) == (503, "5")
    here.now_s += 3600
    assert here.predict()[0]["id"]
    here.fails = False
    assert here.send((name, label)) == ["stored"]


def test_no_text_is_stored_or_logged(here: Here, label: str) -> None:
    """Neither the table nor the log has the text; a request that sends one is refused."""
    name = here.predict()[0]["id"]
    here.send((name, label))
    item = {"id": name, "label": label, "text": SECRET}
    refused = here.answer("POST", "/v1/feedback", {"feedback": [item]})
    assert (refused.status, b"COLDFRAME_FEEDBACK_TEXT_KEY is empty" in refused.body) == (422, True)
    here.answer("POST", "/v1/feedback", {"feedback": [{"id": SECRET, "label": SECRET}]})
    assert SECRET not in str(here.client.scan(TableName="feedback")["Items"])
    assert SECRET not in "".join(here.log)


def test_an_older_id_is_read(here: Here, label: str) -> None:
    """Ids that were signed before they named models and texts take labels as before."""
    assert here.send((here.signed_before_texts(), label)) == ["stored"]
    assert len(here.labels()) == 1


def test_without_a_key_there_is_no_feedback() -> None:
    """Answers have no ids, and the routes say which settings are missing."""
    api = Api(served(tiny_predictor()), Settings(log_level="off"), StartMark())
    reply = api.answer(Request("POST", "/v1/predict", body=b'{"text": "x"}'))
    assert b'"id"' not in reply.body
    reply = api.answer(Request("POST", "/v1/feedback", body=b"{}"))
    assert reply.status == 404
    assert b"COLDFRAME_FEEDBACK_KEY" in reply.body


def test_a_short_key_stops_the_start() -> None:
    """An environment with a key that can be guessed does not start."""
    with pytest.raises(BadSetting):
        Api(served(tiny_predictor()), Settings(feedback_key="short"), StartMark())
