"""Cold starts of what runs elsewhere: behind an HTTP address, or in a fresh container for each sample."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coldframe.progress import Progress
from coldframe_bench.benchmarks.cold.first_requests import answer_source, choose_texts, event_of
from coldframe_bench.benchmarks.cold.measure import ColdOptions
from coldframe_bench.benchmarks.cold.series import ANSWERED, Series
from coldframe_bench.loader.open_loop import Load, send_closed
from coldframe_bench.records.raw_files import Cold, Fact, RawFile
from coldframe_bench.targets.container import AS_ON_LAMBDA
from coldframe_bench.targets.machine import describe_run
from coldframe_bench.targets.serving import Server, free_port, serve
from coldframe_local.paths import ROOT

_INVOCATIONS = (
    "/2015-03-31/functions/function/invocations"  # of the runtime interface emulator in AWS's images
)
_LIMIT_S = 60.0


def run_http(options: ColdOptions, url: str, idle_s: float) -> Path:
    """Asks `url` after `idle_s` without requests each time; keeps the cold answers, counts the others.

    For `WARM_CONTAINERS= local/tools/sam.sh start-api`, whose every request has a fresh container; for
    `coldframe up` whose scenario has a short `keep_alive_s`; for a deployed API whose environments expired.
    """
    chosen = choose_texts(options.subject)
    warm = 0
    with RawFile(options.out, describe_run("cold", options.model_dir, options.seed, {"url": url})) as raw:
        for number in Progress(range(options.samples), desc="cold starts over HTTP", unit="round"):
            for series in ANSWERED:
                time.sleep(idle_s)
                body = json.dumps({"text": chosen.text(series)}).encode()
                load = Load(series, url.rstrip("/") + "/v1/predict", 0.0, [0.0], [body], _LIMIT_S)
                replies = send_closed(load, 1)
                answer = {"statusCode": replies.records[0].status, "body": replies.bodies[0].decode()}
                if answer["statusCode"] == 200 and json.loads(replies.bodies[0])["start"] == "warm":
                    warm += 1
                    continue
                raw.write(_cold(series, "over HTTP", number, replies.records[0].latency_ms, answer))
        raw.write(Fact("warm_answers", url, warm))
    return options.out


def run_container(options: ColdOptions, image: str) -> Path:
    """A fresh container of `image` for each sample, limited as on Lambda: from `docker run` to its answer."""
    chosen = choose_texts(options.subject)
    with RawFile(options.out, describe_run("cold", options.model_dir, options.seed, {"image": image})) as raw:
        for number in Progress(range(options.samples), desc="cold starts of containers", unit="round"):
            for series in ANSWERED:
                port = free_port()
                publish = f"--publish=127.0.0.1:{port}:8080"
                command = ["docker", "run", "--rm", publish, *AS_ON_LAMBDA, image]
                event = json.dumps(event_of({"text": chosen.text(series)}))
                server = Server(command, ROOT, os.environ, port, _INVOCATIONS, event)
                with serve(server, "") as started:
                    pass
                raw.write(
                    _cold(series, "in a container", number, started.cold_ms, json.loads(started.answer))
                )
    return options.out


def _cold(series: Series, where: str, number: int, ms: float, answer: Mapping[str, Any]) -> Cold:
    return Cold(f"{series}, {where}", number, "as it was", False, ms, {}, by=answer_source(series, answer))
