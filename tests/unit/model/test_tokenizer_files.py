"""Tokenizers that are served are cut as they are by the library; others are refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from coldframe.model.bundle import EncoderFacts, load_golden
from coldframe.model.tokenizer import TextWindows, normalise
from coldframe_training.encoder_build.calibration_texts import own_texts
from coldframe_training.encoder_build.tokenizer_files import write_tokenizer
from coldframe_training.files.errors import EncoderRefused

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("a", -3.0), ("▁a", -3.5), ("é", -5.0)]


def around(tokenizer: Tokenizer, begin: str, end: str) -> Tokenizer:
    special = [(token, tokenizer.token_to_id(token)) for token in (begin, end)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=special
    )
    return tokenizer


def wordpiece(**changed: Any) -> Tokenizer:
    words = ["a", "##b", "C", "é", "É", "e"]
    vocabulary = {token: number for number, token in enumerate([*BERT, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", **changed))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(BERT)
    return around(tokenizer, "[CLS]", "[SEP]")


def unigram(**changed: Any) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(PIECES, **{"unk_id": 2, "byte_fallback": False} | changed))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(["<s>", "</s>", "<unk>"])
    return around(tokenizer, "<s>", "</s>")


def folder_of(path: Path, tokenizer: Tokenizer, **settings: Any) -> Path:
    path.mkdir()
    tokenizer.save(str(path / "tokenizer.json"))
    if settings:
        (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


def test_settings_of_transformers_go_first(tmp_path: Path) -> None:
    """tokenizer_config.json overrules tokenizer.json, where transformers' BertTokenizer lets it do so."""
    cased = folder_of(tmp_path / "cased", wordpiece(), do_lower_case=False)
    silent = folder_of(tmp_path / "silent", wordpiece(), tokenizer_class="BertTokenizer")
    other = folder_of(tmp_path / "other", wordpiece(), tokenizer_class="PreTrainedTokenizerFast")
    alone = folder_of(tmp_path / "alone", wordpiece())
    assert [write_tokenizer(folder, tmp_path).lower_case for folder in (cased, silent, other, alone)] == [
        False,
        True,
        False,
        False,
    ]


def test_cased_words(tmp_path: Path) -> None:
    """A cased tokenizer keeps the case, of plain texts and of others."""
    write_tokenizer(folder_of(tmp_path / "cased", wordpiece()), tmp_path)
    windows = TextWindows(tmp_path, EncoderFacts(64, max_tokens=8, max_windows=1, lower_case=False))
    assert windows.cut(["ab C c", "É é"]) == [[[2, 5, 6, 7, 1, 3]], [[2, 9, 8, 3]]]


def test_the_default_encoders_files(encoder_dir: Path, tmp_path: Path) -> None:
    """The served tokenizer of the default encoder comes out as it goes in, and cuts our texts alike."""
    facts = write_tokenizer(encoder_dir, tmp_path)
    assert (facts.tokenizer, facts.lower_case, facts.begin, facts.end) == (
        "wordpiece",
        True,
        "[CLS]",
        "[SEP]",
    )
    for name in ("tokenizer.json", "vocabulary.txt"):
        assert (tmp_path / name).read_bytes() == (encoder_dir / name).read_bytes()
    library = Tokenizer.from_file(str(encoder_dir / "tokenizer.json"))
    windows = TextWindows(tmp_path, EncoderFacts(384, max_tokens=10_000, max_windows=1))
    golden = [vector.text for vector in load_golden(encoder_dir).vectors]
    for text in map(normalise, [*golden, *own_texts()]):
        assert windows.cut([text]) == [[library.encode(text).ids]]


def changed(tokenizer: Tokenizer, **parts: Any) -> Tokenizer:
    """The tokenizer with other parts."""
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer


def with_another_token() -> Tokenizer:
    tokenizer = wordpiece()
    tokenizer.add_tokens(["[NEW]"])
    return tokenizer


NO_POST = processors.TemplateProcessing(single="$A", special_tokens=[])
BY_MARKS = pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace()])


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (wordpiece(continuing_subword_prefix="@@"), "'continuing_subword_prefix': '@@'"),
        (with_another_token(), r"adds tokens that BERT has not: \[NEW\]"),
        (changed(wordpiece(), normalizer=normalizers.NFKC()), "the normaliser NFKC"),
        (changed(wordpiece(), post_processor=NO_POST), "puts nothing around an empty text"),
        (changed(unigram(), pre_tokenizer=pre_tokenizers.Metaspace(split=False)), "Expected Metaspace"),
        (changed(unigram(), pre_tokenizer=pre_tokenizers.Metaspace("▁", "never")), "Expected Metaspace"),
        (changed(unigram(), pre_tokenizer=BY_MARKS), "Punctuation, Metaspace"),
    ],
)
def test_refused(tmp_path: Path, tokenizer: Tokenizer, said: str) -> None:
    """A tokenizer that would be cut otherwise is refused, with what was found and what is expected."""
    with pytest.raises(EncoderRefused, match=said):
        write_tokenizer(folder_of(tmp_path / "refused", tokenizer), tmp_path)


def test_other_kinds_are_refused(tmp_path: Path) -> None:
    """Byte fallback, an alphabet with spaces and other kinds of tokenizers are left alone."""
    falling = unigram(byte_fallback=True)
    with pytest.raises(EncoderRefused, match="byte_fallback true"):
        write_tokenizer(folder_of(tmp_path / "bytes", falling), tmp_path)
    pairs = Tokenizer(models.BPE({"<s>": 0, "</s>": 1, "a": 2}, []))
    with pytest.raises(EncoderRefused, match=r"is a BPE tokenizer\. Expected WordPiece or Unigram"):
        write_tokenizer(folder_of(tmp_path / "pairs", around(pairs, "<s>", "</s>")), tmp_path)
    spaced = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a b": 2}, unk_token="<s>"))
    with pytest.raises(EncoderRefused, match="holds a space or a line end"):
        write_tokenizer(folder_of(tmp_path / "spaced", around(spaced, "<s>", "</s>")), tmp_path)
    holes = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 7}, unk_token="<s>"))
    with pytest.raises(EncoderRefused, match="ids up to 7"):
        write_tokenizer(folder_of(tmp_path / "holes", around(holes, "<s>", "</s>")), tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderRefused, match="cannot be read"):
        write_tokenizer(tmp_path / "broken", tmp_path)
