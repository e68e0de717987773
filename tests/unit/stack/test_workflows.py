"""The workflows for GitHub are valid, pinned, may do little, and call what there is."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema.validators import validator_for

from coldframe_local.cli import main
from tests.conftest import ROOT

FOLDER = ROOT / ".github"
FILES = sorted(FOLDER.glob("workflows/*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
SCHEMAS = ("vendor.github-workflows", "custom.github-workflows-require-timeout")
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def errors_of(document: Any, schema: str) -> list[str]:
    """Messages of a schema that check-jsonschema brings."""
    loaded = get_builtin_schema(schema)
    return [error.message for error in validator_for(loaded)(loaded).iter_errors(_as_json(document))]


def _as_json(document: Any) -> Any:
    """The document with names for keys: YAML 1.1 reads the key `on` as true."""
    if isinstance(document, dict):
        return {"on" if key is True else str(key): _as_json(value) for key, value in document.items()}
    return [_as_json(value) for value in document] if isinstance(document, list) else document


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each job, by workflow and name."""
    for name, workflow in WORKFLOWS.items():
        for job, content in workflow["jobs"].items():
            yield f"{name}.{job}", content


def runs(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job.get("steps", ()) if "run" in step]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_workflow_is_valid(path: Path, schema: str) -> None:
    """GitHub's schema knows every key, and every job has a timeout."""
    assert errors_of(yaml.safe_load(path.read_text()), schema) == []


def test_schema_refuses_an_unknown_key() -> None:
    """A misspelt key is not valid: the test above can fail."""
    workflow = yaml.safe_load(FILES[0].read_text())
    next(iter(workflow["jobs"].values()))["timeout_minutes"] = 5
    assert errors_of(workflow, SCHEMAS[0])


def test_dependabot_is_valid() -> None:
    """It proposes newer commits of the actions."""
    document = yaml.safe_load((FOLDER / "dependabot.yml").read_text())
    assert errors_of(document, "vendor.dependabot") == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned(path: Path) -> None:
    """An action is a whole commit with its version beside it, since a tag may be moved."""
    lines = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    pinned = re.compile(r"- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    local = "uses: ./.github/"
    assert lines and [line for line in lines if not pinned.fullmatch(line) and local not in line] == []


def test_an_action_has_one_commit_everywhere() -> None:
    """No workflow uses an older commit of an action than another."""
    texts = "\n".join(path.read_text() for path in FILES)
    commits = set(re.findall(r"uses: ([\w-]+/[\w-]+)@(\w+ # \S+)", texts))
    assert len(commits) == len({action for action, _ in commits})


def test_workflows_may_read_alone() -> None:
    """Only a deployment may ask for a token of its own, and no job keeps git's credentials."""
    assert {name: workflow["permissions"] for name, workflow in WORKFLOWS.items()} == {
        name: {"contents": "read"} for name in WORKFLOWS
    }
    own = {name: job["permissions"] for name, job in jobs() if "permissions" in job}
    deploys = {"contents": "read", "id-token": "write"}
    assert own == {"check.deploy": deploys, "deploy.deploy": deploys}
    checkouts = [
        step for _, job in jobs() for step in job.get("steps", ()) if "/checkout@" in step.get("uses", "")
    ]
    assert {step["with"]["persist-credentials"] for step in checkouts} == {False}


def test_no_command_contains_an_expression() -> None:
    """Values reach a shell as variables, so that no branch's name is a command."""
    assert [run for _, job in jobs() for run in runs(job) if "${{" in run] == []


def test_deployments_are_of_what_was_checked() -> None:
    """A deployment waits for every other job, and is never of a pull request."""
    check, deploy = WORKFLOWS["check"], WORKFLOWS["deploy"]
    job = check["jobs"]["deploy"]
    assert set(job["needs"]) == check["jobs"].keys() - {"deploy"}
    assert (job["if"], check[True]["push"]) == ("github.event_name == 'push'", {"branches": ["main"]})
    assert ROOT / job["uses"] == ROOT / ".github" / "workflows" / "deploy.yml"
    assert deploy[True] == "workflow_call"
    assert deploy["concurrency"] == {"group": "deploy", "cancel-in-progress": False}


def test_each_value_of_a_deployment_is_explained() -> None:
    """The comment above the workflow names each variable that it reads."""
    text = (FOLDER / "workflows" / "deploy.yml").read_text()
    comment = text.partition("name: deploy")[0]
    assert set(re.findall(r"vars\.(\w+)", text)) == set(re.findall(r"^#   (\w+) ", comment, re.MULTILINE))


def test_every_python_is_tested() -> None:
    """The matrix has each version that pyproject.toml takes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first, after = map(int, re.findall(r"3\.(\d+)", project["requires-python"]))
    matrix = WORKFLOWS["check"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == [f"3.{minor}" for minor in range(first, after)]


def test_commands_exist() -> None:
    """Commands are targets of the Makefile, commands of coldframe, or those of AWS."""
    words = [run.split() for _, job in jobs() for run in runs(job)]
    assert {word[1] for word in words if word[0] == "make"} <= set(TARGETS)
    known = main.list_commands(click.Context(main))
    assert {word[1] for word in words if word[0] == ".venv/bin/coldframe"} <= set(known)
    others = {word[0] for word in words} - {"make", ".venv/bin/coldframe"}
    assert others == {"aws", ".venv-sam/bin/sam"}
