"""`coldframe bench serve`: every policy meets the same requests, and the table is made of raw lines alone."""

from pathlib import Path

import pytest

from coldframe_bench.benchmarks.serve.measure import CAPACITY_RPS, LOADS, POLICIES, run, target_of
from coldframe_bench.benchmarks.serve.mixes import MIXES, ServeOptions
from coldframe_bench.benchmarks.serve.table import goals, met_of, serve_table
from coldframe_bench.records.raw_files import Answer, Results, read_results
from coldframe_bench.targets.peers import load_peers

pytestmark = pytest.mark.measures


@pytest.fixture(scope="module")
def results(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A short run with the real encoder."""
    out = tmp_path_factory.mktemp("results") / "serve.jsonl"
    return read_results(run(ServeOptions(bundle, out, seed=3, workers=2, seconds=0.3)))


def test_everybody_meets_the_same_requests(results: Results) -> None:
    """At each rate every policy gets as many requests, due at the same moments."""
    for mix in MIXES:
        (capacity_rps,) = results.facts(CAPACITY_RPS, mix)
        for load in LOADS:
            due = [
                [one.due_s for one in results.of(Answer) if is_of(one, mix, policy, load * capacity_rps)]
                for policy in POLICIES
            ]
            assert len(due[0]) >= 20
            assert due[0] == due[1] == due[2]


def is_of(answer: Answer, mix: str, policy: str, rate_rps: float) -> bool:
    return answer.target == target_of(mix, policy) and answer.offered_rps == rate_rps


def test_the_table_has_a_row_for_each(results: Results) -> None:
    """Mixes, loads and policies, and what of the goals was reached."""
    shown = serve_table(results)
    assert shown.count("\n| ") == 1 + len(MIXES) * len(LOADS) * len(POLICIES)
    assert len(goals(results)) == 3
    assert all(goal in shown for goal in goals(results))


def test_shares_are_of_what_they_say() -> None:
    """A refused request is not in time, and was not admitted; one that is late was."""
    seen = ((5, 200), (50, 200), (1, 503), (9, 504))
    answers = [Answer("t", 1.0, 0.0, 0.0, ms, status) for ms, status in seen]
    met = met_of(answers, deadline_ms=10)
    assert (met.of_all, met.of_admitted) == (1 / 4, 1 / 3)


def test_peers_put_requests_together(tmp_path: Path) -> None:
    """Each of the four servers with batching of its own is asked for it, and where it differs, elsewhere."""
    peers = {name: peer for name, peer in load_peers().items() if peer.batched is not None}
    assert set(peers) == {"bentoml", "infinity", "litserve", "mlserver"}
    for name, peer in peers.items():
        server = peer.batching(name, tmp_path)
        assert server.environ["PEER_BATCH"] == server.environ["MLSERVER_MODEL_MAX_BATCH_SIZE"] == "32"
        assert b'"a text"' in server.ask("a text")
    assert "32" in peers["infinity"].batching("infinity", tmp_path).command
    assert peers["bentoml"].batching("bentoml", tmp_path).path == "/predict_many"
