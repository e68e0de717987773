"""The OpenAPI document against the application that it describes, by schemathesis."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, settings

from coldframe.api.access import by_token
from coldframe.api.api import Api, Request
from coldframe.api.catalogue import find_protocol_model
from coldframe.api.openapi import openapi
from coldframe.config import Settings
from coldframe.server.facts import PROBES
from coldframe.timing import StartMark
from coldframe_functions.predict.engine import clock_of
from coldframe_functions.predict.routes import create_app
from tests.conftest import served, tiny_encoder_manifest, tiny_predictor

pytestmark = pytest.mark.waits

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="comes with schemathesis")
schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis, which `make test` installs")

TEXT = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}
ENGINE = Api(served(tiny_predictor()), Settings(log_level="off", max_texts=100), StartMark())
ENCODER = tiny_encoder_manifest().name
APP = create_app(ENGINE, clock_of)
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)
DOCUMENT = APP.openapi()
SCHEMA.config.checks.negative_data_rejection.expected_statuses += ["413"]  # too many texts
POSITIVE = [schemathesis.GenerationMode.POSITIVE]
SETTINGS = settings(
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# Bytes are bytes to the document, and JSON followed by tensors to the application. That what fits the schema
# is answered is the next test's.
EXCLUDED = [schemathesis.checks.CHECKS.get_one("positive_data_acceptance")]


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@SETTINGS
def test_answers_are_as_documented(case: Any) -> None:
    """Status, media type and shape of each answer are those that the document promises."""
    case.call_and_validate(excluded_checks=EXCLUDED)


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@SETTINGS
def test_what_fits_the_schema_is_not_refused(case: Any) -> None:
    """A request that the document allows is answered, or there is no time for it."""
    assume(case.media_type in (None, "application/json") and case.meta.generation.mode in POSITIVE)
    if "version" in case.path_parameters:  # encoder and heads have versions of their own
        named = find_protocol_model(ENGINE.models, case.path_parameters["model"])
        case.path_parameters["version"] = named.version
    if case.path.endswith("/infer"):
        case.body = consistent(case.body, case.path_parameters["model"])
    if case.path == "/v1/predict":  # an objective may be out of reach, and few texts are explained
        case.body = {name: value for name, value in case.body.items() if name not in ("objective", "explain")}
    response = case.call()
    assert response.status_code in (200, 503), response.json()


def consistent(body: dict[str, Any], model: str) -> dict[str, Any]:
    """The request, keeping the rules that JSON Schema has no words for."""
    (tensor,) = body["inputs"]
    assume(tensor["name"] == "text" or model not in (ENCODER, "topics-auto"))
    if tensor["name"] == "embedding":
        rows = np.ravel(tensor["data"])
        rows = rows[: len(rows) // 8 * 8].clip(-1, 1).reshape(-1, 8)
        tensor = tensor | {"data": rows.tolist()}
    tensor = tensor | {"shape": [len(tensor["data"]), *tensor["shape"][1:]]}
    asked = {output["name"]: output for output in body.get("outputs") or []}
    outputs = [output for name, output in asked.items() if (name == "embedding") == (model == ENCODER)]
    return body | {"inputs": [tensor], "outputs": outputs}


def examples() -> list[Any]:
    """Each body that the documentation proposes, with its route as it is filled in there."""
    found = []
    for path, operations in DOCUMENT["paths"].items():
        post = operations.get("post", {})
        filled = path
        for parameter in post.get("parameters", []):
            filled = filled.replace("{" + parameter["name"] + "}", parameter["example"])
        bodies = post.get("requestBody", {"content": {}})["content"].get("application/json", {})
        found += [
            pytest.param(filled, body["value"], id=f"{path} {name}")
            for name, body in bodies.get("examples", {}).items()
        ]
    return found


@pytest.mark.parametrize(("path", "body"), examples())
def test_what_the_documentation_proposes_works(path: str, body: object) -> None:
    """Every request of "Try it out" is answered as it stands."""
    assert ENGINE.answer(Request("POST", path, body=json.dumps(body).encode())).status == 200


def test_every_route_that_reads_has_examples_and_a_group() -> None:
    """Each route is in a group that is described, and each that reads a body proposes one."""
    groups = {tag["name"] for tag in DOCUMENT["tags"]}
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            assert {*operation["tags"]} <= groups
            if "requestBody" in operation:
                assert operation["requestBody"]["content"]["application/json"]["examples"]


def test_every_operation_says_who_may_call() -> None:
    """Behind API Gateway each operation has its refusals, and a scheme for each AuthMode that asks."""
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert schemes["iam"]["x-amazon-apigateway-authtype"] == "awsSigv4"
    assert (schemes["jwt"]["scheme"], DOCUMENT["security"]) == ("bearer", [{"iam": []}, {"jwt": []}, {}])
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            for status in ("401", "403", "429"):
                assert [*operation["responses"][status]["content"]] == ["application/json"]
            late = operation["responses"]["503"]["content"]
            assert {*late} == {"application/json", "application/problem+json"}


def test_a_server_with_tokens_says_so() -> None:
    """Its one scheme is a bearer token; probes need none, and have no 401."""
    document = openapi(ENGINE.models, ENGINE.settings, by_token(PROBES))
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert ("401" in operation["responses"]) == (path not in PROBES)
            assert operation.get("security") == ([] if path in PROBES else None)
            assert "429" not in operation["responses"]


REFUSED = [
    ("PredictRequest", {"text": "a", "texts": ["a"]}),
    ("PredictRequest", {"top_k": 1}),
    ("PredictRequest", {"text": "a", "heads": ["string"]}),
    ("PredictRequest", {"texts": ["a"] * 101}),
    ("EmbeddingsRequest", {"input": "a", "dimensions": 7}),
    ("InferRequest", {"inputs": [TEXT | {"data": None}]}),
    ("InferRequest", {"inputs": [TEXT | {"parameters": {"binary_data_size": 5}}]}),
    ("InferRequest", {"inputs": [TEXT | {"datatype": "INT64"}]}),
    ("InferRequest", {"inputs": [TEXT | {"shape": [1, 1]}]}),
    ("InferRequest", {"inputs": [TEXT, TEXT]}),
    ("InferRequest", {"inputs": [TEXT | {"name": "other"}]}),
    ("InferRequest", {"inputs": [TEXT], "outputs": [{"name": "other"}]}),
]


@pytest.mark.parametrize(("name", "body"), REFUSED)
def test_what_is_refused_does_not_fit_the_schema(name: str, body: dict[str, Any]) -> None:
    """What the contract refuses, the document refuses."""
    whole = {**DOCUMENT["components"]["schemas"][name], "components": DOCUMENT["components"]}
    assert not jsonschema_rs.validator_for(whole).is_valid(body)


def test_document_is_the_same_on_every_python() -> None:
    """Descriptions that come from docstrings hold no indentation: only Python 3.13 removes it."""
    assert "\n  " not in json.dumps(DOCUMENT).replace("\\n", "\n")
