"""An encoder for GPUs: built for real, and served without one as far as that goes.

What needs CUDA runs where a GPU is: `coldframe bench gpu`.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from coldframe.api.api import Api, Request
from coldframe.config import Settings, load_settings
from coldframe.errors import BundleCorrupt, BundleMissing, DeviceMissing, EncoderDrift
from coldframe.gpu.encoder import MixedEncoder
from coldframe.gpu.files import MIN_COSINE, PACKED, PADDED, WEIGHTS, gpu_encoder
from coldframe.gpu.load import OnGpu, load_on_gpu, opener
from coldframe.gpu.start import GRAPHS, check_together, start_encoder
from coldframe.model.bundle import EncoderManifest, check_files, load_encoder_manifest, load_golden
from coldframe.model.files import encoder_folder
from coldframe.model.tokenizer import TextWindows
from coldframe.pipeline import models as pipeline
from coldframe.pipeline.models import load_models
from coldframe.server.loading import limits_for, load
from coldframe.server.settings import load_server_settings
from coldframe.timing import NO_DEADLINE, StartMark
from coldframe_local.paths import BUILD_PYTHON
from coldframe_training.embeddings.matrices import to_matrix
from tests.conftest import ENCODER_NAME, EXAMPLE
from tests.support.made_encoders import in_build_environment, reuse
from tests.support.server_process import serving, starting

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(
        not BUILD_PYTHON.exists(),
        reason=f"no {BUILD_PYTHON}: nothing was converted. `make build` sets it up.",
    ),
]

CPU = "CPUExecutionProvider"
NAME = gpu_encoder(ENCODER_NAME)
TEXTS = ["The shuttle reached orbit", "short", "The goalie made forty saves. " * 40, "?", "a b c d e f g h"]


@pytest.fixture(scope="module")
def built(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the example, its encoder, and that encoder built for GPUs, by the real tools."""

    def make(models: Path) -> None:
        shutil.copytree(bundle, models, dirs_exist_ok=True)
        in_build_environment("tests.support.built_for_gpu", models)

    return reuse("gpu", make, tmp_path_factory.mktemp("gpu") / "models", bundle)


@pytest.fixture(scope="module")
def base(built: Path) -> EncoderManifest:
    return load_encoder_manifest(built, ENCODER_NAME)


@pytest.fixture(scope="module")
def manifest(built: Path) -> EncoderManifest:
    return load_encoder_manifest(built, NAME)


@pytest.fixture(scope="module")
def folder(built: Path) -> Path:
    return encoder_folder(built, NAME)


@pytest.fixture(scope="module")
def windows(folder: Path, manifest: EncoderManifest) -> TextWindows:
    return TextWindows(folder, manifest.facts, use_plain=False)


@pytest.fixture(scope="module")
def padded(folder: Path, manifest: EncoderManifest) -> MixedEncoder:
    """The padded graph, run by the provider that runs everywhere."""
    return MixedEncoder(folder / PADDED, manifest.facts.dimension, CPU)


@pytest.fixture(scope="module")
def graphs(built: Path) -> dict[str, Any]:
    """What the build environment reads in both graphs."""
    described: dict[str, Any] = json.loads((built / "graphs.json").read_bytes())
    return described


def test_packed_graph(graphs: dict[str, Any]) -> None:
    """Every attention is packed, between one removal of padding and one restoration; the rest is fused."""
    found = Counter(graphs[PACKED]["operations"])
    expected = {"PackedAttention": 6, "RemovePadding": 1, "RestorePadding": 1, "Attention": 0}
    expected |= {"EmbedLayerNormalization": 1, "SkipLayerNormalization": 12, "BiasGelu": 6}
    assert {kind: found[kind] for kind in expected} == expected


def test_padded_graph(graphs: dict[str, Any]) -> None:
    """The same operations, but for the padding."""
    found = Counter(graphs[PADDED]["operations"])
    expected = {"PackedAttention": 0, "RemovePadding": 0, "RestorePadding": 0, "Attention": 6}
    expected |= {"EmbedLayerNormalization": 1, "SkipLayerNormalization": 12, "BiasGelu": 6}
    assert {kind: found[kind] for kind in expected} == expected


@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_take_and_give_the_same(graphs: dict[str, Any], graph: str) -> None:
    """Token ids and a mask, int32 (rows, tokens), go in; float32 (rows, 384) comes out."""
    shape = ["rows", "tokens"]
    assert graphs[graph]["inputs"] == {"input_ids": ["INT32", shape], "attention_mask": ["INT32", shape]}
    assert graphs[graph]["outputs"] == {"embedding": ["FLOAT", ["rows", 384]]}


@pytest.mark.parametrize("graph", GRAPHS)
def test_weights_are_in_half_precision_and_shared(graphs: dict[str, Any], graph: str, folder: Path) -> None:
    """Every weight is fp16, in the one file; it is hardly larger than the weights are."""
    assert set(graphs[graph]["weights"]) == {"FLOAT16"}
    assert graphs[graph]["outside"] == [WEIGHTS]
    parameters = sum(graphs[graph]["sizes"])
    assert abs((folder / WEIGHTS).stat().st_size - 2 * parameters) < 500_000
    assert (folder / graph).stat().st_size < 100_000


@pytest.mark.parametrize("graph", GRAPHS)
def test_operations_are_in_order(graphs: dict[str, Any], graph: str) -> None:
    """Each reads what was computed before it, as ONNX asks for."""
    assert graphs[graph]["is_sorted"]


def test_version_is_another_one(base: EncoderManifest, manifest: EncoderManifest, folder: Path) -> None:
    """Of the same weights and the same facts: only so does no cache mix the devices."""
    check_files(folder, manifest)
    assert manifest.version != base.version
    assert (manifest.source, manifest.facts) == (base.source, base.facts)
    assert {PACKED, PADDED, WEIGHTS} < manifest.files.keys()


def test_building_again_makes_the_same_version(built: Path, manifest: EncoderManifest) -> None:
    """To the byte: the weights, both graphs, and so the digest."""
    before = manifest.version
    in_build_environment("tests.support.built_for_gpu", built)
    assert load_encoder_manifest(built, NAME).version == before


def test_numbers_of_the_padded_graph(padded: MixedEncoder, windows: TextWindows, folder: Path) -> None:
    """In fp16, and all golden texts in one pass, each embedding has cosine 0.999 to fp32, at least."""
    golden = load_golden(folder)
    assert golden.min_cosine == MIN_COSINE
    assert check_together(padded, windows, golden) >= 0.9999


def test_rows_are_normalised(padded: MixedEncoder, windows: TextWindows) -> None:
    """float32 of length 1, in input order."""
    rows = [row for text in windows.cut(TEXTS) for row in text]
    found = to_matrix(padded.encode(rows))
    assert found.shape == (len(rows), 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)


def test_neighbours_change_nothing(padded: MixedEncoder, windows: TextWindows) -> None:
    """A row among longer ones has the embedding that it has alone, within 0.001."""
    rows = [row for text in windows.cut(TEXTS) for row in text]
    together = padded.encode(rows)
    for row, embedding in zip(rows, together, strict=True):
        assert np.allclose(to_matrix(padded.encode([row])), to_matrix([embedding]), atol=1e-3)


def test_large_passes_are_split(folder: Path, padded: MixedEncoder, windows: TextWindows) -> None:
    """Where padding would make a pass too large, it becomes several, and answers stay in input order."""
    rows = [row for text in windows.cut(TEXTS) for row in text]
    small = MixedEncoder(folder / PADDED, 384, CPU, max_positions=300)
    assert np.allclose(to_matrix(small.encode(rows)), to_matrix(padded.encode(rows)), atol=1e-3)


def test_no_rows(padded: MixedEncoder) -> None:
    """An empty pass is not an error."""
    assert padded.encode([]) == []


def test_many_threads(padded: MixedEncoder, windows: TextWindows) -> None:
    """Passes of several threads do not mix."""
    rows = [row for text in windows.cut(TEXTS) for row in text]
    expected = [padded.encode([row]) for row in rows]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = list(pool.map(lambda row: padded.encode([row]), rows))
            assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


# --- which graph is served -----------------------------------------------------------------


@pytest.fixture
def log() -> list[Any]:
    return []


@pytest.fixture
def noted(log: list[Any]) -> Callable[[str], object]:
    return lambda line: log.append(json.loads(line))


def test_packed_graph_that_cannot_run(
    folder: Path,
    manifest: EncoderManifest,
    windows: TextWindows,
    log: list[Any],
    noted: Callable[[str], object],
) -> None:
    """The CPU's provider has no PackedAttention: the padded graph is served, and the log says why."""
    encoder = start_encoder(opener(folder, manifest, CPU), windows, load_golden(folder), noted)
    assert isinstance(encoder, MixedEncoder)
    assert encoder.graph == PADDED
    assert [line["event"] for line in log] == ["gpu-graph-refused", "gpu-graph"]
    assert log[0]["graph"] == PACKED
    assert "Failed to find kernel" in log[0]["because"]
    assert (log[1]["graph"], log[1]["lowest_cosine"] >= MIN_COSINE) == (PADDED, True)


def test_packed_graph_with_wrong_numbers(
    folder: Path,
    manifest: EncoderManifest,
    windows: TextWindows,
    tmp_path: Path,
    log: list[Any],
    noted: Callable[[str], object],
) -> None:
    """A graph that runs, but with damaged weights, fails the golden vectors: the next one is served."""
    damaged = copy_of(folder, tmp_path)
    spoil(damaged / WEIGHTS)
    places = {PACKED: damaged / PADDED, PADDED: folder / PADDED}
    encoder = start_encoder(
        lambda graph: MixedEncoder(places[graph], 384, CPU), windows, load_golden(folder), noted
    )
    assert isinstance(encoder, MixedEncoder)
    assert [line["event"] for line in log] == ["gpu-graph-refused", "gpu-graph"]
    assert "cosine" in log[0]["because"]


def test_no_graph_left(folder: Path, manifest: EncoderManifest, windows: TextWindows, tmp_path: Path) -> None:
    """With both refused nothing is served; the error names both graphs, and what is wrong with each."""
    damaged = copy_of(folder, tmp_path)
    spoil(damaged / WEIGHTS)
    with pytest.raises(
        EncoderDrift, match=rf"{PACKED}: .*Failed to find kernel.* {PADDED}: .*cosine"
    ) as refused:
        start_encoder(opener(damaged, manifest, CPU), windows, load_golden(folder), lambda line: None)
    assert "golden" in str(refused.value)


def test_a_provider_that_is_not_there(folder: Path) -> None:
    """onnxruntime would run a graph on the CPU without a word: that is an error here."""
    with pytest.raises(DeviceMissing, match=r"by CUDAExecutionProvider.*--gpus all"):
        MixedEncoder(folder / PADDED, 384, "CUDAExecutionProvider")


def test_a_damaged_graph(folder: Path, tmp_path: Path) -> None:
    """A graph that is cut off, and one that is missing, are named."""
    damaged = copy_of(folder, tmp_path)
    (damaged / PADDED).write_bytes((damaged / PADDED).read_bytes()[:1000])
    with pytest.raises(BundleCorrupt, match=PADDED):
        MixedEncoder(damaged / PADDED, 384, CPU)
    (damaged / PADDED).unlink()
    with pytest.raises(BundleMissing, match=PADDED):
        MixedEncoder(damaged / PADDED, 384, CPU)


# --- by the settings -----------------------------------------------------------------------


def no_gpu() -> None:
    raise DeviceMissing("No NVIDIA driver is visible here.")


def settings_of(models: Path, device: str) -> Settings:
    return load_settings(
        {"COLDFRAME_MODEL_DIR": str(models), "COLDFRAME_MODELS": EXAMPLE, "COLDFRAME_DEVICE": device}
    )


@pytest.fixture
def with_cpu_as_gpu(monkeypatch: pytest.MonkeyPatch, noted: Callable[[str], object]) -> Iterator[None]:
    """Whatever asks for a GPU gets the CPU's provider: all is as there, but for its speed."""
    real = load_on_gpu

    def load(settings: Settings, built: EncoderManifest) -> OnGpu | None:
        return real(settings, built, check=lambda: None, provider=CPU, log=noted)

    monkeypatch.setattr("coldframe.gpu.load.load_on_gpu", load)
    yield


@pytest.mark.parametrize("device", ["cuda", "auto"])
@pytest.mark.usefixtures("with_cpu_as_gpu")
def test_models_on_the_device(
    built: Path, base: EncoderManifest, manifest: EncoderManifest, device: str
) -> None:
    """Models keep their names and answer by the encoder for GPUs; model and encoder have other versions."""
    on_cpu = load_models(settings_of(built, "cpu")).default
    models = load_models(settings_of(built, device))
    predictor = models.default
    assert predictor.encoder.name == base.name
    assert predictor.encoder.version == manifest.version
    assert predictor.manifest.version not in (on_cpu.manifest.version, base.version)
    assert predictor.manifest.encoder.version == manifest.version
    embedding = np.frombuffer(predictor.embed(TEXTS[:1]).vectors[0], np.float32)
    expected = np.frombuffer(on_cpu.embed(TEXTS[:1]).vectors[0], np.float32)
    assert 0.97 <= embedding @ expected < 0.99999
    assert predictor.predict(TEXTS, ["auto", "logreg"]).usage.batches >= 1


@pytest.mark.usefixtures("with_cpu_as_gpu")
def test_the_whole_contract_on_the_device(built: Path) -> None:
    """A request is answered as on the CPU: the same model and labels, another version, rows in one pass."""
    settings = settings_of(built, "cuda")
    body = msgspec.json.encode({"texts": TEXTS, "heads": ["logreg"]})
    asked = Request("POST", "/v1/predict", body=body)
    reply = Api(load_models(settings), settings, StartMark()).answer(asked)
    answer = json.loads(reply.body)
    on_cpu = replace(settings, device="cpu")
    expected = json.loads(Api(load_models(on_cpu), on_cpu, StartMark()).answer(asked).body)
    assert (reply.status, answer["model"]) == (200, EXAMPLE)
    assert answer["version"] != expected["version"]
    assert answer["usage"]["batches"] == 1 < expected["usage"]["batches"]
    labels = [prediction["heads"]["logreg"]["label"] for prediction in answer["predictions"]]
    assert labels[0] == expected["predictions"][0]["heads"]["logreg"]["label"]


def test_windows_of_ones_own(built: Path, base: EncoderManifest) -> None:
    """Another number of windows is another version on a GPU, too."""
    settings = replace(settings_of(built, "cuda"), max_windows=2)
    found = load_on_gpu(settings, base, check=lambda: None, provider=CPU, log=lambda line: None)
    usual = load_on_gpu(settings_of(built, "cuda"), base, lambda: None, CPU, lambda line: None)
    assert found is not None
    assert usual is not None
    assert found.manifest.version != usual.manifest.version
    assert len(found.tokenizer.cut(["word " * 2000])[0]) == 2
    embedded = found.encoder.embed(found.tokenizer.cut(TEXTS), NO_DEADLINE)
    assert all(vector is not None for vector in embedded.vectors)


def test_cuda_without_a_gpu(built: Path) -> None:
    """The error says so at once; nothing is served by the CPU in silence."""
    with pytest.raises(DeviceMissing, match="COLDFRAME_DEVICE"):
        load_models(settings_of(built, "cuda"))


def test_auto_without_a_gpu(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The CPU serves, by its own version, and the log says why."""
    models = load_models(settings_of(built, "auto"))
    assert models.default.encoder.version == load_encoder_manifest(built, ENCODER_NAME).version
    line = json.loads(capsys.readouterr().out)
    assert line["event"] == "gpu-not-used"
    assert "driver" in line["because"] or "onnxruntime" in line["because"]


def test_nothing_built_for_a_gpu(
    bundle: Path, base: EncoderManifest, noted: Callable[[str], object], log: list[Any]
) -> None:
    """With `cuda` an error that names the command, with `auto` the CPU, and a line in the log."""
    with pytest.raises(BundleMissing, match="coldframe build --gpu"):
        load_on_gpu(settings_of(bundle, "cuda"), base, check=lambda: None, provider=CPU)
    assert load_on_gpu(settings_of(bundle, "auto"), base, lambda: None, CPU, noted) is None
    assert "coldframe build --gpu" in log[0]["because"]


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_an_encoder_of_other_weights(built: Path, base: EncoderManifest, device: str) -> None:
    """Models that were trained on one encoder are never served by another one, not even with `auto`."""
    other = replace(base, source=replace(base.source, sha256="0" * 64))
    with pytest.raises(BundleCorrupt, match="other weights"):
        load_on_gpu(settings_of(built, device), other, check=lambda: None, provider=CPU)


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_a_gpu_that_computes_wrongly(built: Path, base: EncoderManifest, tmp_path: Path, device: str) -> None:
    """Both graphs refused: no device setting makes the server ready."""
    models = tmp_path / "models"
    shutil.copytree(built, models)
    spoil(encoder_folder(models, NAME) / WEIGHTS)
    with pytest.raises(EncoderDrift, match=PADDED):
        load_on_gpu(settings_of(models, device), base, lambda: None, CPU, lambda line: None)


# --- in the server -------------------------------------------------------------------------


@pytest.mark.usefixtures("with_cpu_as_gpu")
def test_server_on_the_device(built: Path, manifest: EncoderManifest) -> None:
    """Passes of requests hold rows of several lengths; few run at once; an answer is that of the encoder."""
    settings = load_server_settings(
        {"COLDFRAME_MODEL_DIR": str(built), "COLDFRAME_MODELS": EXAMPLE, "COLDFRAME_DEVICE": "cuda"}
    )
    models, driver = load(settings)
    try:
        assert models.default.encoder.version == manifest.version
        limits = limits_for(models, settings)
        assert (limits.workers, limits.budget_tokens) == (2, 32_768)
        alone = load_models(settings).default.embed(TEXTS).vectors
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda number: models.default.embed(TEXTS).vectors, range(16)))
        expected = to_matrix(alone)
        assert all(np.allclose(to_matrix(vectors), expected, atol=1e-3) for vectors in found)
        assert models.default.predict(TEXTS, ["auto", "hgb"]).usage.texts == len(TEXTS)
    finally:
        driver.close()


def test_server_without_a_gpu(built: Path) -> None:
    """With `cuda` the process ends and says why; with `auto` it is ready, on the CPU."""
    environ = {"COLDFRAME_MODELS": EXAMPLE, "COLDFRAME_L1_CACHE_BYTES": "0"}
    with starting(built, COLDFRAME_DEVICE="cuda", **environ) as server:
        assert server.wait() == 1
        assert "COLDFRAME_DEVICE" in server.stderr() + json.dumps(server.lines)
    with serving(built, COLDFRAME_DEVICE="auto", **environ) as server, server.client() as client:
        assert server.event("gpu-not-used")["because"]
        answer = client.post("/v1/predict", json={"text": TEXTS[0]}).json()
        assert answer["model"] == EXAMPLE
        assert server.end() == 0


def test_the_cpu_imports_nothing_of_it() -> None:
    """The pipeline names the room in one function only, which the device `cpu` never calls."""
    assert not [name for name in vars(pipeline) if "gpu" in name and name != "_on_gpu"]


def copy_of(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target / "copy"))


def spoil(weights: Path) -> None:
    """Turns the sign of many weights of the layers: still a graph that runs, and another model."""
    content = bytearray(weights.read_bytes())
    start = len(content) - 8_000_000  # of the layers, behind the table of words
    numbers = np.frombuffer(content, np.float16, 2_000_000, start).copy()
    content[start : start + 4_000_000] = np.negative(numbers).tobytes()
    weights.write_bytes(content)
