"""What the tests of Spark run in its environment, on two executors: one line of JSON at the end."""

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from coldframe import spark as ours
from coldframe.errors import Invalid


def main(folder: str, models: str) -> None:
    """Answers the table in `folder`, twice, and says which processes loaded which predictor."""
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "60")
        .getOrCreate()
    )
    frame = session.read.parquet(f"{folder}/in.parquet").repartition(4, "id")
    answered = ours.predict(frame, "body", models, "topics", ["auto", "logreg"])
    answered.write.parquet(f"{folder}/out.parquet")
    first = loaded(frame)
    answered.count()
    again = ours.predict(frame, "body", models, model="topics", prefix="its_")
    rows = again.where("its_label is not null").count()
    print(json.dumps({"first": first, "second": loaded(frame), "rows": rows, "refused": refused(frame)}))
    session.stop()


def loaded(frame: DataFrame) -> list[list[int]]:
    """Process and predictor of each partition."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        for predictor in ours._loaded.values():
            yield pa.RecordBatch.from_pydict({"process": [os.getpid()], "predictor": [id(predictor)]})

    found = frame.mapInArrow(look, "process long, predictor long").distinct().collect()
    return sorted([row.process, row.predictor] for row in found)


def refused(frame: DataFrame) -> list[str]:
    """What is said of columns that cannot be predicted."""
    said = []
    for column, prefix in (("none", ""), ("id", ""), ("body", "taken_")):
        try:
            ours.predict(frame.withColumn("taken_label", frame.body), column, "models", prefix=prefix)
        except Invalid as exc:
            said.append(str(exc))
    return said


if __name__ == "__main__":
    main(*sys.argv[1:])
