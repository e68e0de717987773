"""Run in .venv-kserve: InferenceServices from standard input, through KServe's own models and back.

What the models do not know is lost on the way, and a type that they do not take is an error.
"""

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

# The package's own __init__ imports all that it serves models with; its models need none of that.
found = importlib.util.find_spec("kserve")
assert found is not None and found.submodule_search_locations is not None
package = ModuleType("kserve")
package.__path__ = list(found.submodule_search_locations)
sys.modules["kserve"] = package

import kserve.models  # noqa: E402
from kubernetes import client  # noqa: E402

for name in dir(kserve.models):
    if not hasattr(client.models, name):
        setattr(client.models, name, getattr(kserve.models, name))

api = client.ApiClient()
read = [
    api.deserialize(SimpleNamespace(data=json.dumps(document)), "V1beta1InferenceService")
    for document in json.load(sys.stdin)
]
json.dump(api.sanitize_for_serialization(read), sys.stdout)
