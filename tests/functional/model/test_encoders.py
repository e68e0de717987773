"""Encoders of other families, made of folders in the layout of Hugging Face: transformers' own numbers."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tokenizers import Tokenizer

from coldframe.config import Settings
from coldframe.model.bundle import EncoderFacts, load_golden
from coldframe.model.encoder import check_golden
from coldframe.model.tokenizer import content_tokens, normalise
from coldframe.model.verify import verify_bundle
from coldframe.pipeline.models import load_predictor
from coldframe.vectors import ranked, to_floats
from coldframe_local.paths import BUILD_PYTHON
from coldframe_training.encoder_build.calibration_texts import own_texts
from coldframe_training.encoder_build.make_encoder import LEAST_COSINE
from tests.support.made_encoders import Made, in_build_environment, reuse

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(
        not BUILD_PYTHON.exists(), reason=f"no {BUILD_PYTHON}: no encoder was made. `make build` sets it up."
    ),
]

KINDS = ["uncased", "lowered", "cased", "wide", "xlm-r", "bert-unigram"]
UNIGRAM = ["xlm-r", "bert-unigram"]
IMPORTED = """
import sys, pathlib, msgspec
from coldframe.model.bundle import EncoderFacts
from coldframe.model.tokenizer import TextWindows
facts = msgspec.json.decode(sys.argv[2], type=EncoderFacts)
TextWindows(pathlib.Path(sys.argv[1]), facts).cut([sys.argv[3]])
print(*(name for name in ("tokenizers", "coldframe.model.unigram") if name in sys.modules))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All kinds of encoders, with what transformers says of them."""
    root = tmp_path_factory.mktemp("encoders")
    return reuse("random encoders", partial(in_build_environment, "tests.support.random_encoders"), root)


@pytest.fixture(scope="module", params=["xlm-r", "cased"])
def model(request: pytest.FixtureRequest, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three languages on a Unigram encoder with a prefix, and on a cased one."""
    this, target = Made(made, request.param), tmp_path_factory.mktemp("models") / "languages"
    facts = msgspec.json.encode(this.facts).decode()
    make = partial(in_build_environment, "tests.support.other_model", this.folder, facts, this.graph)
    return reuse("other model", make, target, this.folder, facts, this.graph)


@pytest.fixture(scope="module", params=KINDS)
def each(request: pytest.FixtureRequest, made: Path) -> Made:
    return Made(made, request.param)


def test_tokens_are_those_of_transformers(each: Made) -> None:
    """A first window holds what transformers' tokenizer makes of the text and its prefix, cut alike."""
    for text in each.texts:
        assert list(each.windows.cut([normalise(text["text"])])[0][0]) == text["ids"]
    assert max(len(text["ids"]) for text in each.texts) == each.facts.max_tokens


def test_golden_vectors_are_those_of_transformers(each: Made) -> None:
    """The reference embeddings are transformers', pooled as the folder's files say."""
    golden = load_golden(each.folder)
    assert [vector.text for vector in golden.vectors] == [text["text"] for text in each.texts[:36]]
    found = np.array([vector.embedding for vector in golden.vectors])
    np.testing.assert_allclose(found, each.said("embedding")[:36], atol=2e-6)


def test_int8_is_close_to_transformers(each: Made) -> None:
    """Golden texts are as close to transformers as the gate demands, others nearly; all have length 1."""
    golden = load_golden(each.folder)
    assert check_golden(each.encoder, each.windows, golden) >= LEAST_COSINE
    assert 0.85 <= golden.min_cosine <= 0.99
    found = each.found()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    cosines = np.sum(found * each.said("embedding"), axis=1)
    assert cosines.mean() >= golden.min_cosine
    assert cosines.min() >= LEAST_COSINE


def test_the_gate_knows_pooling(each: Made) -> None:
    """Embeddings that are pooled otherwise are below what the gate lets pass."""
    otherwise = np.sum(each.said("embedding") * each.said("pooled_otherwise"), axis=1)
    assert otherwise.min() < load_golden(each.folder).min_cosine - 0.02


def test_texts_differ(each: Made) -> None:
    """Random weights tell texts apart: that two embeddings agree is not a matter of course."""
    embeddings = each.said("embedding")
    assert np.quantile(embeddings @ embeddings.T, 0.05) < 0.8


def test_rows_are_on_their_own(each: Made) -> None:
    """A row's embedding is the same in every batch, to the bit."""
    rows = [[number % 50 + 5 for number in range(start, start + 20)] for start in range(6)]
    together = each.encoder.encode(rows)
    for row, embedding in zip(rows, together, strict=True):
        assert each.encoder.encode([row]) == [embedding]


def test_windows_of_a_long_text(each: Made) -> None:
    """Each window has the prefix; together they hold the text's own tokens, and no other ones."""
    text = normalise(max(own_texts(), key=len))
    library = Tokenizer.from_file(str(each.folder / "tokenizer.json"))
    (windows,) = each.windows.cut([text])
    sent = text.lower() if each.facts.lower_texts else text
    expected = library.encode(sent, add_special_tokens=False).ids
    needed = each.facts.content_tokens * each.facts.max_windows
    assert len(windows) > 5
    assert content_tokens(windows) == expected[:needed]
    assert all(len(window) <= each.facts.max_tokens for window in windows)
    assert {tuple(window[1 : 1 + len(each.facts.prefix_tokens)]) for window in windows} == {
        each.facts.prefix_tokens
    }


def test_facts(made: Path) -> None:
    """What the runtime has to know comes from the folder's files."""
    facts = {kind: Made(made, kind).facts for kind in KINDS}
    assert facts["uncased"] == EncoderFacts(dimension=96, max_tokens=48, max_windows=21)
    assert facts["lowered"] == EncoderFacts(dimension=64, max_tokens=64, max_windows=16, lower_texts=True)
    assert facts["cased"] == EncoderFacts(dimension=64, max_tokens=48, max_windows=21, lower_case=False)
    assert facts["wide"].dimension == 768
    xlm_r = facts["xlm-r"]
    assert (xlm_r.tokenizer, xlm_r.begin, xlm_r.end, xlm_r.prefix) == ("unigram", "<s>", "</s>", "query: ")
    assert xlm_r.max_tokens == 48  # 50 positions, of which two are before the first token
    assert facts["bert-unigram"].prefix_tokens == ()


@pytest.mark.parametrize("kind", ["cased", "bert-unigram", "xlm-r"])
def test_plain_texts_need_no_library(made: Path, kind: str) -> None:
    """A first text that is plain is cut without importing the library, and WordPiece without Unigram."""
    this = Made(made, kind)
    found = {}
    for text in ("The parcel arrived, late.", "Der Zug nach Köln 雪", "x กำ"):
        arguments = [str(this.folder), msgspec.json.encode(this.facts).decode(), text]
        done = subprocess.run(
            [sys.executable, "-c", IMPORTED, *arguments], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        found[text] = done.stdout.split()
    if kind == "cased":
        assert list(found.values()) == [[], ["tokenizers"], ["tokenizers"]]
    else:
        own = "coldframe.model.unigram"
        assert list(found.values()) == [[own], [own], ["tokenizers", own]]


def test_made_twice(made: Path) -> None:
    """The same folder gives the same graph and the same reference."""
    assert json.loads((made / "again.json").read_bytes()) == Made(made, "cased").graph
    for name in ("golden.json", "tokenizer.json", "vocabulary.txt"):
        assert (made / "again" / name).read_bytes() == (made / "cased-served" / name).read_bytes()


def test_refused(made: Path) -> None:
    """What cannot be made is refused by the step that does not work, with what was found and expected."""
    said = json.loads((made / "spoiled.json").read_bytes())
    assert "lacks 1 of the weights" in said["drop_weights"]
    assert "encoder.layer.1.output.dense.weight" in said["drop_weights"]
    assert "Quantization does not work" in said["stretch_activations"]
    assert f"Expected at least {LEAST_COSINE}" in said["stretch_activations"]
    assert "The tokenizer does not work" in said["glue_prefix"]
    assert "config.json 100. Expected an embedding for each token" in said["shrink_vocabulary"]
    assert "The export does not work for this encoder: it has 0.00 GB" in said["too_large"]
    for broken in ("cut_off_weights", "widen_config"):
        assert said[broken].startswith("transformers cannot load the model in")
        assert "of one model, both whole" in said[broken]


def test_a_model_on_another_encoder(model: Path) -> None:
    """A model that is trained on another encoder is verified, and tells three languages apart."""
    [encoder], [_] = verify_bundle(model)
    assert encoder.golden == 36
    predictor = load_predictor(Settings(model_dir=model))
    texts = ["der Zug nach Köln", "please change my order", "весной река заливает луга"]
    found = predictor.predict(texts, ["auto", "logreg"], use_cache=False).answers["auto"]
    labels = [predictor.manifest.labels[ranked(to_floats(row)[:-1])[0]] for row in found]
    assert labels == ["deutsch", "english", "русский"]
