"""`coldframe bench gpu`, as far as it goes without a GPU: the CPU's provider runs the padded graph."""

from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.gpu.files import PACKED, PADDED, gpu_encoder
from coldframe.model.bundle import load_encoder_manifest
from coldframe.model.files import MANIFEST, encoder_folder
from coldframe.pipeline.models import load_models
from coldframe.timing import StartMark
from coldframe_bench.benchmarks.gpu.device import flops_per_token, peak_flops
from coldframe_bench.benchmarks.gpu.in_process import ARRIVAL, SORTED, make_passes
from coldframe_bench.benchmarks.gpu.measure import GpuOptions, run
from coldframe_bench.benchmarks.gpu.over_http import request_body
from coldframe_bench.benchmarks.gpu.table import gpu_table
from coldframe_bench.records.raw_files import Fact, Timing, read_results
from coldframe_local.cli import main
from coldframe_local.paths import MODELS
from tests.conftest import ENCODER_NAME, EXAMPLE

pytestmark = pytest.mark.measures

NAME = gpu_encoder(ENCODER_NAME)
built = pytest.mark.skipif(
    not (encoder_folder(MODELS, NAME) / MANIFEST).exists(), reason="run `coldframe build --gpu` first"
)


@built
def test_run_on_the_cpu(tmp_path: Path) -> None:
    """Every part leaves its lines: of the packed graph its refusal, of the padded one its passes."""
    out = tmp_path / "gpu.jsonl"
    options = GpuOptions(
        model_dir=MODELS,
        out=out,
        seed=0,
        texts=64,
        file=None,
        seconds=0.05,
        pass_tokens=(512,),
        threads=(1, 2),
        peer_python=None,
        with_http=False,
        provider="CPUExecutionProvider",
    )
    run(options)
    results = read_results(out)
    facts = {(fact.name, fact.subject): fact for fact in results.of(Fact)}
    assert "kernel" in facts["refused", PACKED].text
    lowest = facts["lowest_cosine", PADDED].value
    assert lowest is not None and lowest >= 0.999
    for order in (ARRIVAL, SORTED):
        for threads in (1, 2):
            subject = f"pass, graph {PADDED}, order {order}, tokens 512, threads {threads}"
            rate = facts["tokens_per_s", subject].value
            assert rate is not None and rate > 0
    assert {timing.name for timing in results.of(Timing)} == {"pass", "texts"}
    shown = gpu_table(results)
    assert "million tokens/s" in shown
    assert "no environment with it was named" in shown


@built
def test_bound_of_this_encoder() -> None:
    """Six layers of 4 × 384² + 2 × 384 × 1536 weights, each of which multiplies and adds once per token."""
    facts = load_encoder_manifest(MODELS, NAME).facts
    expected = 2 * 6 * (4 * 384**2 + 2 * 384 * 1536)
    assert flops_per_token(encoder_folder(MODELS, NAME), facts) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("device", "expected"),
    [("NVIDIA H200", 989e12), ("NVIDIA L4", 121e12), ("NVIDIA L40S", 362e12), ("", None)],
)
def test_peak_by_name(device: str, expected: float | None) -> None:
    """A device is known by a whole word of its name; of another one nothing is claimed."""
    assert peak_flops(device) == expected


@given(st.lists(st.integers(2, 256), max_size=100), st.integers(256, 4096))
def test_passes_hold_every_row(lengths: list[int], tokens: int) -> None:
    """In either order; a pass of several rows has no more tokens than asked for."""
    rows = [[number] * length for number, length in enumerate(lengths)]
    for order in (ARRIVAL, SORTED):
        passes = make_passes(rows, order, tokens)
        assert sorted(row for rows in passes for row in rows) == sorted(rows)
        assert all(len(rows) < 2 or sum(map(len, rows)) <= tokens for rows in passes)


def test_requests_are_those_of_the_contract(bundle: Path) -> None:
    """The body that is sent is answered with embeddings as binary data."""
    settings = Settings(model_dir=bundle, models=EXAMPLE, log_level="off")
    texts = [str(Random(number).random()) for number in range(64)]
    body = request_body(texts, None)
    headers = {"content-type": "application/octet-stream", "inference-header-content-length": "400"}
    asked = Request("POST", f"/v2/models/{ENCODER_NAME}/infer", headers=headers, body=body)
    reply = Api(load_models(settings), settings, StartMark()).answer(asked)
    assert reply.status == 200
    assert len(reply.body) > 64 * 384 * 4


def test_no_gpu_is_said_clearly() -> None:
    """Before anything is measured: what is missing, and what to do."""
    done = CliRunner().invoke(main, ["bench", "gpu"])
    assert done.exit_code == 1
    assert "--gpus all" in done.output or "onnxruntime-gpu" in done.output
