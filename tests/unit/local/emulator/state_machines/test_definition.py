"""What of Amazon States Language is run here."""

import json
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.batch.offline.run_locally import DEFINITION
from coldframe_local.emulator.state_machines.definition import DefinitionUnusable, Map, load_machine

PASS = {"Type": "Pass", "End": True}


def test_the_maps_of_the_template_differ_in_their_reader_only() -> None:
    """Whatever an object's format, its rows are classified the same way."""
    machine = load_machine(DEFINITION, {"FunctionArn": "f"})
    states = json.loads(DEFINITION.read_text())["States"].values()
    maps = [{**state, "ItemReader": None} for state in states if state["Type"] == "Map"]
    assert len(maps) == sum(isinstance(state, Map) for state in machine.States.values()) == 3
    assert maps[0] == maps[1] == maps[2]


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ({"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 1}}}, "Wait"),
        ({"StartAt": "A", "States": {"A": {**PASS, "Assign": {}}}}, "Assign"),
        ({"StartAt": "B", "States": {"A": PASS}}, "'B', which is not there"),
        ({"StartAt": "A", "States": {"A": {"Type": "Pass"}}}, "needs either Next or End"),
        ({"StartAt": "A", "States": {"A": {**PASS, "Comment": "${Missing}"}}}, "given no value"),
        ({"StartAt": "A", "States": {"A": PASS}, "QueryLanguage": "JSONata"}, "QueryLanguage"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(machine: Any, message: str, tmp_path: Path) -> None:
    """A field that would be ignored here would make another run of it on AWS."""
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(machine))
    with pytest.raises(DefinitionUnusable, match=message):
        load_machine(path, {})
