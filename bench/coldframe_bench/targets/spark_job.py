"""Runs in Spark's environment: the same rows by ours and by a naive map, in turns, on one cluster."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from coldframe import spark as ours


def main(path: str, models: str, model: str, cores: str, rounds: str) -> None:
    """Prints a line of JSON: seconds of each round by each side, and whether their labels are the same."""
    session = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.read.parquet(path).repartition(2 * int(cores), "id").cache()
    frame.count()  # reading belongs to neither side

    def with_ours() -> DataFrame:
        return ours.predict(frame, "body", models, model=model).select("id", "label")

    def row_by_row(parts: Iterator[Any]) -> Iterator[Any]:
        """The plain way: one row after the other, the same head of the same model, loaded once."""
        from coldframe.columns import predict_column

        predictor = ours._predictor(models, model)

        def label(text: str) -> str | None:
            (answer,) = predict_column(predictor, [text], ["auto"], use_cache=False)["auto"]
            return None if answer is None else answer.label

        for part in parts:
            yield part.assign(label=part["body"].map(label))[["id", "label"]]

    def naive() -> DataFrame:
        return frame.mapInPandas(row_by_row, "id long, label string")

    sides = {"ours": with_ours, "naive": naive}
    times: dict[str, list[float]] = {name: [] for name in sides}
    labels = {}
    for _ in range(int(rounds)):
        for name, make in sides.items():
            started_s = time.perf_counter()
            labels[name] = {row.id: row.label for row in make().collect()}
            times[name].append(time.perf_counter() - started_s)
    print(json.dumps({"taken_s": times, "same": labels["ours"] == labels["naive"]}))
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
