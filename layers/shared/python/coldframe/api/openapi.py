"""The OpenAPI document: generated from the message types, and as strict as the request checks.

JSON Schema cannot express these rules, which stand in descriptions: `shape` counts the elements of `data`; an
input or output belongs to the model in the path; an output is requested once; an embedding that no encoder
computes may be too large.
"""

import re
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import msgspec

import coldframe
from coldframe import schemas
from coldframe.api import messages
from coldframe.api.access import Access
from coldframe.api.catalogue import model_cards, protocol_models
from coldframe.api.operations import FEEDBACK_OPERATIONS, JOB_OPERATIONS, OPERATIONS, TAGS, Operation
from coldframe.config import Settings
from coldframe.contract import JSON
from coldframe.errors import REQUEST_ERRORS, MethodNotAllowed, NotFound, NotReady, RequestError
from coldframe.pipeline.models import Models

Schema = dict[str, Any]
_REF = "#/components/schemas/{name}"
_NULL = {"type": "null"}
_FP32 = {"type": "number", "minimum": -3.4e38, "maximum": 3.4e38}


def openapi(models: Models, settings: Settings, access: Access) -> dict[str, Any]:
    """The document of an environment that serves `models`. access: access control in front of the API."""
    jobs = JOB_OPERATIONS if settings.jobs_table else {}
    feedback = FEEDBACK_OPERATIONS if settings.feedback_key and settings.feedback_table else {}
    operations = {**OPERATIONS, **jobs, **feedback}
    tags = {operation.tag for operation in operations.values()}
    types = {kind for operation in operations.values() for kind in (operation.request, operation.reply)}
    kinds = sorted(filter(None, types | {schemas.Problem}), key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    for component in components.values():
        # Docstrings keep the source's indentation before Python 3.13.
        component["description"] = cleandoc(component["description"])
    _tighten_predict(components["PredictRequest"], models, settings)
    _tighten_embeddings(components["EmbeddingsRequest"], models, settings)
    _tighten_infer(components, models, settings)
    _tighten_sql(components, models, settings)
    paths: dict[str, Any] = {}
    for (method, path), operation in operations.items():
        described = _describe(operation, path, models)
        _add_access(described, path, access)
        paths.setdefault(path, {})[method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Coldframe", "version": coldframe.__version__, "description": _ABOUT},
        "tags": [
            {"name": name, "description": description} for name, description in TAGS.items() if name in tags
        ],
        "security": list(access.requirement),
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": dict(access.schemes)},
    }


_ABOUT = "Text classification from AWS Lambda, its cold starts under control. Errors are RFC 9457 problems."


def _tighten_predict(component: Schema, models: Models, settings: Settings) -> None:
    """Limits the schema of `/v1/predict`: one of `text` and `texts`, names of models and heads, number of
    texts.
    """
    component["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]
    component["properties"]["texts"]["maxItems"] = settings.max_texts
    component["properties"]["model"] |= {"enum": models.names, "default": models.names[0]}
    heads = component["properties"]["heads"]
    names = dict.fromkeys(head for predictor in models.all() for head in predictor.min_probability)
    heads["items"] = {"type": "string", "enum": list(names)}
    heads["default"] = [models.default.manifest.default_head]


def _tighten_embeddings(component: Schema, models: Models, settings: Settings) -> None:
    """Limits the schema of `/v1/embeddings`: one text or several, and the dimensions of the encoders."""
    properties = component["properties"]
    properties["input"]["anyOf"][1]["maxItems"] = settings.max_texts
    dimensions = _dimensions(models)
    own = " or ".join(map(str, dimensions))
    properties["dimensions"] = {
        "description": f"The encoder's own, {own}, or omitted: embeddings cannot be shortened.",
        "enum": [*dimensions, None],
        "default": None,
    }


def _tighten_sql(components: dict[str, Schema], models: Models, settings: Settings) -> None:
    """Limits the schemas of batches: number of rows, labels of the default model, and names."""
    labels = {"enum": [*models.default.manifest.labels, None]}
    for name in ("SnowflakeTexts", "BigQueryTexts", "RedshiftTexts"):
        for component in (components[name], components[f"{name}AndLabels"]):
            rows = next(
                schema for schema in component["properties"].values() if schema.get("type") == "array"
            )
            rows["maxItems"] = settings.max_texts
            if component["title"].endswith("AndLabels"):
                row = rows["items"] if "prefixItems" in rows["items"] else rows["items"]["anyOf"][0]
                row["prefixItems"][-1] = labels
    for name in ("Context", "RedshiftTexts", "RedshiftTextsAndLabels"):
        properties = components[name]["properties"]
        properties["model"]["enum"] = models.names
        properties["head"]["enum"] = list(models.default.min_probability)


def _dimensions(models: Models) -> list[int]:
    return list(dict.fromkeys(predictor.encoder.facts.dimension for predictor in models.all()))


def _tighten_infer(components: dict[str, Schema], models: Models, settings: Settings) -> None:
    """Limits the tensors to those of the served models. Binary tensors are another media type."""
    request = components["InferRequest"]["properties"]
    rows = settings.max_texts
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": rows}
    text = _tensor("text", "BYTES", rows, [], texts)
    embeddings = [_embeddings(rows, columns) for columns in _dimensions(models)]
    components["InferInput"] = {
        "title": "InferInput",
        "description": "The one input: texts, or for a head also embeddings. `shape` counts its `data`.",
        "oneOf": [text, *embeddings],
    }
    request["inputs"]["maxItems"] = 1
    names = ["embedding", "label", "probability", "scores"]
    output = components["RequestedOutput"]["properties"]
    output["name"] = {
        "enum": names,
        "description": "`embedding` of the encoder, the others of a head. Request each output once.",
    }
    components["RequestedParameters"]["properties"] |= {
        "classification": {**_NULL, "description": "Not supported."},
        "shared_memory_region": {**_NULL, "description": "Not supported."},
    }
    del components["InputParameters"]  # for binary tensors


def _embeddings(rows: int, columns: int) -> Schema:
    """Schema of embeddings with the given numbers of dimensions, nested by row or flat."""
    row = {"type": "array", "items": _FP32, "minItems": columns, "maxItems": columns}
    by_row = {"type": "array", "items": row, "minItems": 1, "maxItems": rows}
    flat = {"type": "array", "items": _FP32, "minItems": columns, "maxItems": columns * rows}
    return _tensor("embedding", "FP32", rows, [columns], {"oneOf": [by_row, flat]})


def _tensor(name: str, datatype: str, max_rows: int, columns: Sequence[int], data: Schema) -> Schema:
    """A tensor [n, *columns] with its data in JSON."""
    rows = {"type": "integer", "minimum": 1, "maximum": max_rows}
    dimensions = [rows, *({"const": size} for size in columns)]
    absent = {**_NULL, "description": "Not beside `data`."}
    shape = {"type": "array", "prefixItems": dimensions, "items": False, "minItems": len(dimensions)}
    return {
        "title": name,
        "type": "object",
        "properties": {
            "name": {"const": name},
            "datatype": {"const": datatype},
            "shape": shape,
            "data": data,
            "parameters": {
                "type": ["object", "null"],
                "properties": {"binary_data_size": absent, "shared_memory_region": absent},
            },
        },
        "required": ["name", "datatype", "shape", "data"],
    }


def _describe(operation: Operation, path: str, models: Models) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": {str(operation.status): _content("The answer", operation.reply, operation.tensors)},
    }
    if operation.description:
        described["description"] = operation.description
    if operation.request is not None:
        content = _content("", operation.request, operation.tensors)
        content["content"][JSON]["examples"] = {
            name: {"summary": name, "value": value} for name, value in operation.examples.items()
        }
        described["requestBody"] = {"required": True, **content}
    if parameters := [_parameter(name, path, models) for name in re.findall(r"{(\w+)}", path)]:
        described["parameters"] = parameters
    for error in REQUEST_ERRORS if operation.request else (NotFound, MethodNotAllowed, NotReady):
        _add_problem(described["responses"], error)
    return described


def _add_access(described: dict[str, Any], path: str, access: Access) -> None:
    """Adds authentication and refusals to the operations. A status may come from the gateway and from the
    API.
    """
    if path in access.open_paths:
        described["security"] = []
        return
    for status, refusal in access.refusals.items():
        own = described["responses"].get(status, {"description": "", "content": {}})
        description = f"{own['description']} {refusal['description']}".strip()
        content = own["content"] | refusal["content"]
        described["responses"][status] = {**refusal, "description": description, "content": content}


def _parameter(name: str, path: str, models: Models) -> dict[str, Any]:
    """A parameter in the path, with all its values; the first value is the example."""
    if name == "job":
        of_job = {"type": "string", "pattern": "^[a-z2-7]{26}$"}
        return {"name": name, "in": "path", "required": True, "schema": of_job}
    if name == "part":
        number = {"type": "integer", "minimum": 0, "maximum": 99_999}
        return {"name": name, "in": "path", "required": True, "schema": number}
    if path.startswith("/v1"):
        values = [card.id for card in model_cards(models, 0)]
    else:
        protocol = dict(sorted(protocol_models(models).items(), key=lambda item: item[1].head is None))
        values = (
            list(dict.fromkeys(n.version for n in protocol.values())) if name == "version" else list(protocol)
        )
    schema = {"type": "string", "enum": values}
    return {"name": name, "in": "path", "required": True, "schema": schema, "example": values[0]}


def _add_problem(responses: dict[str, Any], error: type[RequestError]) -> None:
    """Adds an error's response. Two errors of one status share an entry."""
    response = responses.setdefault(
        str(int(error.status)), _content("", schemas.Problem, media_type="application/problem+json")
    )
    descriptions = [response["description"]] if "description" in response else []
    # A docstring of several lines keeps its indentation before Python 3.13.
    response["description"] = " ".join([*descriptions, *(error.__doc__ or error.title).split()])


def _content(description: str, kind: type, tensors: bool = False, media_type: str = JSON) -> dict[str, Any]:
    content: dict[str, Any] = {media_type: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}
    if tensors:
        content[messages.BINARY] = {"schema": {"type": "string", "format": "binary"}}
    return {"description": description, "content": content} if description else {"content": content}
