"""KServe, by the models of its own client."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from local.deploy.homes.facts import Choices, Replicas
from local.deploy.homes.kserve import kserve
from tests.conftest import ROOT
from tests.unit.local.deploy.homes.choosing import FEW, USUAL, WITH_CACHE, WITH_GPU, choices, read
from tests.unit.local.deploy.homes.test_knative import check_revision

PYTHON = ROOT / ".venv-kserve" / "bin" / "python"
OF_PREDICTOR = {
    "containerConcurrency", "maxReplicas", "minReplicas", "scaleMetric", "scaleTarget", "timeout",
}  # fmt: skip


def round_trip(documents: list[Any]) -> Any:
    """What KServe 0.21 understands of them."""
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("kserve_round_trip.py")],
        input=json.dumps(documents),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-kserve: run `make .venv-kserve/stamp`")
def test_kserve_understands_every_field() -> None:
    """Nothing is lost in KServe's models, and what they do not know is."""
    documents = [found for chosen in (USUAL, WITH_GPU, WITH_CACHE) for found in read(kserve(chosen))]
    [misspelt] = read(kserve(USUAL))
    misspelt["spec"]["predictor"]["minReplica"] = 0
    *understood, lost = round_trip([*documents, misspelt])
    assert understood == documents
    assert "minReplica" not in lost["spec"]["predictor"]


@FEW
@given(choices)
def test_pod_is_one_that_knative_takes(chosen: Choices) -> None:
    """In its mode `Knative`, KServe hands the predictor's pod to Knative."""
    [found] = read(kserve(chosen))
    check_revision(found["spec"]["predictor"], OF_PREDICTOR)


def test_predictor_speaks_the_open_inference_protocol() -> None:
    """Protocol v2, from zero replicas, in the mode that can start from zero."""
    [found] = read(kserve(Choices("a", "b", USUAL.size, Replicas(0, 10))))
    predictor = found["spec"]["predictor"]
    assert predictor["minReplicas"] == 0
    assert {"name": "PROTOCOL", "value": "v2"} in predictor["containers"][0]["env"]
    assert found["metadata"]["annotations"] == {"serving.kserve.io/deploymentMode": "Knative"}
