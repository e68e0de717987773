"""Raw files hold what was measured, and only that."""

from pathlib import Path

import pytest

from coldframe_bench.records.raw_files import (
    DROPPED,
    WARM,
    Cold,
    Fact,
    RawFile,
    RawFileUnreadable,
    Results,
    Sample,
    Timing,
    read_results,
)
from coldframe_bench.targets.machine import describe_run


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_what_is_written_is_read(bundle: Path, tmp_path: Path, name: str) -> None:
    """A raw file comes back as it was written, compressed or not."""
    run = describe_run("cost", bundle, 7, {"n": 1})
    samples: list[Sample] = [Timing("encode", {"tokens": 16}, 2.5), Fact("verdict", "load", text="VALID")]
    with RawFile(tmp_path / name, run) as raw:
        for sample in samples:
            raw.write(sample)
    found = read_results(tmp_path / name)
    assert (found.run, found.samples) == (run, samples)
    assert found.of(Timing) == samples[:1]


def test_run_says_what_it_was(bundle: Path) -> None:
    """The first line names commit, model, machine, versions and seed."""
    run = describe_run("cold", bundle, 3, {})
    assert len(run.commit) == 40
    assert run.bundle.startswith("sha256:")
    assert run.cores >= 1
    assert run.memory_mb > 0
    assert {"numpy", "onnxruntime"} <= run.versions.keys()
    assert run.seed == 3


def test_compressed_files_are_equal(bundle: Path, tmp_path: Path) -> None:
    """The same lines are the same bytes, so that a committed file changes only with its content."""
    run = describe_run("cold", bundle, 0, {})
    paths = [tmp_path / folder / "run.jsonl.gz" for folder in ("one", "two")]
    for path in paths:
        with RawFile(path, run):
            pass
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_cut_off_line_is_left_out(bundle: Path, tmp_path: Path) -> None:
    """A run that was interrupted in the middle of a line can be read."""
    path = tmp_path / "run.jsonl"
    with RawFile(path, describe_run("cold", bundle, 0, {})) as raw:
        raw.write(Fact("a", "b", 1.0))
    path.write_bytes(path.read_bytes() + b'{"type":"fact","na')
    assert read_results(path).samples == [Fact("a", "b", 1.0)]


def test_cut_off_compressed_file(bundle: Path, tmp_path: Path) -> None:
    """So can one that is compressed, up to where it was cut."""
    path = tmp_path / "run.jsonl.gz"
    with RawFile(path, describe_run("cold", bundle, 0, {})) as raw:
        for number in range(2000):
            raw.write(Fact("a", "b", float(number)))
    path.write_bytes(path.read_bytes()[:-20])
    found = read_results(path).of(Fact)
    assert found == [Fact("a", "b", float(number)) for number in range(len(found))]
    assert len(found) > 100


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b'{"type":"fact","name":"a","subject":"b"}\n', b"nonsense\n"]
)
def test_not_a_raw_file(tmp_path: Path, content: bytes) -> None:
    """What is not a raw file is a named error."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(RawFileUnreadable, match=r"run\.jsonl"):
        read_results(path)


def test_timings_are_found_by_their_conditions(bundle: Path) -> None:
    """Timings are asked for by name and some of their conditions; a fact that is words has no value."""
    samples: list[Sample] = [
        Timing("encode", {"rows": 1, "tokens": 16}, 2.0),
        Timing("encode", {"rows": 8, "tokens": 16}, 9.0),
        Timing("cut", {"rows": 1}, 0.1),
        Fact("memory_mb", "encode", 12.0),
        Fact("memory_mb", "encode", text="not measured"),
    ]
    found = Results(Path("none"), describe_run("encoder", bundle, 0, {}), samples)
    assert found.timings_ms("encode", rows=1) == [2.0]
    assert found.timings_ms("encode", tokens=16) == [2.0, 9.0]
    assert found.timings_ms("encode", threads=1) == []
    assert found.facts("memory_mb", "encode") == [12.0]


def test_totals_are_untraced_and_warm(bundle: Path) -> None:
    """A total is quoted of one series, never of a traced process or of one whose pages were dropped."""
    samples: list[Sample] = [
        Cold("encoder", 0, WARM, False, 150.0, {}),
        Cold("encoder", 0, WARM, True, 170.0, {}),
        Cold("encoder", 0, DROPPED, False, 320.0, {}),
        Cold("estimator", 0, WARM, False, 30.0, {}),
    ]
    found = Results(Path("none"), describe_run("cold", bundle, 0, {}), samples)
    assert found.totals_ms("encoder") == [150.0]
