"""MLPerf LoadGen drives a server: `measure.py SCENARIO URL BODIES COUNT RATE FOLDER`, latencies as JSON.

In milliseconds, LoadGen's own, from the time that it scheduled. BODIES has one JSON string per line.
"""

import json
import queue
import re
import sys
import threading
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import mlperf_loadgen

_CALLERS = 8  # at once; one for SingleStream, which has one request on its way
_SAMPLE = re.compile(r'"name":"Sample".*"complete_ns":(\d+)')


class Target:
    """Posts bodies over connections that are kept, one per thread, and reports each answer to LoadGen."""

    def __init__(self, url: str, bodies: Sequence[bytes]) -> None:
        self._url = urlsplit(url)
        self._bodies = bodies
        self._waiting: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self.failed = 0
        for _ in range(_CALLERS):
            threading.Thread(target=self._work, daemon=True).start()

    def issue(self, samples: list[mlperf_loadgen.QuerySample]) -> None:
        """Called by LoadGen when requests are due."""
        for sample in samples:
            self._waiting.put((sample.id, sample.index))

    def _work(self) -> None:
        connection = HTTPConnection(self._url.hostname, self._url.port)
        while True:
            number, index = self._waiting.get()
            connection.request(
                "POST", self._url.path, self._bodies[index], {"content-type": "application/json"}
            )
            response = connection.getresponse()
            response.read()
            self.failed += response.status != 200
            mlperf_loadgen.QuerySamplesComplete([mlperf_loadgen.QuerySampleResponse(number, 0, 0)])


def main(scenario: str, url: str, bodies: Sequence[bytes], count: int, rate_rps: float, folder: Path) -> None:
    """Runs one scenario and prints the latency of each request."""
    target = Target(url, bodies)
    settings = mlperf_loadgen.TestSettings()
    settings.scenario = getattr(mlperf_loadgen.TestScenario, scenario)
    settings.mode = mlperf_loadgen.TestMode.PerformanceOnly
    settings.min_query_count = settings.max_query_count = count
    settings.min_duration_ms = 1
    settings.server_target_qps = rate_rps
    settings.offline_expected_qps = rate_rps
    log = mlperf_loadgen.LogSettings()
    log.enable_trace = True
    log.log_output.outdir = str(folder)
    sut = mlperf_loadgen.ConstructSUT(target.issue, lambda: None)
    library = mlperf_loadgen.ConstructQSL(len(bodies), len(bodies), lambda _: None, lambda _: None)
    mlperf_loadgen.StartTestWithLogSettings(sut, library, settings, log)
    mlperf_loadgen.DestroyQSL(library)
    mlperf_loadgen.DestroySUT(sut)
    trace = (folder / "mlperf_log_trace.json").read_text()
    latencies_ms = [int(sample) / 1e6 for sample in _SAMPLE.findall(trace)]
    print(json.dumps({"latencies_ms": latencies_ms, "failed": target.failed}))


if __name__ == "__main__":
    lines = Path(sys.argv[3]).read_text().splitlines()
    contents = [json.loads(line).encode() for line in lines]
    main(sys.argv[1], sys.argv[2], contents, int(sys.argv[4]), float(sys.argv[5]), Path(sys.argv[6]))
