"""`coldframe offline` on this machine: real environments, a store, and a process that is killed."""

import csv
import io
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import httpx
import pytest

from tests.conftest import ROOT
from tests.support.running import coldframe_up, shell_environ

pytestmark = pytest.mark.waits

COLDFRAME = str(Path(sys.executable).parent / "coldframe")
WORDS = [
    "shuttle",
    "orbit",
    "goalie",
    "playoff",
    "doctor",
    "patient",
    "engine",
    "dealer",
    "windows",
    "driver",
    "key",
    "chip",
    "peace",
    "sale",
]
ROWS = 1200


class Deployment(NamedTuple):
    """Where `coldframe up` and its stores listen."""

    url: str
    stores: str


@pytest.fixture(scope="module")
def deployment(bundle: Path) -> Iterator[Deployment]:
    """`coldframe up` on a free port."""
    with coldframe_up("listening on", "in memory:") as (url, stores):
        yield Deployment(url, stores)


@pytest.fixture(scope="module")
def s3(deployment: Deployment) -> Any:
    client = boto3.client(
        "s3",
        endpoint_url=deployment.stores,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="texts")
    text = io.StringIO()
    csv.writer(text).writerows([("n", "body"), *enumerate(texts())])
    client.put_object(Bucket="texts", Key="in.csv", Body=text.getvalue().encode())
    return client


def texts() -> list[str]:
    """Different texts, some with a line end and quotes inside."""
    inside = ["", ' "quoted", and\na second line']
    return [
        f"{WORDS[n % 14]} {WORDS[n // 14 % 14]} {WORDS[n // 196 % 14]} {n}{inside[n % 7 == 0]}"
        for n in range(ROWS)
    ]


def command(deployment: Deployment, folder: Path, name: str, source: str = "s3://texts/in.csv") -> list[str]:
    return [
        *(COLDFRAME, "offline", "start", source, "--out", f"s3://texts/{name}"),
        *("--text", "body", "--batch", "50", "--concurrency", "2", "--name", name, "--yes"),
        *("--local", deployment.url, "--s3-endpoint", deployment.stores, "--journals", str(folder)),
    ]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments, cwd=ROOT, env=shell_environ(), capture_output=True, text=True, timeout=120
    )


def results(s3: Any, name: str) -> bytes:
    keys = [found["Key"] for found in s3.list_objects_v2(Bucket="texts", Prefix=f"{name}/")["Contents"]]
    (key,) = [key for key in keys if key.endswith("SUCCEEDED_0.jsonl")]
    return bytes(s3.get_object(Bucket="texts", Key=key)["Body"].read())


def done(path: Path) -> int:
    """Children in a journal that somebody else writes."""
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return int(db.execute("SELECT count(*) FROM child").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_rows_are_answered_as_one_by_one_also_after_a_kill(
    deployment: Deployment, s3: Any, tmp_path: Path
) -> None:
    """A run killed half-way ends with the bytes of one that was not, and those are the API's answers."""
    whole = run(*command(deployment, tmp_path, "whole"))
    assert whole.returncode == 0, whole.stderr
    assert re.search(r"1,200 rows in 24 batches: about 0\.\d+ USD .* per million rows", whole.stdout)
    killed = subprocess.Popen(
        [*command(deployment, tmp_path, "killed"), "--no-estimate"],
        cwd=ROOT,
        env=shell_environ(),
        stderr=subprocess.DEVNULL,
    )
    while done(tmp_path / "killed.sqlite") < 5:
        assert killed.poll() is None, "the run was over before it was killed"
    killed.kill()
    killed.wait()
    kept = done(tmp_path / "killed.sqlite")
    again = run(*command(deployment, tmp_path, "killed"), "--no-estimate")
    assert again.returncode == 0, again.stderr
    invoked = re.search(r"1,200 rows; (\d+) batches were invoked", again.stdout)
    assert invoked is not None and int(invoked[1]) == 24 - kept
    assert results(s3, "killed") == results(s3, "whole")
    lines = [json.loads(line) for line in results(s3, "whole").splitlines()]
    assert [line["id"] for line in lines] == list(range(ROWS))
    with httpx.Client(base_url=deployment.url, trust_env=False, timeout=60) as client:
        answered = client.post("/v1/predict", json={"texts": texts()[:100]}).json()["predictions"]
    assert [line["heads"] for line in lines[:100]] == [answer["heads"] for answer in answered]


def test_a_changed_object_is_another_run(deployment: Deployment, s3: Any, tmp_path: Path) -> None:
    """The same command after an upload answers the new rows; a name keeps to the object that it had."""
    for row, body in enumerate((b"body\nshuttle\n", b"body\nshuttle\norbit\n"), 1):
        s3.put_object(Bucket="texts", Key="daily.csv", Body=body)
        unnamed = command(deployment, tmp_path, f"day{row}", "s3://texts/daily.csv")
        place = unnamed.index("--name")
        found = run(*unnamed[:place], *unnamed[place + 2 :], "--no-estimate")
        assert found.returncode == 0, found.stderr
        assert len(results(s3, f"day{row}").splitlines()) == row
    named = command(deployment, tmp_path, "named", "s3://texts/daily.csv")
    assert run(*named, "--no-estimate").returncode == 0
    s3.put_object(Bucket="texts", Key="daily.csv", Body=b"body\nkey\n")
    refused = run(*named, "--no-estimate")
    assert refused.returncode == 1
    assert "started with another object. Give it another --name" in refused.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("--text", "none"), "BatchRefused"),
        (
            ("--text", "none", "--no-estimate"),
            "has no column with the requested name|ExceedToleratedFailureThreshold",
        ),
        (("--head", "none"), "BatchRefused"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    changes: tuple[str, ...], message: str, deployment: Deployment, s3: Any, tmp_path: Path
) -> None:
    """A wrong column or head ends the command with a line that names the error, and no traceback."""
    found = run(*command(deployment, tmp_path, "wrong"), *changes)
    assert found.returncode == 1
    assert re.search(message, found.stderr), found.stderr
    assert "Traceback" not in found.stderr


def test_an_object_that_is_not_there_is_named(deployment: Deployment, s3: Any, tmp_path: Path) -> None:
    """A line that says which, and what to check."""
    found = run(*command(deployment, tmp_path, "none", "s3://texts/none.csv"))
    assert found.returncode == 1
    assert found.stderr == ("Error: s3://texts/none.csv does not exist. Check its bucket, key and region.\n")
