"""The services of jobs, as the settings name them."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from coldframe.config import load_settings
from coldframe.jobs.services import open_services

NAMES = {f"COLDFRAME_JOBS_{name}": "a" for name in ("TABLE", "QUEUE", "BUCKET")}


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "me-central-1"])
def test_addresses_of_answers(monkeypatch: pytest.MonkeyPatch, region: str) -> None:
    """An address of an object is signed by version 4, in old regions and in new ones."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    services = open_services(load_settings(NAMES))
    query = parse_qs(urlsplit(services.objects.url("jobs/a")).query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert f"/{region}/s3/" in query["X-Amz-Credential"][0]
