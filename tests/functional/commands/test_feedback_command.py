"""`coldframe feedback`: keys that stay with their owner, and texts of a table in clear."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from coldframe.feedback.ids import Answer
from coldframe.feedback.table import FeedbackTable
from coldframe.feedback.texts import TextSealer
from coldframe_local.cli import main

ANSWER = Answer("sha256:1", "auto", "a", 0.9, 1_700_000_000, False, bytes(16), "topics")
LINE = "COLDFRAME_FEEDBACK_TEXT_KEY="


def run(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, ["feedback", *arguments])


def key_in(path: Path) -> str:
    """A new key in a file."""
    printed = run("keys", str(path))
    assert printed.exit_code == 0
    return printed.stdout.strip().removeprefix(LINE)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedbackTable]:
    """An empty table."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    names = (("day", "HASH"), ("nonce", "RANGE"))
    with mock_aws():
        client: Any = boto3.client("dynamodb")
        client.create_table(
            TableName="labels",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in names],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in names],
        )
        yield FeedbackTable("labels", lambda: client, lambda: 0.0)


def add(table: FeedbackTable, public: str, text: str, number: int = 0) -> None:
    """A text with its label in the table."""
    answer = msgspec.structs.replace(ANSWER, nonce=number.to_bytes(16, "big"))
    assert table.add(answer, "b", 1e10, TextSealer(public).seal(text, answer))


def test_the_secret_key_is_in_its_file_alone(tmp_path: Path) -> None:
    """The owner alone may read the file, and only the public key is printed."""
    path = tmp_path / "feedback.keys"
    printed = run("keys", str(path))
    assert printed.stdout.startswith(LINE + "coldframe-public-")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("coldframe-secret-")
    assert path.read_text().strip() not in printed.output


def test_a_second_key_keeps_the_first(tmp_path: Path, table: FeedbackTable) -> None:
    """After a change of keys, texts of both are read; a key that is missing is a warning."""
    path = tmp_path / "feedback.keys"
    add(table, key_in(path), "old", 1)
    add(table, key_in(path), "new", 2)
    add(table, key_in(tmp_path / "other.keys"), "theirs", 3)
    printed = run("texts", "labels", "--keys", str(path))
    rows = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [(row["text"], row["label"], row["model"], row["drawn"]) for row in rows] == [
        ("old", "b", "topics", "complaint"),
        ("new", "b", "topics", "complaint"),
    ]
    assert "no key in" in printed.stderr
    assert "opens 1 texts" in printed.stderr


def test_json_of_keys(tmp_path: Path) -> None:
    """With --json, the public key is a value."""
    printed = json.loads(run("keys", str(tmp_path / "keys"), "--json").stdout)
    assert printed["public_key"].startswith("coldframe-public-")


def test_faults_say_what_to_do(tmp_path: Path, table: FeedbackTable) -> None:
    """A table that is missing, a public key in the file, and a folder that is missing end with one line."""
    path = tmp_path / "feedback.keys"
    public = key_in(path)
    missing = run("texts", "none", "--keys", str(path))
    (tmp_path / "public").write_text(public)
    wrong = run("texts", "labels", "--keys", str(tmp_path / "public"))
    folder = run("keys", str(tmp_path / "none" / "keys"))
    assert [result.exit_code for result in (missing, wrong, folder)] == [1, 1, 1]
    assert "Check the name" in missing.output
    assert "is not a secret key" in wrong.output
    assert public not in wrong.output
    assert "Choose another file" in folder.output
