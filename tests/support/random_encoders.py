"""Small encoders with random weights, in the layout of Hugging Face, and what transformers makes of texts.

Runs in the build environment: `python -m tests.support.random_encoders FOLDER` writes each kind of
encoder to FOLDER/KIND, makes it servable in FOLDER/KIND-served, and notes in FOLDER/KIND.json its facts
and what transformers' own tokenizer and forward pass say.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertTokenizerFast,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaModel,
    XLMRobertaTokenizerFast,
)

from coldframe_training.encoder_build.calibration_texts import own_texts
from coldframe_training.encoder_build.golden import TEXTS
from coldframe_training.encoder_build.make_encoder import make_encoder
from tests.support.spoiled_encoders import spoil

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MODULES = ["Transformer", "Pooling", "Normalize"]


class Kind(NamedTuple):
    """What an encoder is made of. sentence, prompts: settings of sentence-transformers.

    longest: tokens that a window may have, by all of these.
    """

    model: Callable[[int], Any]  # by the number of tokens
    tokenizer: Callable[[], PreTrainedTokenizerFast]
    longest: int = 48
    pooling: str = "mean_tokens"
    modules: Sequence[str] = MODULES
    sentence: dict[str, Any] = {"max_seq_length": 48, "do_lower_case": False}  # noqa: RUF012
    prompts: dict[str, Any] = {}  # noqa: RUF012


def bert(hidden: int, heads: int, layers: int, spread: float = 0.25) -> Callable[[int], Any]:
    """A BERT whose weights are far enough from zero for texts to differ. spread: standard deviation."""
    return lambda words: BertModel(
        BertConfig(
            vocab_size=words,
            hidden_size=hidden,
            num_attention_heads=heads,
            num_hidden_layers=layers,
            intermediate_size=2 * hidden,
            max_position_embeddings=64,
            initializer_range=spread,
        )
    )


def xlm_roberta(words: int) -> Any:
    """An XLM-R: positions begin behind the padding's, and there is one type of tokens."""
    return XLMRobertaModel(
        XLMRobertaConfig(
            vocab_size=words + 3,  # as multilingual-e5 has more rows than tokens
            hidden_size=96,
            num_attention_heads=4,
            num_hidden_layers=2,
            intermediate_size=192,
            max_position_embeddings=50,
            type_vocab_size=1,
            pad_token_id=1,
            initializer_range=0.25,
        )
    )


def words_of(tokenizer: Tokenizer) -> Counter[str]:
    """Words of all texts, as the tokenizer cuts them. The library's trainers choose otherwise each time."""
    normal = (tokenizer.normalizer.normalize_str(text) for text in [*own_texts(), *TEXTS])
    cut = (tokenizer.pre_tokenizer.pre_tokenize_str(text) for text in normal)
    return Counter(word for words in cut for word, _ in words)


def most_common(counts: Counter[str], number: int) -> list[str]:
    """The most frequent ones, always in one order."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:number]


def wordpiece(lower_case: bool) -> Callable[[], PreTrainedTokenizerFast]:
    """BERT's tokenizer, with words and characters of our own texts."""

    def make() -> PreTrainedTokenizerFast:
        empty = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        empty.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
        empty.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        words = words_of(empty)
        characters = sorted({character for word in words for character in word})
        tokens = [*BERT_SPECIAL, *characters, *(f"##{c}" for c in characters), *most_common(words, 500)]
        vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = empty.normalizer, empty.pre_tokenizer
        tokenizer.add_special_tokens(BERT_SPECIAL)
        around = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=around
        )
        return BertTokenizerFast(tokenizer_object=tokenizer, do_lower_case=lower_case)

    return make


def unigram() -> PreTrainedTokenizerFast:
    """XLM-R's tokenizer, with pieces of our own texts; its charsmap is made of the library's own parts."""
    empty = Tokenizer(models.Unigram())
    runs = normalizers.Replace(Regex(" {2,}"), " ")
    empty.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), runs])
    empty.pre_tokenizer = pre_tokenizers.Metaspace()
    counts: Counter[str] = Counter()
    for word, times in words_of(empty).items():
        for start in range(len(word)):
            for end in range(start + 2, min(start + 8, len(word)) + 1):
                counts[word[start:end]] += times
    pieces = {piece: log(counts[piece] / counts.total()) for piece in most_common(counts, 900)}
    pieces |= dict.fromkeys(sorted({character for piece in counts for character in piece}), -12.0)
    special = [(token, 0.0) for token in SPECIAL]
    tokenizer = Tokenizer(models.Unigram([*special, *pieces.items()], unk_id=3, byte_fallback=False))
    tokenizer.normalizer, tokenizer.pre_tokenizer = empty.normalizer, empty.pre_tokenizer
    tokenizer.add_special_tokens([*SPECIAL[:4], AddedToken("<mask>", lstrip=True)])
    around = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=around)
    return XLMRobertaTokenizerFast(tokenizer_object=tokenizer)


KINDS = {
    "uncased": Kind(bert(96, 6, 3, spread=0.1), wordpiece(True)),
    "lowered": Kind(
        bert(64, 2, 1),
        wordpiece(True),
        longest=64,
        pooling="cls_token",
        sentence={"max_seq_length": 512, "do_lower_case": True},
    ),
    "cased": Kind(bert(64, 2, 2), wordpiece(False), pooling="cls_token"),
    "wide": Kind(
        lambda words: bert(768, 12, 2)(words).half(),  # gte-small is published in fp16
        wordpiece(True),
        modules=["Transformer", "Pooling"],
    ),
    "xlm-r": Kind(
        xlm_roberta,
        unigram,
        sentence={"max_seq_length": 512},
        prompts={"prompts": {"query": "query: ", "passage": "passage: "}},
    ),
    "bert-unigram": Kind(bert(96, 3, 2), unigram),
}


def write_encoder(kind: Kind, folder: Path) -> None:
    """The folder as sentence-transformers saves it."""
    torch.manual_seed(11)
    tokenizer = kind.tokenizer()
    tokenizer.save_pretrained(folder)
    kind.model(len(tokenizer)).save_pretrained(folder)
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": paths[name], "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(kind.modules)
    ]
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    pooling: dict[str, Any] = {f"pooling_mode_{mode}": mode == kind.pooling for mode in modes}
    (folder / "1_Pooling").mkdir()
    write(folder / "modules.json", modules)
    write(folder / "1_Pooling" / "config.json", pooling | {"include_prompt": True})
    write(folder / "sentence_bert_config.json", kind.sentence)
    write(folder / "config_sentence_transformers.json", kind.prompts)


def said_by_transformers(folder: Path, kind: Kind, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Token ids and embedding of each text, white space as it is served, by transformers alone."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    prefix = kind.prompts.get("prompts", {}).get("query", "")
    said = []
    for text in texts:
        sent = " ".join((prefix + text).split())
        sent = sent.lower() if kind.sentence.get("do_lower_case") else sent
        given = tokenizer(sent, truncation=True, max_length=kind.longest, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**given).last_hidden_state  # (1, T, d)
        mask = given["attention_mask"].unsqueeze(-1)
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        pooled = {"mean_tokens": mean, "cls_token": hidden[:, 0]}
        found = {name: torch.nn.functional.normalize(rows, dim=-1)[0] for name, rows in pooled.items()}
        other = found["cls_token" if kind.pooling == "mean_tokens" else "mean_tokens"]
        said.append(
            {
                "text": text,
                "ids": given["input_ids"][0].tolist(),
                "embedding": found[kind.pooling].tolist(),
                "pooled_otherwise": other.tolist(),
            }
        )
    return said


def write(path: Path, content: Any) -> None:
    """One JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")


def main(root: Path) -> None:
    """Writes and makes all kinds, one of them twice, and some that cannot be made."""
    texts = [*TEXTS, *(text for text in own_texts() if len(text) < 500)]
    for name, kind in KINDS.items():
        write_encoder(kind, root / name)
        served = root / f"{name}-served"
        served.mkdir()
        part = make_encoder(root / name, served)
        said = {"facts": msgspec.to_builtins(part.facts), "graph": part.graph, "model": part.source.model}
        write(root / f"{name}.json", said | {"texts": said_by_transformers(root / name, kind, texts)})
    (root / "again").mkdir()
    write(root / "again.json", make_encoder(root / "cased", root / "again").graph)
    write(root / "spoiled.json", spoil(root / "cased", root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
