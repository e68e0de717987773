"""First ids of a Unigram tokenizer in fresh processes: the library, and our pieces, in turns.

    .venv/bin/python -m coldframe_bench.studies.unigram_start

makes a tokenizer of 250,000 pieces, as many as XLM-R has, and prints the table of docs/encoders.md.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from coldframe.model.files import PIECES, TOKENIZER
from coldframe.progress import Progress
from coldframe_training.encoder_build.tokenizer_files import pieces_of

_PIECES = 250_000
_PROCESSES = 15  # of each way
_WORDS = 100  # of the text
_WAYS = {
    "library": """
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
ids = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
""",
    "pieces": """
from pathlib import Path
from coldframe.model.wordpiece import load_plain
tokenizer = load_plain(Path(folder), "unigram")
ids = lambda text: tokenizer.ids(text) if tokenizer.is_plain(text) else None
""",
}
_CHILD = """
import json, sys, time
folder, first, second = json.loads(sys.stdin.read())
begun_s = time.perf_counter()
{way}
found = ids(first)
first_s = time.perf_counter() - begun_s
begun_s = time.perf_counter()
ids(second)
second_s = time.perf_counter() - begun_s
begun_s = time.perf_counter()
ids(second)
again_s = time.perf_counter() - begun_s
with open("/proc/self/status") as status:
    peak_mb = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([found, [1e3 * first_s, 1e3 * second_s, 1e3 * again_s, peak_mb]]))
"""
_LATIN, _CYRILLIC = "abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщыьэюя"
_SCRIPTS = (_LATIN, _CYRILLIC, "".join(map(chr, range(0x4E00, 0x5E00))))


def main() -> None:
    """Makes the tokenizer, measures, prints a Markdown table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        words = write_files(folder)
        dice = random.Random(2)
        texts = [" ".join(dice.choices(words, k=_WORDS)) for _ in range(2)]
        figures = measure(folder, texts)
        sizes_mb = {name: (folder / name).stat().st_size / 1e6 for name in (TOKENIZER, PIECES)}
    print(f"{_PIECES:,} pieces, {_WORDS} words a text, {_PROCESSES} processes each, in turns; medians")
    print("| | first ids, ms | ids of another text, ms | of that text again, ms | peak memory, MB |")
    print("|---|---|---|---|---|")
    medians = {way: list(map(statistics.median, zip(*rows, strict=True))) for way, rows in figures.items()}
    for way, row in medians.items():
        print(f"| {way} | " + " | ".join(f"{value:.2f}" for value in row) + " |")
    print(f"first ids: {medians['pieces'][0] / medians['library'][0]:.3f} of the library's time")
    print(", ".join(f"{name} {size:.1f} MB" for name, size in sizes_mb.items()))


def write_files(folder: Path) -> list[str]:
    """The tokenizer of made-up words of three scripts, in both forms. Returns words of texts."""
    dice = random.Random(1)
    pieces: dict[str, float] = {"<unk>": 0.0}
    pieces |= {character: -12.0 for script in _SCRIPTS for character in script} | {"▁": -4.0}
    while len(pieces) < _PIECES:
        script = dice.choice(_SCRIPTS)
        length = dice.choices(range(2, 10), (4, 6, 7, 6, 4, 3, 2, 1))[0]
        start = "▁" if dice.random() < 0.6 else ""
        pieces[start + "".join(dice.choices(script, k=length))] = -8 - 8 * dice.random()
    tokenizer = Tokenizer(models.Unigram(list(pieces.items()), unk_id=0, byte_fallback=False))
    runs = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), runs])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.save(str(folder / TOKENIZER))
    (folder / PIECES).write_bytes(pieces_of(Tokenizer.from_file(str(folder / TOKENIZER))))
    return ["".join(dice.choices(dice.choice(_SCRIPTS[:2]), k=dice.randint(2, 10))) for _ in range(5_000)]


def measure(folder: Path, texts: Sequence[str]) -> dict[str, list[list[float]]]:
    """Milliseconds of the first ids, of another text's and of the same again, and peak memory, by way."""
    request = json.dumps([str(folder), *texts])
    by_way: dict[str, list[list[float]]] = {way: [] for way in _WAYS}
    ids = set()
    for _ in Progress(range(_PROCESSES), desc="measure", unit="round"):
        for way, code in _WAYS.items():
            command = [sys.executable, "-c", _CHILD.format(way=code)]
            done = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
            token_ids, figures = json.loads(done.stdout)
            ids.add(tuple(token_ids))
            by_way[way].append(figures)
    if len(ids) != 1:
        sys.exit("Error: the two ways give different ids, so that their times say nothing.")
    return by_way


if __name__ == "__main__":
    main()
