"""Sources of jobs through the emulator: both functions, S3, both queues, and the index of the sweep."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import boto3
import httpx
import pytest

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT
from tests.support.emulation import PATIENCE_S

pytestmark = pytest.mark.anyio

CONTROL = "JobsWorkerControlFunction"
ROWS = 1203


async def ended(web: httpx.AsyncClient, job: str) -> dict[str, Any]:
    """A job that is over."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found: dict[str, Any] = (await web.get(f"/v1/jobs/{job}")).json()
            if found["state"] not in ("queued", "running"):
                return found
            await asyncio.sleep(0.05)


async def answers(web: httpx.AsyncClient, found: dict[str, Any]) -> list[Any]:
    """All answers of a job, page by page, those behind addresses included."""
    rows: list[Any] = list(found.get("predictions", []))
    while True:
        for part in found.get("results", []):
            rows += part["predictions"] if "predictions" in part else (await web.get(part["url"])).json()
        if "next" not in found:
            return rows
        found = (await web.get(found["next"])).json()


async def test_sources_are_divided_and_answered() -> None:
    """A source becomes the answers of its rows in order; one that is spoilt fails, and nobody else does."""
    template = load_template(ROOT / "template.yaml", {"Jobs": "on"})
    options = EmulatorOptions(template, port=0, max_environments=4, log=lambda line: None)
    async with (
        Emulator(options) as emulator,
        httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as web,
    ):
        web.base_url = emulator.url
        await web.post("/v1/jobs", json={"texts": ["My printer is broken"]})
        session = boto3.Session("local", "local", region_name="us-east-1")
        s3 = session.client("s3", endpoint_url=emulator.stores.url)
        bucket = next(each.name for each in template.buckets if "jobs" in each.name.lower())
        lines = "\n".join(json.dumps({"text": f"The shuttle {number % 7}"}) for number in range(ROWS))
        sources = {"good": lines, "spoilt": lines + "\n{"}
        jobs = {}
        for name, content in sources.items():
            s3.put_object(Bucket=bucket, Key=f"uploads/{name}", Body=content.encode())
            source = {"s3": f"s3://{bucket}/uploads/{name}", "format": "jsonl"}
            jobs[name] = (await web.post("/v1/jobs", json={"source": source})).json()["id"]
        good, spoilt = [await ended(web, jobs[name]) for name in sources]
        assert (spoilt["state"], spoilt["reason"]) == (
            "failed",
            f"line {ROWS + 1} of the source is not JSON. Write one JSON value per line",
        )
        assert (good["state"], good["parts"], good["done"]) == ("done", 3, 3)
        rows = await answers(web, good)
        assert [row["index"] for row in rows] == list(range(ROWS))
        client = session.client("lambda", endpoint_url=emulator.url)
        sweep = json.dumps({"source": "aws.events"}).encode()
        swept = await asyncio.to_thread(client.invoke, FunctionName=CONTROL, Payload=sweep)
        assert json.loads(swept["Payload"].read()) == {"batchItemFailures": []}
