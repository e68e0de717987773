"""Reader of a sentence encoder's folder, in the layout of Hugging Face and sentence-transformers."""

import json
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from coldframe_training.files.errors import EncoderRefused

Json = dict[str, Any]
Pooling: TypeAlias = Literal["mean", "cls"]
"""Pooling of a text's tokens: their mean, or the first one."""

MODEL_TYPES = ("bert", "xlm-roberta")
_MODULES = ("Transformer", "Pooling", "Normalize")
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_SIZES = ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings", "vocab_size")
_PROMPTS = ("classification", "query")  # taken in this order where the folder names no default
_SENSIBLE_TOKENS = 100_000  # tokenizer_config.json writes "no limit" as a number of thirty digits


class EncoderFolder(NamedTuple):
    """An encoder as its files describe it.

    weights: the folder of `config.json`, `model.safetensors` and `tokenizer.json`. prefix: what stands
    before each text. lower_texts: texts are lower-cased before they are tokenized. max_tokens: of a
    window, the two tokens around it among them. words: rows of the table of word embeddings.
    """

    weights: Path
    pooling: Pooling
    prefix: str
    lower_texts: bool
    max_tokens: int
    dimension: int
    words: int
    licence: str


def read_encoder_folder(folder: Path) -> EncoderFolder:
    """Reads the files, all but the weights. Raises EncoderRefused for what cannot be built."""
    modules = _modules(folder)
    weights = folder / modules.get("Transformer", "")
    for name in _FILES:
        if not (weights / name).exists():
            raise EncoderRefused(f"{weights} has no {name}. {_way_to(name)}")
    config = _read(weights / "config.json")
    _check_config(config, weights)
    sentence = next(map(_read, sorted(weights.glob("sentence_*_config.json"))), {})
    return EncoderFolder(
        weights,
        pooling=_pooling(folder / modules["Pooling"], config) if "Pooling" in modules else "mean",
        prefix=_prefix(folder),
        lower_texts=bool(sentence.get("do_lower_case", False)),
        max_tokens=_max_tokens(config, sentence, weights),
        dimension=config["hidden_size"],
        words=config["vocab_size"],
        licence=_licence(folder),
    )


def _modules(folder: Path) -> dict[str, str]:
    """Folder of each module, by its kind. A folder without `modules.json` is pooled by mean."""
    if not (folder / "modules.json").exists():
        return {}
    kinds = {part["type"].rpartition(".")[2]: part["path"] for part in _read_list(folder / "modules.json")}
    unknown = [kind for kind in kinds if kind not in _MODULES]
    if unknown or not kinds.keys() >= {"Transformer", "Pooling"}:
        raise EncoderRefused(
            f"{folder}/modules.json lists {', '.join(kinds) or 'nothing'}. Expected Transformer, Pooling and,"
            " if you like, Normalize: other modules have no place in the graph."
        )
    return kinds


def _check_config(config: Json, folder: Path) -> None:
    """Raises EncoderRefused for a model that the graph does not compute."""
    expected: dict[str, tuple[Any, ...]] = {
        "model_type": MODEL_TYPES,
        "hidden_act": ("gelu",),
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
    }
    absent = {"position_embedding_type": "absolute", "is_decoder": False}
    for field, allowed in expected.items():
        setting = config.get(field, absent.get(field))
        if setting not in allowed:
            choices = " or ".join(json.dumps(value) for value in allowed)
            raise EncoderRefused(
                f'{folder}/config.json has "{field}": {json.dumps(setting)}. Expected {choices}.'
            )
    for field in _SIZES:
        if not isinstance(config.get(field), int) or config[field] < 1:
            setting = json.dumps(config.get(field))
            raise EncoderRefused(f'{folder}/config.json has "{field}": {setting}. Expected a whole number.')
    if config["hidden_size"] % config["num_attention_heads"]:
        raise EncoderRefused(
            f"{folder}/config.json has {config['hidden_size']} dimensions and {config['num_attention_heads']}"
            " heads of attention. Expected a number of heads that divides the dimensions."
        )


def _pooling(folder: Path, config: Json) -> Pooling:
    """Raises EncoderRefused for a kind of pooling that the graph does not compute."""
    settings = _read(folder / "config.json")
    kinds = [name.removeprefix("pooling_mode_") for name, is_on in settings.items() if is_on is True]
    kinds = [kind for kind in kinds if kind != "include_prompt"]
    if settings.get("include_prompt") is False:
        kinds.append("all but the prompt")
    if settings.get("word_embedding_dimension", config["hidden_size"]) != config["hidden_size"]:
        kinds.append(f"{settings['word_embedding_dimension']} of {config['hidden_size']} dimensions")
    match kinds:
        case ["mean_tokens"]:
            return "mean"
        case ["cls_token"]:
            return "cls"
    raise EncoderRefused(
        f"{folder}/config.json pools by {', '.join(kinds) or 'nothing'}."
        " Expected mean_tokens or cls_token alone."
    )


def _prefix(folder: Path) -> str:
    """The prompt that is put before a text to classify."""
    path = folder / "config_sentence_transformers.json"
    settings = _read(path) if path.exists() else {}
    prompts = settings.get("prompts") or {}
    default = settings.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise EncoderRefused(
            f"{path} lacks its default prompt {default!r}. Add the prompt, or remove its name."
        )
    names = _PROMPTS if default is None else (default,)
    return next((str(prompts[name]) for name in names if name in prompts), "")


def _max_tokens(config: Json, sentence: Json, folder: Path) -> int:
    positions: int = config["max_position_embeddings"]
    if config["model_type"] == "xlm-roberta":
        positions -= config.get("pad_token_id", 1) + 1
    tokenizer = folder / "tokenizer_config.json"
    limits = [sentence.get("max_seq_length")]
    if tokenizer.exists():
        limits.append(_read(tokenizer).get("model_max_length"))
    limit_tokens = next((int(limit) for limit in limits if limit and limit < _SENSIBLE_TOKENS), positions)
    return min(limit_tokens, positions)


def _licence(folder: Path) -> str:
    """The one that the head of the model card names."""
    card = folder / "README.md"
    match = re.search(r"^license: *(\S+)", card.read_text(encoding="utf-8"), re.M) if card.exists() else None
    return match[1] if match else "not stated"


def _way_to(name: str) -> str:
    if name == "tokenizer.json":
        return "Write it with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)."
    if name == "model.safetensors":
        return "Weights in another format are not opened: convert them with save_pretrained(FOLDER)."
    return "Expected the folder of a sentence encoder, as it is on the Hugging Face hub."


def _read(path: Path) -> Json:
    content = _decode(path)
    if not isinstance(content, dict):
        raise EncoderRefused(f"{path} is not a JSON object. Restore the file.")
    return content


def _read_list(path: Path) -> list[Json]:
    content = _decode(path)
    if not isinstance(content, list) or not all(
        isinstance(part, dict) and "type" in part for part in content
    ):
        raise EncoderRefused(f"{path} is not a list of modules. Restore the file.")
    return content


def _decode(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise EncoderRefused(f"{path} cannot be read: {exc}.") from exc
