"""Raw answers of `bench serve` to its table, and to the goals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coldframe_bench.benchmarks.serve.measure import (
    ALONE,
    CAPACITY_RPS,
    LOADS,
    OURS,
    POLICIES,
    TOKENS_PER_S,
    target_of,
)
from coldframe_bench.benchmarks.serve.mixes import HEADLINES, MIXES, POSTS
from coldframe_bench.benchmarks.serve.over_http import (
    HTTP_CAPACITY_RPS,
    HTTP_LOADS,
    NOT_MEASURED,
    http_target,
)
from coldframe_bench.records.quantiles import quantile
from coldframe_bench.records.raw_files import Answer, Fact, Results
from coldframe_bench.records.tables import Row, table

_OK, _MISSED = 200, 504
_ADMITTED = (_OK, _MISSED)


@dataclass(frozen=True)
class Met:
    """Shares of requests that were done by their deadline."""

    of_all: float
    of_admitted: float


def met_of(answers: Sequence[Answer], deadline_ms: float) -> Met:
    """Share of these answers. A refused request was not admitted."""
    on_time = sum(answer.status == _OK and answer.latency_ms <= deadline_ms for answer in answers)
    admitted = sum(answer.status in _ADMITTED for answer in answers)
    return Met(on_time / len(answers), on_time / max(1, admitted))


def serve_table(results: Results) -> str:
    """Policies and what of the goals they reach, then servers over HTTP where they were measured."""
    parts = [policies_table(results), "".join(f"- {line}\n" for line in goals(results))]
    if results.run.options["peers"]:
        missing = [fact for fact in results.of(Fact) if fact.name == NOT_MEASURED]
        notes = [f"- {fact.subject}: {NOT_MEASURED}, {fact.text.splitlines()[0]}\n" for fact in missing]
        parts += [servers_table(results), "".join(notes)]
    return "\n".join(part for part in parts if part)


def servers_table(results: Results) -> str:
    """A row for each mix, load and server, over HTTP."""
    head = "mix | load | server | offered, 1/s | answered, 1/s | in time, 1/s | p50, ms | p99, ms | refused"
    rows = (row for mix in MIXES for load in HTTP_LOADS for row in _http_rows(results, mix, load))
    return table(head, rows)


def _http_rows(results: Results, mix: str, load: float) -> list[Row]:
    deadline_ms = results.run.options["deadline_ms"]
    prefix, rate_rps = http_target(mix, ""), _http_rate(results, mix, load)
    rows: list[Row] = []
    for (target, offered_rps), answers in results.answers.items():
        if offered_rps != rate_rps or not target.startswith(prefix):
            continue
        seconds = max(answer.due_s + answer.latency_ms / 1e3 for answer in answers)
        done = [answer.latency_ms for answer in answers if answer.status == _OK]
        in_time = sum(ms <= deadline_ms for ms in done)
        rows.append(
            (
                mix,
                f"{load:.0%}",
                target.removeprefix(prefix),
                f"{offered_rps:.0f}",
                f"{len(done) / seconds:.0f}",
                f"{in_time / seconds:.0f}",
                *(quantile(done, share).text(1) if done else "" for share in (0.5, 0.99)),
                f"{1 - len(done) / len(answers):.1%}",
            )
        )
    return rows


def _http_rate(results: Results, mix: str, load: float) -> float:
    rates = results.facts(HTTP_CAPACITY_RPS, mix)
    return load * rates[0] if rates else 0.0


def policies_table(results: Results) -> str:
    """A row for each mix, load and policy, in one process."""
    head = "mix | load | policy | offered, 1/s | tokens/s | beside none | p50, ms | p99, ms | refused"
    head += " | in time, of all | in time, of admitted"
    rows = [_row(results, mix, load, policy) for mix in MIXES for load in LOADS for policy in POLICIES]
    return table(head, rows)


def goals(results: Results) -> list[str]:
    """Goals on two cores, beside the results."""
    deadline_ms = results.run.options["deadline_ms"]
    met_share = min(met_of(_answers(results, mix, 1.5, OURS), deadline_ms).of_admitted for mix in MIXES)
    gain = tokens_beside_none(results, HEADLINES, 1.5)
    posts = min(tokens_beside_none(results, POSTS, load) for load in LOADS)
    return [
        f"Deadlines met of what is admitted at 150 %: {met_share:.2%} (goal: 99 %)",
        f"Headlines, throughput beside none at 150 %: {gain:.2f} (goal: 1.5)",
        f"Posts, lowest throughput beside none: {posts:.2f} (goal: 0.97)",
    ]


def tokens_beside_none(results: Results, mix: str, load: float, policy: str = OURS) -> float:
    """Throughput in tokens: in requests, whoever refuses long texts would look quicker."""
    return _tokens_per_s(results, mix, load, policy) / _tokens_per_s(results, mix, load, ALONE)


def _row(results: Results, mix: str, load: float, policy: str) -> Row:
    answers = _answers(results, mix, load, policy)
    deadline_ms = results.run.options["deadline_ms"]
    done = [answer.latency_ms for answer in answers if answer.status == _OK]
    refused = sum(answer.status not in _ADMITTED for answer in answers) / len(answers)
    shares = met_of(answers, deadline_ms)
    return (
        mix,
        f"{load:.0%}",
        policy,
        f"{_rate_rps(results, mix, load):.0f}",
        f"{_tokens_per_s(results, mix, load, policy):,.0f}",
        f"{tokens_beside_none(results, mix, load, policy):.2f}",
        *(quantile(done, share).text(1) if done else "" for share in (0.5, 0.99)),
        f"{refused:.1%}",
        f"{shares.of_all:.1%}",
        f"{shares.of_admitted:.1%}",
    )


def _rate_rps(results: Results, mix: str, load: float) -> float:
    return load * results.facts(CAPACITY_RPS, mix)[0]


def _answers(results: Results, mix: str, load: float, policy: str) -> Sequence[Answer]:
    return results.answers[target_of(mix, policy), _rate_rps(results, mix, load)]


def _tokens_per_s(results: Results, mix: str, load: float, policy: str) -> float:
    subject = f"{target_of(mix, policy)} at {_rate_rps(results, mix, load):g} rps"
    rates = [fact.value for fact in results.of(Fact) if (fact.name, fact.subject) == (TOKENS_PER_S, subject)]
    return float(np.median([value for value in rates if value is not None]))
