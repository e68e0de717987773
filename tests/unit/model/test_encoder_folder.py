"""What the files of an encoder's folder say, and which folders are refused before any weights are read."""

import json
from pathlib import Path
from typing import Any

import pytest

from coldframe_training.encoder_build.encoder_folder import read_encoder_folder
from coldframe_training.encoder_build.make_encoder import LEAST_COSINE, least_cosine
from coldframe_training.encoder_build.weights import is_default
from coldframe_training.files.errors import EncoderRefused

CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 384,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "max_position_embeddings": 512,
    "vocab_size": 30522,
}
POOLING: dict[str, Any] = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}


def module(kind: str, path: str = "") -> dict[str, str]:
    return {"type": f"sentence_transformers.models.{kind}", "path": path}


MODULES = [module("Transformer"), module("Pooling", "1_Pooling"), module("Normalize", "2_Normalize")]


def folder_of(path: Path, **files: Any) -> Path:
    """A folder of sentence-transformers; names of files without `.json`, None for one that is missing."""
    contents = {"config": CONFIG, "tokenizer": {}, "modules": MODULES, "1_Pooling/config": POOLING} | files
    (path / "1_Pooling").mkdir()
    (path / "model.safetensors").touch()
    for name, content in contents.items():
        if content is not None:
            (path / f"{name}.json").write_text(json.dumps(content))
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(EncoderRefused) as refused:
        read_encoder_folder(folder)
    return str(refused.value)


def test_defaults(tmp_path: Path) -> None:
    """Without further files: all positions, no prefix, texts as they are, a licence that is not stated."""
    found = read_encoder_folder(folder_of(tmp_path))
    assert (found.pooling, found.prefix, found.lower_texts) == ("mean", "", False)
    assert (found.max_tokens, found.dimension, found.licence) == (512, 384, "not stated")


def test_a_folder_without_modules_is_pooled_by_mean(tmp_path: Path) -> None:
    """As sentence-transformers does it."""
    assert read_encoder_folder(folder_of(tmp_path, modules=None)).pooling == "mean"


def test_pooling_by_the_first_token(tmp_path: Path) -> None:
    """1_Pooling/config.json decides."""
    pooling = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True, "include_prompt": True}
    assert read_encoder_folder(folder_of(tmp_path, **{"1_Pooling/config": pooling})).pooling == "cls"


def test_the_transformer_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    """As older encoders have it."""
    folder_of(tmp_path, modules=[module("Transformer", "0_BERT"), module("Pooling", "1_Pooling")])
    (tmp_path / "0_BERT").mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).rename(tmp_path / "0_BERT" / name)
    assert read_encoder_folder(tmp_path).weights == tmp_path / "0_BERT"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sentence_bert_config": {"max_seq_length": 128}}, 128),
        ({"sentence_bert_config": {"max_seq_length": 4096}}, 512),
        ({"tokenizer_config": {"model_max_length": 256}}, 256),
        ({"tokenizer_config": {"model_max_length": 10**30}}, 512),
        (
            {"sentence_bert_config": {"max_seq_length": None}, "tokenizer_config": {"model_max_length": 64}},
            64,
        ),
        ({"config": CONFIG | {"model_type": "xlm-roberta", "max_position_embeddings": 514}}, 512),
    ],
)
def test_length(tmp_path: Path, files: dict[str, Any], expected: int) -> None:
    """The length is the first that is stated, and never more than the model has positions."""
    assert read_encoder_folder(folder_of(tmp_path, **files)).max_tokens == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"prompts": {}}, ""),
        ({"prompts": {"query": "query: ", "passage": "passage: "}}, "query: "),
        ({"prompts": {"query": "q: ", "classification": "class: "}}, "class: "),
        ({"prompts": {"query": "q: ", "passage": "p: "}, "default_prompt_name": "passage"}, "p: "),
        ({"prompts": {"passage": "p: "}}, ""),
    ],
)
def test_prefix(tmp_path: Path, settings: dict[str, Any], expected: str) -> None:
    """The folder's default, else the prompt for classification, else that for queries, else none."""
    found = read_encoder_folder(folder_of(tmp_path, config_sentence_transformers=settings))
    assert found.prefix == expected


def test_lower_case_and_licence(tmp_path: Path) -> None:
    """Texts are lower-cased where sentence_bert_config.json says so; the model card names the licence."""
    folder_of(tmp_path, sentence_bert_config={"max_seq_length": 512, "do_lower_case": True})
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# A model\n")
    found = read_encoder_folder(tmp_path)
    assert (found.lower_texts, found.licence) == (True, "mit")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config": None}, "has no config.json"),
        ({"tokenizer": None}, "has no tokenizer.json. Write it with AutoTokenizer"),
        (
            {"config": CONFIG | {"model_type": "mpnet"}},
            '"model_type": "mpnet". Expected "bert" or "xlm-roberta"',
        ),
        ({"config": CONFIG | {"hidden_act": "relu"}}, '"hidden_act": "relu". Expected "gelu"'),
        ({"config": CONFIG | {"position_embedding_type": "relative_key"}}, 'Expected "absolute"'),
        ({"config": CONFIG | {"num_attention_heads": 7}}, "384 dimensions and 7 heads"),
        ({"config": CONFIG | {"vocab_size": None}}, '"vocab_size": null. Expected a whole number'),
        ({"config": []}, "is not a JSON object"),
        ({"modules": [*MODULES, module("Dense", "3_Dense")]}, "lists Transformer, Pooling, Normalize, Dense"),
        ({"modules": [module("Transformer")]}, "lists Transformer. Expected Transformer, Pooling"),
        ({"modules": {}}, "is not a list of modules"),
        (
            {"1_Pooling/config": {"pooling_mode_max_tokens": True}},
            "pools by max_tokens. Expected",
        ),
        ({"1_Pooling/config": POOLING | {"pooling_mode_cls_token": True}}, "pools by mean_tokens, cls_token"),
        ({"1_Pooling/config": POOLING | {"include_prompt": False}}, "all but the prompt"),
        ({"1_Pooling/config": POOLING | {"word_embedding_dimension": 768}}, "768 of 384 dimensions"),
        ({"config_sentence_transformers": {"default_prompt_name": "q"}}, "lacks its default prompt 'q'"),
    ],
)
def test_refused(tmp_path: Path, files: dict[str, Any], said: str) -> None:
    """What the graph would compute otherwise is refused, with what was found and what is expected."""
    assert said in refusal(folder_of(tmp_path, **files))


def test_weights_of_another_format_are_not_opened(tmp_path: Path) -> None:
    """A pickle is a program: only model.safetensors is read."""
    (folder_of(tmp_path) / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    assert "has no model.safetensors. Weights in another format are not opened" in refusal(tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """JSON that cannot be read is named."""
    (folder_of(tmp_path) / "modules.json").write_text("[")
    assert "modules.json cannot be read" in refusal(tmp_path)


def test_other_weights_are_not_the_default_ones(tmp_path: Path) -> None:
    """Only the very files of the default encoder are that one."""
    assert not is_default(folder_of(tmp_path))


@pytest.mark.parametrize(("measured", "expected"), [(0.9731, 0.9596), (0.9999, 0.99), (0.95, 0.925)])
def test_least_cosine(measured: float, expected: float) -> None:
    """An environment may be half as far again from fp32 as the machine that built the encoder."""
    assert least_cosine(measured) == pytest.approx(expected)


@pytest.mark.parametrize("measured", [0.8999, 0.2, float("nan")])
def test_too_far_from_fp32(measured: float) -> None:
    """Under the floor, or with no number at all, there is no encoder."""
    with pytest.raises(EncoderRefused, match=f"Expected at least {LEAST_COSINE}"):
        least_cosine(measured)
