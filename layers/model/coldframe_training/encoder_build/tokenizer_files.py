"""The served tokenizer of an encoder: the library's file, and what is read before the library is."""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokenizers import Tokenizer

from coldframe.model.files import PIECES, TOKENIZER, VOCABULARY
from coldframe.model.pieces import Unknown, write_pieces
from coldframe.model.vocabulary import write_vocabulary
from coldframe_training.files.errors import EncoderRefused

Json = dict[str, Any]

_UNKNOWN_PENALTY = 10.0  # under the least score, as the library has it
_BERT_SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
_WORDPIECE = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
# Of these, each leaves alone a text whose characters it leaves alone one by one, as no two of the
# scripts below become another character side by side.
_BY_CHARACTER = ("Precompiled", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "Strip")
_SCRIPTS = (
    (0x20, 0x24F),  # Latin
    (0x370, 0x52F),  # Greek, Cyrillic
    (0x531, 0x58F),  # Armenian
    (0x5D0, 0x5EA),  # Hebrew
    (0x620, 0x64A),  # Arabic
    (0x10A0, 0x10FF),  # Georgian
    (0x1E00, 0x1FFF),  # Latin and Greek with accents
    (0x2010, 0x205E),  # punctuation
    (0x20A0, 0x20BF),  # currencies
    (0x2190, 0x22FF),  # arrows, mathematics
    (0x3001, 0x30FF),  # Japanese
    (0x3400, 0x9FFF),  # CJK
    (0xAC00, 0xD7A3),  # Hangul syllables; the letters they are made of join, and are left out
    (0xFF01, 0xFF65),  # full width
)
_RUNS_OF_SPACES = ({"Regex": " {2,}"}, {"Regex": "\\s+"})
_SPACES = " \t\n\r"
_OF_BERT = {  # fields of BertNormalizer: the setting that goes first, and its default
    "lowercase": ("do_lower_case", True),
    "strip_accents": ("strip_accents", None),
    "handle_chinese_chars": ("tokenize_chinese_chars", True),
}


class TokenizerFacts(NamedTuple):
    """Facts about an encoder's tokenizer. tokens: the size of its vocabulary."""

    tokenizer: Literal["wordpiece", "unigram"]
    lower_case: bool
    begin: str
    end: str
    tokens: int


def write_tokenizer(weights: Path, folder: Path) -> TokenizerFacts:
    """Writes the tokenizer of `weights` into `folder`: without truncation and padding, as windows are cut
    by us; its tokens by id; the pieces of a Unigram tokenizer.

    Raises EncoderRefused for a tokenizer that is not cut as it is.
    """
    content = json.loads(_source(weights))
    content["truncation"] = content["padding"] = None
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    library = load_library(text, weights)
    ids = library.get_vocab(with_added_tokens=True)
    _check_ids(ids, weights)
    begin, end = _around(library, weights)
    (folder / TOKENIZER).write_text(text, encoding="utf-8")
    (folder / VOCABULARY).write_bytes(write_vocabulary(ids))
    kind = content["model"]["type"]
    if kind == "WordPiece":
        lower_case = _check_wordpiece(content, weights)
        return TokenizerFacts("wordpiece", lower_case, begin, end, len(ids))
    if kind == "Unigram":
        _check_unigram(content, weights)
        (folder / PIECES).write_bytes(pieces_of(library))
        return TokenizerFacts("unigram", False, begin, end, len(ids))
    raise EncoderRefused(f"{weights}/tokenizer.json is a {kind} tokenizer. Expected WordPiece or Unigram.")


def load_library(content: str, weights: Path) -> Tokenizer:
    """The library's tokenizer. Raises EncoderRefused."""
    try:
        return Tokenizer.from_str(content)
    except Exception as exc:  # tokenizers raises bare Exception
        raise EncoderRefused(f"{weights}/tokenizer.json cannot be read: {exc}.") from exc


def pieces_of(library: Tokenizer) -> bytes:
    """The file of pieces of a Unigram tokenizer.

    Scores are the library's own: it reads one in seven of them a last bit beside what the file says.
    """
    content = json.loads(library.to_str())
    vocabulary = content["model"]["vocab"]
    scores = [score for _, score in vocabulary]
    unknown = Unknown(content["model"]["unk_id"], min(scores) - _UNKNOWN_PENALTY)
    plain = set(
        _plain_characters(library, content["normalizer"], {c for piece, _ in vocabulary for c in piece})
    )
    special = {token["content"] for token in content["added_tokens"]}
    if library.normalizer is not None:
        special |= {library.normalizer.normalize_str(token) for token in special}
    ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    return write_pieces(ids, scores, unknown, special - {""}, plain | set(_SPACES) if plain else ())


def _plain_characters(library: Tokenizer, normalizer: Json | None, alphabet: set[str]) -> Iterator[str]:
    """Characters of the alphabet of which the normaliser leaves any sequence as it is."""
    if not all(_is_by_character(part) for part in _parts(normalizer, "normalizers")):
        return
    for character in alphabet - {"▁"}:
        is_whole = unicodedata.category(character)[0] in "LNPS"
        if is_whole and any(low <= ord(character) <= high for low, high in _SCRIPTS):
            normal = library.normalizer.normalize_str(character) if library.normalizer else character
            if normal == character:
                yield character


def _is_by_character(normalizer: Json) -> bool:
    """Whether one step of the normaliser does so. A normalised text has no runs of spaces to replace."""
    if normalizer["type"] == "Replace":
        return normalizer["pattern"] in _RUNS_OF_SPACES and normalizer["content"] == " "
    return normalizer["type"] in _BY_CHARACTER


def _parts(step: Json | None, name: str) -> Sequence[Json]:
    """The steps of a sequence, or the one that there is."""
    if step is None:
        return []
    return (
        [part for each in step[name] for part in _parts(each, name)] if step["type"] == "Sequence" else [step]
    )


def _check_ids(ids: dict[str, int], weights: Path) -> None:
    if sorted(ids.values()) != list(range(len(ids))):
        raise EncoderRefused(
            f"The {len(ids):,} tokens of {weights}/tokenizer.json have ids up to {max(ids.values()):,}."
            " Expected one token for each id from 0 on."
        )
    if any(character in token for token in ids for character in " \n"):
        raise EncoderRefused(
            f"A token of {weights}/tokenizer.json holds a space or a line end. Expected none."
        )


def _around(library: Tokenizer, weights: Path) -> tuple[str, str]:
    """The tokens that begin and end a text."""
    tokens = library.encode("").tokens
    if len(tokens) != 2:
        raise EncoderRefused(
            f"{weights}/tokenizer.json puts {' '.join(tokens) or 'nothing'} around an empty text."
            " Expected two tokens, such as [CLS] [SEP] or <s> </s>."
        )
    return tokens[0], tokens[1]


def _check_wordpiece(content: Json, weights: Path) -> bool:
    """Whether it lower-cases. Raises EncoderRefused unless it cuts as BERT's."""
    model, normalizer = content["model"], content["normalizer"] or {"type": "none"}
    added = {token["content"] for token in content["added_tokens"]}
    settings = {name: model.get(name) for name in _WORDPIECE}
    before = (content["pre_tokenizer"] or {}).get("type")
    if settings != _WORDPIECE or normalizer["type"] != "BertNormalizer" or before != "BertPreTokenizer":
        raise EncoderRefused(
            f"{weights}/tokenizer.json is a WordPiece tokenizer with {settings}, the normaliser"
            f" {normalizer['type']} and the pre-tokenizer {before}. Expected BERT's: {_WORDPIECE},"
            " BertNormalizer, BertPreTokenizer."
        )
    if not normalizer["clean_text"] or not added <= _BERT_SPECIAL:
        others = ", ".join(sorted(added - _BERT_SPECIAL)) or "none"
        raise EncoderRefused(
            f"{weights}/tokenizer.json adds tokens that BERT has not: {others}; its clean_text is"
            f" {json.dumps(normalizer['clean_text'])}. Expected none and true."
        )
    return bool(normalizer["lowercase"])


def _check_unigram(content: Json, weights: Path) -> None:
    """Raises EncoderRefused unless words are cut apart at spaces, and nowhere else."""
    steps = _parts(content["pre_tokenizer"], "pretokenizers")
    metaspace = steps[-1] if steps else {"type": "none"}
    is_known = (
        [step["type"] for step in steps] in (["Metaspace"], ["WhitespaceSplit", "Metaspace"])
        and metaspace.get("replacement") == "▁"
        and metaspace.get("split", True)
        and metaspace.get("prepend_scheme", "always") in ("always", "first")
        and metaspace.get("add_prefix_space", True)
    )
    if not is_known:
        names = ", ".join(step["type"] for step in steps) or "none"
        raise EncoderRefused(
            f"{weights}/tokenizer.json has the pre-tokenizer {names}, at its end"
            f" {json.dumps(metaspace, ensure_ascii=False)}. Expected Metaspace, alone or behind"
            " WhitespaceSplit, which splits and puts ▁ before the first word."
        )
    if content["model"].get("unk_id") is None or content["model"].get("byte_fallback"):
        raise EncoderRefused(
            f"{weights}/tokenizer.json has unk_id {content['model'].get('unk_id')} and byte_fallback"
            f" {json.dumps(content['model'].get('byte_fallback'))}. Expected an id, and no fallback to bytes."
        )


def _source(weights: Path) -> str:
    """`tokenizer.json` with the settings of `tokenizer_config.json`, which transformers lets go first."""
    content = (weights / "tokenizer.json").read_text(encoding="utf-8")
    settings_path = weights / "tokenizer_config.json"
    if not settings_path.exists():
        return content
    settings = json.loads(settings_path.read_text(encoding="utf-8"))
    tokenizer = json.loads(content)
    normalizer = tokenizer.get("normalizer") or {}
    is_bert = settings.get("tokenizer_class", "BertTokenizer").startswith("BertTokenizer")
    if is_bert and normalizer.get("type") == "BertNormalizer":
        normalizer |= {own: settings.get(name, default) for own, (name, default) in _OF_BERT.items()}
    return json.dumps(tokenizer, ensure_ascii=False)
