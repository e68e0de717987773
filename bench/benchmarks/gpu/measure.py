"""`coldframe bench gpu`: both graphs, texts to embeddings, over HTTP, and a peer on the same device."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from bench.benchmarks.gpu.bound import device_name, flops_per_token, peak_flops
from bench.benchmarks.gpu.in_process import (
    Measured,
    measure_passes,
    measure_texts,
    measure_tokenizer,
    rows_per_s,
)
from bench.benchmarks.gpu.over_http import BATCH, Loaded, at_rate, full_load, request_body, serving
from bench.benchmarks.gpu.work import ARRIVAL, SORTED, Work, load_work, make_passes
from bench.records.raw_files import Fact, RawFile, Timing
from bench.targets.environments import PEERS
from bench.targets.machine import describe_run
from bench.targets.serving import ServerFailed
from coldframe.cpus import usable_cpus
from coldframe.errors import BundleError
from coldframe.gpu.device import check_device
from coldframe.gpu.encoder import CUDA, MixedEncoder
from coldframe.gpu.files import PACKED, PADDED, gpu_encoder
from coldframe.gpu.load import load_gpu_manifest, open_tokenizer
from coldframe.gpu.start import check_together
from coldframe.model.bundle import EncoderManifest, load_golden, load_pair
from coldframe.model.files import TOKENIZER, encoder_folder, model_folder
from coldframe.model.model import load_heads
from coldframe.model.tokenizer import TextWindows
from local.paths import default_model

_HEAD_ROWS = 2048
_SHARE = 0.8  # of full load, at which deadlines are counted
_DEADLINE_S = 0.25


@dataclass(frozen=True)
class GpuOptions:
    """Options of a measurement. peer_python: Python with sentence-transformers; None: no peer.

    passes: tokens of a pass, each tried. threads: threads that drive the device, each number tried.
    provider: of onnxruntime; another one than CUDA's where the benchmark itself is tried.
    """

    model_dir: Path
    out: Path
    seed: int
    texts: int
    file: Path | None
    seconds: float
    passes: Sequence[int]
    threads: Sequence[int]
    peer_python: Path | None
    with_http: bool
    provider: str = CUDA


def run(options: GpuOptions) -> None:
    """Writes the raw file. Raises DeviceMissing without a GPU, and a BundleError without its encoder."""
    if options.provider == CUDA:
        check_device()
    _, base = load_pair(options.model_dir, default_model())
    manifest = load_gpu_manifest(options.model_dir, base)
    folder = encoder_folder(options.model_dir, gpu_encoder(base.name))
    windows = open_tokenizer(folder, manifest)
    work = load_work(windows, options.texts, options.seed, options.file)
    facts = {"texts": options.texts, "seconds": options.seconds, "provider": options.provider}
    with RawFile(options.out, describe_run("gpu", options.model_dir, options.seed, facts)) as raw:
        _Bench(options, raw, manifest, folder, windows, work).run(base.name)


class _Bench:
    """One run, and where its lines go."""

    def __init__(
        self,
        options: GpuOptions,
        raw: RawFile,
        manifest: EncoderManifest,
        folder: Path,
        windows: TextWindows,
        work: Work,
    ) -> None:
        self._options, self._raw, self._manifest = options, raw, manifest
        self._folder, self._windows, self._work = folder, windows, work

    def run(self, encoder: str) -> None:
        self._describe()
        opened = {graph: found for graph in (PACKED, PADDED) if (found := self._open(graph))}
        for graph, found in opened.items():
            self._passes(graph, found)
        self._tokenizer()
        if opened:
            served = next(iter(opened.values()))
            self._texts(served)
            self._heads(served)
        opened.clear()  # memory of the device, for whoever comes next
        if self._options.with_http:
            self._http(encoder)
        self._peer()

    def _describe(self) -> None:
        device = device_name()
        self._fact("device", "gpu", text=device or "none")
        self._fact("source", "texts", text=self._work.source)
        self._fact("tokens", "texts", self._work.tokens)
        self._fact("rows", "texts", len(self._work.rows))
        flops = flops_per_token(self._folder, self._manifest.facts)
        self._fact("flops_per_token", "encoder", flops)
        if peak := peak_flops(device):
            self._fact("bound_tokens_per_s", "gpu", peak / flops)

    def _open(self, graph: str) -> MixedEncoder | None:
        """A graph that passes the golden texts; of another one the reason is noted."""
        try:
            encoder = MixedEncoder(
                self._folder / graph, self._manifest.facts.dimension, self._options.provider
            )
            lowest = check_together(encoder, self._windows, load_golden(self._folder))
        except BundleError as exc:
            self._fact("refused", graph, text=str(exc))
            return None
        self._fact("lowest_cosine", graph, lowest)
        return encoder

    def _passes(self, graph: str, encoder: MixedEncoder) -> None:
        for order in (ARRIVAL, SORTED):
            for tokens in self._options.passes:
                passes = make_passes(self._work.rows, order, tokens)
                for threads in self._options.threads:
                    measurement = measure_passes(encoder, passes, threads, self._options.seconds)
                    by: dict[str, int | str] = {"graph": graph, "order": order, "tokens": tokens}
                    self._measured("pass", {**by, "threads": threads}, measurement)

    def _tokenizer(self) -> None:
        for threads in sorted({1, usable_cpus()}):
            measurement = measure_tokenizer(self._windows, self._work.texts, threads, self._options.seconds)
            self._measured("tokenize", {"threads": threads}, measurement)

    def _texts(self, encoder: MixedEncoder) -> None:
        cutters = max(1, usable_cpus() - 2)
        for tokens in self._options.passes:
            for threads in self._options.threads:
                measurement = measure_texts(
                    self._windows, encoder, self._work.texts, tokens, cutters, threads, self._options.seconds
                )
                conditions: dict[str, int | str] = {"graph": encoder.graph, "tokens": tokens}
                self._measured(
                    "texts", {**conditions, "threads": threads, "tokenizer_threads": cutters}, measurement
                )

    def _heads(self, encoder: MixedEncoder) -> None:
        """Heads run where they are: on one core."""
        manifest, _ = load_pair(self._options.model_dir, default_model())
        heads = load_heads(model_folder(self._options.model_dir, manifest.name), manifest.estimator.partner)
        rows = list(islice(cycle(encoder.encode(self._work.rows[:256])), _HEAD_ROWS))
        for name in manifest.heads:
            rate = rows_per_s(partial(heads.probabilities, head=name), rows, self._options.seconds)
            self._fact("rows_per_s", name, rate)

    def _http(self, encoder: str) -> None:
        device = "cuda" if self._options.provider == CUDA else "cpu"
        try:
            with serving(self._options.model_dir, device) as server:
                self._fact("ready_s", "server", server.ready_s)
                texts = self._work.texts
                bodies = [request_body(texts[i : i + BATCH], None) for i in range(0, len(texts), BATCH)]
                full_load(server, encoder, bodies[:32], 8)
                tokens = self._work.tokens
                best = 0.0
                for concurrency in (8, 32, 64):
                    rate = self._loaded(
                        "http",
                        {"concurrency": concurrency},
                        full_load(server, encoder, bodies, concurrency),
                        tokens,
                    )
                    best = max(best, rate)
                offered = _SHARE * best
                promised = [
                    request_body(texts[i : i + BATCH], _DEADLINE_S) for i in range(0, len(texts), BATCH)
                ]
                at_share = at_rate(server, encoder, promised, offered, self._options.seed)
                self._loaded("http", {"share_percent": round(_SHARE * 100)}, at_share, tokens)
                admitted = [answer for answer in at_share.answers if answer.status == 200]
                missed = sum(answer.latency_ms > _DEADLINE_S * 1e3 for answer in admitted)
                self._fact("admitted", "deadlines", len(admitted))
                self._fact("missed", "deadlines", missed)
        except ServerFailed as exc:
            self._fact("failed", "server", text=str(exc))

    def _loaded(
        self, name: str, conditions: Mapping[str, int | str], measurement: Loaded, tokens: int
    ) -> float:
        """Notes a load; returns its answers per second. tokens: of all its requests."""
        good = sum(answer.status == 200 for answer in measurement.answers)
        rate = good / measurement.seconds
        subject = _subject(name, conditions)
        self._raw.write(*measurement.answers)
        self._fact("tokens_per_s", subject, rate * tokens / max(1, len(measurement.answers)))
        self._fact("answered", subject, good)
        self._fact("asked", subject, len(measurement.answers))
        self._watched(subject, measurement.watched.mean_busy, measurement.watched.mean_power_w)
        return rate

    def _peer(self) -> None:
        python = self._options.peer_python
        if python is None:
            self._fact("missing", "sentence-transformers", text="no environment with it was named")
            return
        command = [str(python), str(PEERS / "gpu" / "measure.py"), str(self._folder / TOKENIZER)]
        done = subprocess.run(
            [*command, str(self._options.seconds)],
            input="\n".join(json.dumps(text) for text in self._work.texts),
            capture_output=True,
            text=True,
            # With its own packages, not with the packages of this process.
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        for line in done.stdout.splitlines():
            said = json.loads(line)
            self._fact("tokens_per_s", said["name"], said["tokens_per_s"])
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            self._fact("missing", "sentence-transformers", text=reason)

    def _measured(self, name: str, conditions: Mapping[str, int | str], measurement: Measured) -> None:
        for ms in measurement.pass_ms:
            self._raw.write(Timing(name, dict(conditions), ms))
        subject = _subject(name, conditions)
        self._fact("tokens_per_s", subject, measurement.tokens_per_s)
        self._watched(subject, measurement.watched.mean_busy, measurement.watched.mean_power_w)

    def _watched(self, subject: str, busy: float | None, power_w: float | None) -> None:
        if busy is not None:
            self._fact("busy", subject, busy)
        if power_w is not None:
            self._fact("power_w", subject, power_w)

    def _fact(self, name: str, subject: str, value: float | None = None, text: str = "") -> None:
        self._raw.write(Fact(name, subject, value, text))


def _subject(name: str, conditions: Mapping[str, int | str]) -> str:
    return ", ".join([name, *(f"{key} {value}" for key, value in conditions.items())])
