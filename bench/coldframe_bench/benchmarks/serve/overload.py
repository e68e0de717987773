"""`coldframe serve` at three times its capacity: refusing requests, beside answering them by less work."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from coldframe.capacity.arrivals import poisson
from coldframe.config import Settings
from coldframe.pipeline.models import load_predictor
from coldframe.progress import Progress
from coldframe.schemas import PredictReply
from coldframe_bench.benchmarks.serve.mixes import ServeOptions
from coldframe_bench.data.texts import Labelled, load_labelled
from coldframe_bench.loader.open_loop import Load, send
from coldframe_bench.records.raw_files import Answer, Fact, RawFile, Results
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.machine import describe_run
from coldframe_bench.targets.peers import own_server
from coldframe_bench.targets.serving import Server, full_load, served

REFUSE, RUSH = "refuse", "rush"
SIDES = (REFUSE, RUSH)
TEXTS = (1, 8)
"""Texts of a request. One text, or several of which one may need the encoder."""
OVERLOAD = 3.0
_BODY = '{"texts": $TEXT, "cache": false}'
_CALLERS, _WARM_UP, _CAPACITY = 16, 60, {1: 800, 8: 100}
_TIMEOUT_S = 10.0
_RIGHT, _ANSWERED, _RUSHED, _ESTIMATOR = "right_texts", "answered_texts", "rushed_texts", "estimator_right"


@dataclass(frozen=True)
class Counts:
    """Texts answered in time, texts with the right label, and texts with a rushed answer."""

    texts: int
    right: int
    rushed: int


def run(options: ServeOptions) -> None:
    """Measures the capacity while refusing, then both sides at three times as many requests."""
    texts = load_labelled(options.seed)
    facts: dict[str, object] = {name: getattr(options, name) for name in ("seconds", "rounds", "deadline_ms")}
    facts |= {"source": texts.source, "overload": OVERLOAD}
    with RawFile(options.out, describe_run("overload", options.model_dir, options.seed, facts)) as raw:
        for per_request in TEXTS:
            _measure(options, raw, texts, per_request)


def target_of(side: str, per_request: int) -> str:
    """The name of a side's answers in the raw file."""
    return f"{side}, texts per request: {per_request}"


def _measure(options: ServeOptions, raw: RawFile, texts: Labelled, per_request: int) -> None:
    servers = {side: _server(options, side, per_request) for side in SIDES}
    grouped = texts.grouped(per_request)
    capacity_rps = _capacity_rps(servers[REFUSE], grouped)
    rate_rps = OVERLOAD * capacity_rps
    count = max(20, math.ceil(rate_rps * options.seconds))
    requests = [grouped[number % len(grouped)] for number in range(count)]
    raw.write(Fact(_ESTIMATOR, str(per_request), _estimator_right(options, texts, requests)))
    turns = [(number, side) for number in range(options.rounds) for side in SIDES]
    for number, side in Progress(turns, desc=f"texts per request: {per_request}", unit="turn"):
        due_s = poisson(rate_rps, count, options.seed + number)
        bodies = [servers[side].ask(request) for request in requests]
        target = target_of(side, per_request)
        with served(servers[side], list(requests[0])):
            full_load(servers[side], grouped[:_WARM_UP], _CALLERS)
            replies = send(Load(target, servers[side].url, rate_rps, due_s, bodies, _TIMEOUT_S))
        raw.write(*replies.records)
        counts = _count(texts, requests, replies.records, replies.bodies, options.deadline_ms)
        raw.write(
            Fact(_ANSWERED, target, counts.texts),
            Fact(_RIGHT, target, counts.right),
            Fact(_RUSHED, target, counts.rushed),
        )


def _capacity_rps(server: Server, grouped: Sequence[Sequence[str]]) -> float:
    with served(server, list(grouped[0])):
        full_load(server, grouped[:_WARM_UP], _CALLERS)
        return full_load(server, grouped[: _CAPACITY[len(grouped[0])]], _CALLERS)


def _server(options: ServeOptions, side: str, per_request: int) -> Server:
    environ = {"COLDFRAME_OVERLOAD": side, "COLDFRAME_OBJECTIVE_MS": str(round(options.deadline_ms))}
    server = own_server(target_of(side, per_request), options.model_dir, environ)
    return Server(server.command, server.cwd, server.environ, server.port, server.path, _BODY, server.title)


def _estimator_right(options: ServeOptions, texts: Labelled, requests: Sequence[Sequence[str]]) -> float:
    """Share of these texts that the estimator alone labels right."""
    predictor = load_predictor(Settings(model_dir=options.model_dir))
    labels = predictor.manifest.labels
    all_texts = [text for request in requests for text in request]
    guesses = predictor.guess(all_texts)
    right = (
        labels[max(range(len(labels)), key=guess.probabilities.__getitem__)] == texts.labels[text]
        for text, guess in zip(all_texts, guesses, strict=True)
    )
    return sum(right) / len(all_texts)


def _count(
    texts: Labelled,
    requests: Sequence[Sequence[str]],
    records: Sequence[Answer],
    bodies: Sequence[bytes],
    deadline_ms: float,
) -> Counts:
    done = right = rushed = 0
    for request, record, body in zip(requests, records, bodies, strict=True):
        if not _is_in_time(record, deadline_ms):
            continue
        for text, prediction in zip(
            request, msgspec.json.decode(body, type=PredictReply).predictions, strict=True
        ):
            answer = prediction.heads["auto"]
            done += 1
            right += answer.label == texts.labels[text]
            rushed += answer.rushed
    return Counts(done, right, rushed)


def _is_in_time(answer: Answer, deadline_ms: float) -> bool:
    return answer.status == 200 and answer.latency_ms <= deadline_ms


def overload_table(results: Results) -> str:
    """Both sides, then the goals."""
    return sides_table(results) + "\n" + "".join(f"- {line}\n" for line in goals(results))


def sides_table(results: Results) -> str:
    """A row for each side and number of texts in a request."""
    head = "texts per request | side | offered requests/s | in time, of all | in time, of answers | refused"
    head += " | accuracy | estimator alone | rushed | right texts/s"
    rows = [_row(results, per_request, side) for per_request in TEXTS for side in SIDES]
    return table(head, rows)


def goals(results: Results) -> Iterator[str]:
    """Lines with each goal and its result, by the texts of a request."""
    for per_request in TEXTS:
        answers = _answers(results, target_of(RUSH, per_request))
        deadline_ms = results.run.options["deadline_ms"]
        in_time = sum(_is_in_time(answer, deadline_ms) for answer in answers) / len(answers)
        gain = _right_per_s(results, per_request, RUSH) / _right_per_s(results, per_request, REFUSE)
        gap = _accuracy(results, per_request, RUSH) - _estimator(results, per_request)
        yield (
            f"{per_request} a request: {in_time:.1%} of all requests in time (goal: 99 %);"
            f" {gain:.2f} × the right texts of refusing (goal: 2);"
            f" {100 * gap:+.1f} points beside the estimator (goal: 0)"
        )


def _row(results: Results, per_request: int, side: str) -> Row:
    target, deadline_ms = target_of(side, per_request), results.run.options["deadline_ms"]
    answers = _answers(results, target)
    in_time = sum(_is_in_time(answer, deadline_ms) for answer in answers)
    done = sum(answer.status == 200 for answer in answers)
    rushed = _sum(results, _RUSHED, target) / max(1, _sum(results, _ANSWERED, target))
    return (
        str(per_request),
        side,
        f"{answers[0].offered_rps:.1f}",
        f"{in_time / len(answers):.1%}",
        f"{in_time / max(1, done):.1%}",
        f"{1 - done / len(answers):.1%}",
        f"{_accuracy(results, per_request, side):.1%}",
        f"{_estimator(results, per_request):.1%}",
        f"{rushed:.1%}",
        f"{_right_per_s(results, per_request, side):.1f}",
    )


def _answers(results: Results, target: str) -> list[Answer]:
    return [answer for answer in results.of(Answer) if answer.target == target]


def _accuracy(results: Results, per_request: int, side: str) -> float:
    target = target_of(side, per_request)
    return _sum(results, _RIGHT, target) / max(1, _sum(results, _ANSWERED, target))


def _estimator(results: Results, per_request: int) -> float:
    return results.facts(_ESTIMATOR, str(per_request))[0]


def _right_per_s(results: Results, per_request: int, side: str) -> float:
    """Texts answered in time with the right label, a second of the offered load."""
    target = target_of(side, per_request)
    seconds = max(answer.due_s for answer in _answers(results, target)) * len(results.facts(_RIGHT, target))
    return _sum(results, _RIGHT, target) / seconds


def _sum(results: Results, name: str, target: str) -> float:
    return sum(results.facts(name, target))
