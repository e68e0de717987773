"""A run is pinned to its object and its model before it starts."""

from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from coldframe_local.batch.offline.pin import check_unchanged, pin
from coldframe_local.batch.offline.request import NO_VERSION, OfflineRequest, Place, RequestUnusable
from coldframe_local.emulator.state_machines.map_run import ObjectChanged

REQUEST = OfflineRequest(
    Place("texts", "in.csv"), Place("texts", "out"), "CSV", "body", None, None, 200, 4, 0.0
)
FIVE = {
    head: {"label": "comp.sys.mac.hardware", "probability": 0.123456, "out_of_distribution": 0.123456}
    for head in ("auto", "logreg", "rf", "hgb", "mlp")
}


def five_heads(parameters: Any) -> dict[str, Any]:
    """A function that answers each item with five heads."""
    items = parameters["Payload"]["Items"]
    return {
        "Payload": {"Results": [{"id": item["id"], "version": "sha256:1", "heads": FIVE} for item in items]}
    }


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="texts")
        client.put_object(Bucket="texts", Key="in.csv", Body=b"body\nold\n")
        yield client


def test_object_and_model_are_in_the_request(s3: Any) -> None:
    """ETag, version of the object and version of the model come from S3 and from the function."""
    pinned = pin(REQUEST, s3, five_heads, "f")
    etag = s3.head_object(Bucket="texts", Key="in.csv")["ETag"]
    assert (pinned.etag, pinned.version_id, pinned.version) == (etag, NO_VERSION, "sha256:1")
    s3.put_bucket_versioning(Bucket="texts", VersioningConfiguration={"Status": "Enabled"})
    written = s3.put_object(Bucket="texts", Key="in.csv", Body=b"body\nnew\n")
    assert pin(REQUEST, s3, five_heads, "f").version_id == written["VersionId"]


def test_a_function_of_an_earlier_release_is_named(s3: Any) -> None:
    """Without the model's version a run could mix two models, so it does not start."""

    def without(parameters: Any) -> dict[str, Any]:
        return {"Payload": {"Results": [{"id": 0, "heads": FIVE}]}}

    with pytest.raises(RequestUnusable, match=r"f does not tell the version of its model\. Deploy it anew"):
        pin(REQUEST, s3, without, "f")


def test_batches_whose_answers_no_child_can_return_are_refused(s3: Any) -> None:
    """400 rows of five heads are over 256 KiB; the error names the most that fit."""
    with pytest.raises(RequestUnusable, match=r"262,144\. Give at most --batch \d+\.") as caught:
        pin(replace(REQUEST, batch_items=400), s3, five_heads, "f")
    most = int(str(caught.value).rsplit(" ", 1)[1].rstrip("."))
    assert 200 <= most < 400
    assert pin(replace(REQUEST, batch_items=most), s3, five_heads, "f").batch_items == most


def test_a_change_while_a_run_reads_is_an_error(s3: Any) -> None:
    """Without versions of objects, the one that is there at the end has to be that of the start."""
    pinned = pin(REQUEST, s3, five_heads, "f")
    check_unchanged(pinned, s3)
    s3.put_object(Bucket="texts", Key="in.csv", Body=b"body\nnew\n")
    with pytest.raises(ObjectChanged, match="turn the bucket's versioning on"):
        check_unchanged(pinned, s3)
