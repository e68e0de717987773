"""`coldframe experiment`: start, status, promote and stop on a store in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coldframe_local.cli import main

EXPERIMENT = {"name": "trial", "kind": "split", "arms": [{"name": "now"}, {"name": "next", "head": "mlp"}]}


def run(tmp_path: Path, *arguments: str) -> Result:
    """The command with a store in a folder."""
    return CliRunner().invoke(main, ["experiment", *arguments, "--store", str(tmp_path / "store")])


def start(tmp_path: Path, **fields: object) -> Result:
    """Starts an experiment."""
    (tmp_path / "experiment.json").write_text(json.dumps(EXPERIMENT | fields))
    return run(tmp_path, "start", str(tmp_path / "experiment.json"))


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"kind": "canary"}, "Invalid enum value"),
        ({"share": 0.5}, "unknown field `share`"),
        ({"arms": [{"name": "now"}]}, "Expected `array` of length >= 2"),
        ({"arms": [{"name": "now"}] * 2}, "Give each arm a name of its own"),
        ({"stages": [0.5, 0.1]}, "List them from small to large"),
        ({"stages": [0]}, "Expected `float` > 0"),
        ({"subject": "cookie"}, "matching regex"),
        ({"criteria": {"min_agreement": 0.9}}, "Leave out min_agreement"),
        ({"kind": "shadow", "criteria": {"max_p99_ratio": 2}}, "Leave out max_p99_ratio"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_wrong_document_is_refused(tmp_path: Path, fields: dict[str, object], hint: str) -> None:
    """The error names the field and what it may be; nothing is started."""
    result = start(tmp_path, **fields)
    assert result.exit_code == 1
    assert hint in result.output and "Correct the file." in result.output
    assert "There is no experiment." in run(tmp_path, "status").output


def test_changes_are_made_once(tmp_path: Path) -> None:
    """A second start, promotion or stop is refused with the present state."""
    assert start(tmp_path).exit_code == 0
    assert "a deployment has one at a time" in start(tmp_path).output
    assert run(tmp_path, "promote").exit_code == 0
    assert "is promoted already" in run(tmp_path, "promote").output
    assert run(tmp_path, "stop").exit_code == 0
    assert "is stopped already" in run(tmp_path, "stop").output


def test_status_as_json_shows_no_key(tmp_path: Path) -> None:
    """The key that assigns subjects stays in the store."""
    start(tmp_path)
    report = json.loads(run(tmp_path, "status", "--json").output)
    assert (report["state"], [arm["share"] for arm in report["arms"]]) == ("running", [0.0, 1.0])
    assert "key" not in json.dumps(report)
    assert set(json.loads(run(tmp_path, "stop", "--json").output)) == {"experiment", "run", "state", "reason"}


def test_a_table_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing table ends the command with its name and a hint."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", "/nowhere")
    result = CliRunner().invoke(main, ["experiment", "status", "--store", "table"])
    assert result.exit_code == 1
    assert "table: DynamoDB: NoCredentialsError. Check the name, the region and the role." in result.output
