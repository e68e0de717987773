"""`coldframe bench gpu`: both graphs, texts to embeddings, over HTTP, and a peer on the same device."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import mean

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
from coldframe.model.tokenizer import TextWindows, Window, normalise
from coldframe_bench.benchmarks.gpu.device import Watched, device_name, flops_per_token, peak_flops
from coldframe_bench.benchmarks.gpu.in_process import (
    ARRIVAL,
    SORTED,
    Measured,
    make_passes,
    measure,
    measure_passes,
    measure_texts,
    measure_tokenizer,
)
from coldframe_bench.benchmarks.gpu.over_http import Loaded, request_bodies, send_all
from coldframe_bench.data.texts import load_texts
from coldframe_bench.records.raw_files import Fact, RawFile, Timing
from coldframe_bench.targets.environments import PEERS
from coldframe_bench.targets.machine import describe_run
from coldframe_bench.targets.peers import own_server
from coldframe_bench.targets.serving import ServerFailed, serve
from coldframe_local.paths import default_model

Conditions = Mapping[str, int | str]

_HEAD_ROWS = 2048
_SHARE = 0.8  # of full load, at which deadlines are counted
_DEADLINE_S = 0.25
_PEER = "sentence-transformers"


@dataclass(frozen=True)
class GpuOptions:
    """Options of a measurement. peer_python: Python with sentence-transformers; None: no peer.

    pass_tokens: tokens of a pass, each tried. threads: threads that drive the device, each number tried.
    provider: of onnxruntime; another one than CUDA's where the benchmark itself is tried.
    """

    model_dir: Path
    out: Path
    seed: int
    texts: int
    file: Path | None
    seconds: float
    pass_tokens: Sequence[int]
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
    mix = load_texts(options.texts, options.seed, options.file)
    texts = [normalise(text) for text in islice(cycle(mix.texts), options.texts)]
    rows = [row for text in windows.cut(texts) for row in text]
    facts = {"texts": options.texts, "seconds": options.seconds, "provider": options.provider}
    with RawFile(options.out, describe_run("gpu", options.model_dir, options.seed, facts)) as raw:
        raw.write(Fact("source", "texts", text=mix.source))
        _Bench(options, raw, manifest, folder, windows, texts, rows).run(base.name)


@dataclass(frozen=True)
class _Bench:
    """One run, and where its lines go. rows: windows of the texts, one after another."""

    options: GpuOptions
    raw: RawFile
    manifest: EncoderManifest
    folder: Path
    windows: TextWindows
    texts: list[str]
    rows: list[Window]

    def run(self, encoder: str) -> None:
        self._describe()
        opened = {graph: session for graph in (PACKED, PADDED) if (session := self._open(graph))}
        for graph, session in opened.items():
            self._passes(graph, session)
        for threads in sorted({1, usable_cpus()}):
            cut = measure_tokenizer(self.windows, self.texts, threads, self.options.seconds)
            self._measured("tokenize", {"threads": threads}, cut)
        if opened:
            served = next(iter(opened.values()))
            self._texts(served)
            self._heads(served)
        opened.clear()  # memory of the device, for whoever comes next
        if self.options.with_http:
            try:
                self._http(encoder)
            except ServerFailed as exc:
                self._fact("failed", "server", text=str(exc))
        self._peer()

    def _describe(self) -> None:
        device = device_name()
        self._fact("device", "gpu", text=device or "none")
        self._fact("tokens", "texts", sum(map(len, self.rows)))
        self._fact("rows", "texts", len(self.rows))
        flops = flops_per_token(self.folder, self.manifest.facts)
        self._fact("flops_per_token", "encoder", flops)
        if peak := peak_flops(device):
            self._fact("bound_tokens_per_s", "gpu", peak / flops)

    def _open(self, graph: str) -> MixedEncoder | None:
        """A graph that passes the golden texts; of another one the reason is noted."""
        try:
            dimension = self.manifest.facts.dimension
            encoder = MixedEncoder(self.folder / graph, dimension, self.options.provider)
            lowest = check_together(encoder, self.windows, load_golden(self.folder))
        except BundleError as exc:
            self._fact("refused", graph, text=str(exc))
            return None
        self._fact("lowest_cosine", graph, lowest)
        return encoder

    def _passes(self, graph: str, encoder: MixedEncoder) -> None:
        for order in (ARRIVAL, SORTED):
            for tokens in self.options.pass_tokens:
                passes = make_passes(self.rows, order, tokens)
                for threads in self.options.threads:
                    measurement = measure_passes(encoder, passes, threads, self.options.seconds)
                    by: Conditions = {"graph": graph, "order": order, "tokens": tokens, "threads": threads}
                    self._measured("pass", by, measurement)

    def _texts(self, encoder: MixedEncoder) -> None:
        cutters = max(1, usable_cpus() - 2)
        for tokens in self.options.pass_tokens:
            for threads in self.options.threads:
                measurement = measure_texts(
                    self.windows, encoder, self.texts, tokens, cutters, threads, self.options.seconds
                )
                by: Conditions = {"graph": encoder.graph, "tokens": tokens, "threads": threads}
                self._measured("texts", {**by, "tokenizer_threads": cutters}, measurement)

    def _heads(self, encoder: MixedEncoder) -> None:
        """Heads run where they are: on one core."""
        manifest, _ = load_pair(self.options.model_dir, default_model())
        heads = load_heads(model_folder(self.options.model_dir, manifest.name), manifest.estimator.partner)
        rows = list(islice(cycle(encoder.encode(self.rows[:256])), _HEAD_ROWS))

        def classify(head: str) -> int:
            heads.probabilities(rows, head=head)
            return len(rows)

        for name in manifest.heads:
            classify(name)
            rate = measure(1, self.options.seconds, partial(classify, name)).tokens_per_s
            self._fact("rows_per_s", name, rate)

    def _http(self, encoder: str) -> None:
        device = "cuda" if self.options.provider == CUDA else "cpu"
        environ = {"COLDFRAME_DEVICE": device, "COLDFRAME_L1_CACHE_BYTES": "0"}
        server = own_server("server", self.options.model_dir, environ)
        url = f"http://127.0.0.1:{server.port}/v2/models/{encoder}/infer"
        with serve(server, self.texts[0]) as started:
            self._fact("first_answer_s", "server", started.cold_ms / 1e3)
            bodies = request_bodies(self.texts, None)
            send_all(url, bodies[:32], 8)
            best = 0.0
            for concurrency in (8, 32, 64):
                sent = send_all(url, bodies, concurrency)
                best = max(best, self._loaded({"concurrency": concurrency}, sent))
            bodies = request_bodies(self.texts, _DEADLINE_S)
            sent = send_all(url, bodies, rate_rps=_SHARE * best, seed=self.options.seed)
            self._loaded({"share_percent": round(_SHARE * 100)}, sent)
            admitted = [answer for answer in sent.answers if answer.status == 200]
            self._fact("admitted", "deadlines", len(admitted))
            missed = sum(answer.latency_ms > _DEADLINE_S * 1e3 for answer in admitted)
            self._fact("missed", "deadlines", missed)

    def _peer(self) -> None:
        python = self.options.peer_python
        if python is None:
            self._fact("missing", _PEER, text="no environment with it was named")
            return
        command = (python, PEERS / "gpu" / "measure.py", self.folder / TOKENIZER, self.options.seconds)
        done = subprocess.run(
            [str(part) for part in command],
            input="\n".join(json.dumps(text) for text in self.texts),
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
            self._fact("missing", _PEER, text=reason)

    def _measured(self, name: str, conditions: Conditions, measurement: Measured) -> None:
        self.raw.write(*(Timing(name, dict(conditions), ms) for ms in measurement.pass_ms))
        self._rate(_subject(name, conditions), measurement.tokens_per_s, measurement.watched)

    def _loaded(self, conditions: Conditions, measurement: Loaded) -> float:
        """Notes a load of all texts; returns its answers per second."""
        subject = _subject("http", conditions)
        good = sum(answer.status == 200 for answer in measurement.answers)
        rate = good / measurement.seconds
        self.raw.write(*measurement.answers)
        tokens = sum(map(len, self.rows)) / max(1, len(measurement.answers))  # of a request
        self._rate(subject, rate * tokens, measurement.watched)
        self._fact("answered", subject, good)
        self._fact("asked", subject, len(measurement.answers))
        return rate

    def _rate(self, subject: str, tokens_per_s: float, watched: Watched) -> None:
        self._fact("tokens_per_s", subject, tokens_per_s)
        for name, readings in (("busy", watched.busy), ("power_w", watched.power_w)):
            if readings:
                self._fact(name, subject, mean(readings))

    def _fact(self, name: str, subject: str, value: float | None = None, text: str = "") -> None:
        self.raw.write(Fact(name, subject, value, text))


def _subject(name: str, conditions: Conditions) -> str:
    return ", ".join([name, *(f"{key} {value}" for key, value in conditions.items())])
