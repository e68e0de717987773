"""onnxruntime starts before anything else is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coldframe.coldstart.preload import preload_encoder
from coldframe.graphs import early
from coldframe.graphs.c_api import library_path

LAYER = Path(__file__).parents[4] / "layers" / "shared" / "python"
IMPORTS = f"""
import sys
sys.path.insert(0, {str(LAYER)!r})
before = set(sys.modules)
import coldframe.coldstart.preload
import json
print(json.dumps(sorted(set(sys.modules) - before - {{"json"}})))
"""


def test_little_is_imported_before() -> None:
    """The thread that opens the encoder waits for `ctypes`, and for no other module of any size."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORTS], capture_output=True, text=True, check=True
    )
    imports = json.loads(done.stdout.splitlines()[-1])
    slow = {"typing", "re", "enum", "pathlib", "threading", "contextlib", "functools", "msgspec", "hashlib"}
    assert not slow & {name for name in imports if not name.startswith("json")} - set(modules_of_json())
    assert [name for name in imports if name.startswith("coldframe.graphs")] == [
        "coldframe.graphs",
        "coldframe.graphs.c_api",
        "coldframe.graphs.early",
    ]


def modules_of_json() -> list[str]:
    """Modules that the test's own `import json` brings along."""
    code = "import sys; before = set(sys.modules); import json; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.mark.skipif(library_path() is None, reason="This wheel of onnxruntime has no C library.")
@pytest.mark.parametrize(
    ("environ", "encoders", "is_opened"),
    [
        ({}, ["minilm"], True),
        ({"COLDFRAME_DEVICE": "", "COLDFRAME_THREADS": ""}, ["minilm"], True),
        ({"COLDFRAME_THREADS": "2"}, ["minilm"], False),
        ({"COLDFRAME_DEVICE": "cuda"}, ["minilm"], False),
        ({}, ["minilm", "minilm-gpu"], True),
        ({}, ["minilm", "another"], False),
        ({}, [], False),
    ],
)
def test_encoder_is_opened_where_it_is_known(
    tmp_path: Path, environ: dict[str, str], encoders: list[str], is_opened: bool
) -> None:
    """One encoder for CPUs with default settings is opened early; otherwise the settings have to be read."""
    for name in encoders:
        (tmp_path / "encoders" / name).mkdir(parents=True)
    preload_encoder({"COLDFRAME_MODEL_DIR": str(tmp_path), **environ})
    opening = early.take_opening(str(tmp_path / "encoders" / "minilm" / "encoder.ort"))
    assert (opening is not None) is is_opened
