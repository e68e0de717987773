"""MLPerf LoadGen beside our own loader, on the same server: the two have to agree."""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from bench.data.texts import load_texts, sentences
from bench.loader.open_loop import Answered, Load, send, send_closed
from bench.records.quantiles import Interval, median, quantile
from bench.records.raw_files import RawFile, Results, Timing
from bench.records.tables import Row, table
from bench.targets.cores import loader_core, target_cores
from bench.targets.environments import ENVIRONMENTS, PEERS, PeersMissing, install
from bench.targets.machine import describe_run
from bench.targets.peers import Contender, ours
from bench.targets.serving import ServerFailed, serve
from coldframe.capacity.arrivals import poisson
from coldframe.progress import Progress
from local.paths import models

LOADGEN, OURS = "LoadGen", "our loader"
SINGLE_STREAM, SERVER, OFFLINE = "SingleStream", "Server", "Offline"
SCENARIOS = (SINGLE_STREAM, SERVER, OFFLINE)
_NAME = "loadgen"
_TEXTS = 50
_CONCURRENCY = 8  # as many callers as LoadGen's side has for Offline
_LIMIT_S = 300


@dataclass(frozen=True)
class LoadGenOptions:
    """rounds: in which both take turns; rate_rps: of the scenario Server."""

    model_dir: Path
    out: Path
    seed: int
    rounds: int = 3
    requests: int = 300
    rate_rps: float = 20.0
    environments: Path = ENVIRONMENTS


def run(options: LoadGenOptions) -> Path:
    """Every scenario by both, in turns; returns the raw file. Raises PeersMissing."""
    facts = {"requests": options.requests, "rate_rps": options.rate_rps, "rounds": options.rounds}
    described = describe_run("loadgen", options.model_dir, options.seed, facts)
    if reason := install(options.environments / _NAME, _NAME, needs_torch=False):
        raise PeersMissing(f"MLPerf LoadGen cannot be installed: {reason}")
    served = {"COLDFRAME_MODEL_DIR": str(options.model_dir.resolve()), "COLDFRAME_MODELS": models()}
    contender = ours("coldframe", '["auto"]', served)
    server = contender.server
    bodies = [server.ask(text) for text in load_texts(_TEXTS, options.seed).texts]
    with RawFile(options.out, described) as raw, target_cores(), serve(server, sentences()[0]), loader_core():
        warm_up = Load("warm-up", server.url, 0.0, [0.0] * len(bodies), bodies, timeout_s=60.0)
        for _ in range(3):
            send_closed(warm_up, _CONCURRENCY)
        for number in Progress(range(options.rounds), desc="rounds", unit="round"):
            for scenario in SCENARIOS:
                for timing in _both(options, contender, bodies, scenario, number):
                    raw.write(timing)
    return options.out


def _both(
    options: LoadGenOptions, contender: Contender, bodies: Sequence[bytes], scenario: str, number: int
) -> Iterator[Timing]:
    conditions: dict[str, int | str] = {"scenario": scenario, "round": number}
    for ms in _by_loadgen(options, contender.server.url, bodies, scenario):
        yield Timing(LOADGEN, conditions, ms)
    replies = _by_ours(options, contender.server.url, bodies, scenario, number)
    if refused := [record.status for record in replies.records if record.status != HTTPStatus.OK]:
        raise ServerFailed(f"{len(refused)} requests of {scenario} were not answered; one got {refused[0]}.")
    for record in replies.records:
        since_start_ms = (
            (record.sent_s * 1e3 + record.latency_ms) if scenario == OFFLINE else record.latency_ms
        )
        yield Timing(OURS, conditions | {"status": record.status}, since_start_ms)


def _by_ours(
    options: LoadGenOptions, url: str, bodies: Sequence[bytes], scenario: str, number: int
) -> Answered:
    """Offline: all are due at once, and their latency runs from the start."""
    chosen = [bodies[n % len(bodies)] for n in range(options.requests)]
    due_s = poisson(options.rate_rps, options.requests, options.seed + number)
    load = Load(OURS, url, options.rate_rps, due_s, chosen, timeout_s=60.0)
    if scenario == SERVER:
        return send(load)
    return send_closed(load, 1 if scenario == SINGLE_STREAM else _CONCURRENCY)


def _by_loadgen(options: LoadGenOptions, url: str, bodies: Sequence[bytes], scenario: str) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bodies"
        file.write_text("".join(json.dumps(body.decode()) + "\n" for body in bodies))
        python = options.environments / _NAME / "bin" / "python"
        command = [
            python,
            PEERS / _NAME / "measure.py",
            scenario,
            url,
            file,
            options.requests,
            options.rate_rps,
        ]
        done = subprocess.run(
            [*map(str, command), folder], capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
        if done.returncode:
            raise PeersMissing(f"MLPerf LoadGen ended with status {done.returncode}: {done.stderr[-500:]}")
        report = json.loads(done.stdout.splitlines()[-1])
    if report["failed"]:
        raise ServerFailed(f"{report['failed']} requests of {scenario} by MLPerf LoadGen were not answered.")
    latencies_ms: list[float] = report["latencies_ms"]
    return latencies_ms


def loadgen_table(results: Results) -> str:
    """Latency by both loaders in each scenario; they agree where their intervals overlap."""
    head = ("scenario", "what", LOADGEN, OURS, "")
    return table(head, [row for scenario in SCENARIOS for row in _rows(results, scenario)])


def _rows(results: Results, scenario: str) -> Iterable[Row]:
    """Offline is about the last answer: all are due at the start, so that is the throughput."""
    numbers = range(results.run.options["rounds"])
    rounds = {
        name: [results.timings_ms(name, scenario=scenario, round=number) for number in numbers]
        for name in (LOADGEN, OURS)
    }
    if scenario == OFFLINE:
        pair = [median([len(times) / max(times) * 1e3 for times in rounds[name]]) for name in (LOADGEN, OURS)]
        yield (scenario, "answers/s", *(interval.text(1) for interval in pair), _agreement(*pair))
        return
    for p in (0.5, 0.9):
        pair = [quantile([ms for times in rounds[name] for ms in times], p) for name in (LOADGEN, OURS)]
        yield (scenario, f"p{p * 100:.0f}, ms", *(interval.text(2) for interval in pair), _agreement(*pair))


def _agreement(one: Interval, other: Interval) -> str:
    return "agree" if one.overlaps(other) else "**differ**"
