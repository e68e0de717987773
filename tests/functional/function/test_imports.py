"""Every route of the function answers in a process without numpy and without onnxruntime's binding."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

ROUTES = """
import base64, json, struct, sys
from types import SimpleNamespace
from coldframe.contract import SQL_PATHS
from coldframe_functions.predict.app import handler

HEAVY = ("numpy", "onnxruntime", "pandas", "scipy", "pyarrow")
event = json.load(open("tests/events/http_api_predict.json"))
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 29_000)
answers = {}

def ask(method, path, body=None, raw=None, **headers):
    http = event["requestContext"]["http"] | {"method": method, "path": path}
    content = json.dumps(body) if raw is None else base64.b64encode(raw).decode()
    answer = handler(event | {
        "rawPath": path,
        "requestContext": event["requestContext"] | {"http": http},
        "headers": event["headers"] | {name.replace("_", "-"): value for name, value in headers.items()},
        "body": content, "isBase64Encoded": raw is not None,
    }, context)
    imported = [name for name in HEAVY if name in sys.modules]
    answers[f"{method} {path} {len(answers)}"] = (answer["statusCode"], imported)
    return answer["body"]

models = [model["id"] for model in json.loads(ask("GET", "/v1/models"))["data"]]
ask("POST", "/v1/predict", {"texts": ["a b", "hockey game"], "heads": ["logreg", "mlp", "rf", "hgb", "auto"]})
for form in ("float", "base64"):
    ask("POST", "/v1/embeddings", {"input": ["hi", "you"], "encoding_format": form})
text = {"name": "text", "shape": [1], "datatype": "BYTES"}
sized = text | {"parameters": {"binary_data_size": 6}}
for model in models:
    ask("GET", f"/v1/models/{model}")
    if model == "topics":
        continue  # the inference protocol serves each head as a model
    ask("GET", f"/v2/models/{model}")
    ask("GET", f"/v2/models/{model}/ready")
    url = f"/v2/models/{model}/infer"
    ask("POST", url, {"inputs": [text | {"data": ["hi"]}]})
    ask("POST", url, {"inputs": [text | {"data": ["hi"]}], "parameters": {"binary_data_output": True}})
    head = json.dumps({"inputs": [sized]}).encode()
    ask("POST", url, raw=head + struct.pack("<I", 2) + b"hi", inference_header_content_length=str(len(head)))
for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/healthz", "/docs", "/openapi.json"):
    ask("GET", path)
for path in SQL_PATHS:
    takes_label = path.endswith(("topic_score", "is_topic"))
    call = ["a text", "sci.space"] if takes_label else ["a text"]
    ask("POST", path, {"calls": [call], "arguments": [call], "num_records": 1, "data": [[0, *call]]})
print(json.dumps(answers))
"""


def test_no_route_imports_numpy(bundle: Path) -> None:
    """Routes of texts, vectors, tensors, SQL engines, models and documents answer, and import none of it."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", ROUTES],
        cwd=ROOT,
        env=environ | {"COLDFRAME_MODEL_DIR": str(bundle)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert len(answers) > 20
    assert {name: imported for name, (_, imported) in answers.items() if imported} == {}
    assert {name: status for name, (status, _) in answers.items() if status >= 400} == {}
