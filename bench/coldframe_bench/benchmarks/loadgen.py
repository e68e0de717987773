"""MLPerf LoadGen beside our own loader, on the same server: the two have to agree."""

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import cycle, islice
from pathlib import Path

from coldframe.capacity.arrivals import poisson
from coldframe.progress import Progress
from coldframe_bench.data.texts import load_texts, sentences
from coldframe_bench.loader.open_loop import Load, send, send_closed
from coldframe_bench.records.quantiles import Interval, median, quantile
from coldframe_bench.records.raw_files import Answer, RawFile, Results, Timing
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.environments import ENVIRONMENTS, install, measure_peer
from coldframe_bench.targets.machine import describe_run
from coldframe_bench.targets.peers import ours
from coldframe_bench.targets.serving import ServerFailed, full_load, served

LOADGEN, OURS = "LoadGen", "our loader"
SINGLE_STREAM, SERVER, OFFLINE = "SingleStream", "Server", "Offline"
SCENARIOS = (SINGLE_STREAM, SERVER, OFFLINE)
_NAME = "loadgen"
_TEXTS = 50
_CONCURRENCY = 8  # as many callers as LoadGen's side has for Offline


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
    python = install(options.environments, _NAME)
    server = ours("coldframe", '["auto"]', options.model_dir)
    texts = load_texts(_TEXTS, options.seed).texts
    bodies = [server.ask(text) for text in texts]
    with RawFile(options.out, described) as raw, served(server, sentences()[0]):
        for _ in range(3):
            full_load(server, texts, _CONCURRENCY)
        for number in Progress(range(options.rounds), desc="rounds", unit="round"):
            for scenario in SCENARIOS:
                by: dict[str, int | str] = {"scenario": scenario, "round": number}
                theirs = _by_loadgen(options, python, server.url, bodies, scenario)
                raw.write(*(Timing(LOADGEN, by, ms) for ms in theirs))
                for answer in _by_ours(options, server.url, bodies, scenario, number):
                    # Offline, all are due at once: latency runs from the start.
                    waited_ms = answer.sent_s * 1e3 if scenario == OFFLINE else 0.0
                    raw.write(Timing(OURS, by, waited_ms + answer.latency_ms))
    return options.out


def _by_ours(
    options: LoadGenOptions, url: str, bodies: Sequence[bytes], scenario: str, number: int
) -> list[Answer]:
    due_s = poisson(options.rate_rps, options.requests, options.seed + number)
    sent = islice(cycle(bodies), options.requests)
    load = Load(OURS, url, options.rate_rps, due_s, list(sent), timeout_s=60.0)
    callers = 1 if scenario == SINGLE_STREAM else _CONCURRENCY
    answers = (send(load) if scenario == SERVER else send_closed(load, callers)).records
    _check_answered(scenario, sum(answer.status != HTTPStatus.OK for answer in answers))
    return answers


def _by_loadgen(
    options: LoadGenOptions, python: Path, url: str, bodies: Sequence[bytes], scenario: str
) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bodies"
        file.write_text("".join(json.dumps(body.decode()) + "\n" for body in bodies))
        lines = measure_peer(python, _NAME, scenario, url, file, options.requests, options.rate_rps, folder)
    report = json.loads(lines[-1])
    _check_answered(scenario, report["failed"])
    latencies_ms: list[float] = report["latencies_ms"]
    return latencies_ms


def _check_answered(scenario: str, failures: int) -> None:
    if failures:
        raise ServerFailed(f"{failures} requests of {scenario} were not answered. Lower --start-rps.")


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
