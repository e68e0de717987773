"""sentence-transformers in fp16 on a GPU: `measure.py TOKENIZER SECONDS`, lines of JSON on standard input.

A line of JSON for each way that was measured: its name, tokens per second, and what it took. The weights
are drawn by chance, in the shape of all-MiniLM-L6-v2: how long a pass takes does not depend on their values.
Needs torch, transformers and sentence-transformers, and nothing of this project.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

MAX_TOKENS = 256
BATCHES = (64, 256, 1024, 4096)  # texts that sentence-transformers passes at once
PASS_TOKENS = 65_536
TEXTS = 8192


def main(tokenizer_file: str, seconds: float) -> None:
    """Every batch size, then passes alone."""
    texts = [json.loads(line) for line in sys.stdin][:TEXTS]
    with tempfile.TemporaryDirectory() as folder:
        _write_model(Path(folder), tokenizer_file)
        model = SentenceTransformer(folder, device="cuda").half()
    model.max_seq_length = MAX_TOKENS
    ids = model.tokenizer(texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]
    tokens = sum(map(len, ids))
    for batch in BATCHES:
        name = f"sentence-transformers fp16, batches of {batch}"
        _measure(name, tokens, seconds, lambda batch=batch: model.encode(texts, batch_size=batch))
    passes = _passes(sorted(ids, key=len))
    bert = next(module for module in model.modules() if isinstance(module, BertModel))
    name = f"transformers fp16 (sdpa), no tokenizer, sorted, passes of {PASS_TOKENS} tokens"
    _measure(name, tokens, seconds, lambda: _forward(bert, passes))


def _write_model(folder: Path, tokenizer_file: str) -> None:
    config = BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=tokenizer_file,
        unk_token="[UNK]",  # noqa: S106
        pad_token="[PAD]",  # noqa: S106
        cls_token="[CLS]",  # noqa: S106
        sep_token="[SEP]",  # noqa: S106
        mask_token="[MASK]",  # noqa: S106
    )
    tokenizer.save_pretrained(folder)


def _passes(ids: list[list[int]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Padded ids and masks of passes of about PASS_TOKENS positions."""
    passes: list[list[list[int]]] = [[]]
    for row in ids:
        if passes[-1] and (len(passes[-1]) + 1) * len(row) > PASS_TOKENS:
            passes.append([])
        passes[-1].append(row)
    made = []
    for rows in passes:
        longest = max(map(len, rows))
        padded = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        made.append((padded, mask))
    return made


def _forward(model: BertModel, passes: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Mean pooling, normalisation, and the embeddings back in the machine's memory."""
    with torch.inference_mode():
        for ids, mask in passes:
            on_gpu = mask.cuda(non_blocking=True)
            hidden = model(input_ids=ids.cuda(non_blocking=True), attention_mask=on_gpu).last_hidden_state
            weights = on_gpu.unsqueeze(-1).to(hidden.dtype)
            pooled = (hidden * weights).sum(1) / weights.sum(1)
            torch.nn.functional.normalize(pooled.float(), dim=-1).cpu()


def _measure(name: str, tokens: int, seconds: float, call: Callable[[], object]) -> None:
    call()
    torch.cuda.synchronize()
    start_s, calls = time.perf_counter(), 0
    while time.perf_counter() - start_s < seconds:
        call()
        calls += 1
    torch.cuda.synchronize()
    spent_s = time.perf_counter() - start_s
    line = {"name": name, "tokens_per_s": calls * tokens / spent_s, "seconds": spent_s}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
