"""The walk in docs/monitoring.md, by real processes: from shifted texts to a model that is right again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from coldframe_local.paths import BUILD_PYTHON
from tests.conftest import ROOT
from tests.functional.commands.walks import Block, blocks_of
from tests.support.running import coldframe_up
from tests.support.server_process import ServerProcess

pytestmark = [
    pytest.mark.documents,
    pytest.mark.skipif(
        not BUILD_PYTHON.exists(), reason=f"no {BUILD_PYTHON}: nothing was trained. `make build` sets it up."
    ),
]

WALK = list(blocks_of("monitoring.md"))
INTERVAL = re.compile(r"accuracy by 200 random labels: .* \(95% interval ([\d.]+)% to ([\d.]+)%\)")


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables of the page's second terminal. The first one runs until the test ends."""
    arguments = ["--stores-port", "0", "--parameter", "FeedbackKey=0123456789abcdef"]
    with coldframe_up("in memory:", arguments=arguments) as (stores,):
        yield {
            "AWS_ENDPOINT_URL_DYNAMODB": stores,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1",
            "COLDFRAME_MODEL_DIR": str(tmp_path / "models"),
            "OMP_NUM_THREADS": "1",
        }


def test_the_bound_recovers_after_a_training_with_feedback(environ: dict[str, str], tmp_path: Path) -> None:
    """Each command prints what the page says, and the new model's interval is above the old one's.

    The page states the two bounds. The ends vary with the order of the labels, which the table chooses.
    """
    assert len(WALK) == 10
    (tmp_path / "layers").symlink_to(ROOT / "layers")
    intervals = []
    for block in WALK:
        run = partial(_with_server, block) if block.has_requests else block.run
        output = run(environ, tmp_path)
        intervals += [(float(low), float(high)) for low, high in INTERVAL.findall(output)]
    before, after = intervals
    assert before[1] < 60
    assert after[0] > 85


def _with_server(block: Block, environ: dict[str, str], folder: Path) -> str:
    """Output of a block beside a server, whose log has its last sketch when it ends."""
    lines = (folder / "build" / "server.env").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    server = ServerProcess(Path(environ["COLDFRAME_MODEL_DIR"]), **environ | settings)
    output = block.run_beside(server, environ, folder)
    log = (json.dumps(line) + "\n" for line in server.lines)
    (folder / "build" / "server.log").write_text("".join(log))
    return output
