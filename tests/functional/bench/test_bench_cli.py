"""`coldframe bench`: light until it is used, and helpful when something is missing."""

import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from coldframe_bench.benchmarks.cost import cost_table
from coldframe_bench.benchmarks.cost import run as run_cost
from coldframe_bench.benchmarks.loadgen import LoadGenOptions
from coldframe_bench.cli import bench
from coldframe_bench.commands.printed import CHECKS
from coldframe_bench.records.raw_files import Timing, read_results
from coldframe_local.cli import main
from tests.conftest import ROOT

pytestmark = pytest.mark.measures

HEAVY = ("numpy", "onnxruntime", "scipy", "vl_convert", "jinja2", "tqdm", "asyncio")


def test_command_line_is_light() -> None:
    """Showing the help of `bench` imports nothing that is only needed to measure."""
    source = (
        "import sys\nfrom coldframe_bench.cli import bench\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules and name != 'asyncio'])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_serving_imports_no_benchmark() -> None:
    """What `coldframe up` imports holds nothing of `bench`: that is found by its entry point when called."""
    emulator = "coldframe_local.emulator.front.emulator"
    source = f"import sys, coldframe_local.cli, {emulator}; print([n for n in sys.modules if 'bench' in n])"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@click.command()
def handler_within() -> None:
    """Prints the handler of SIGTERM while a benchmark runs."""
    click.echo(signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, signal.SIG_IGN))


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bench.commands, "probe", handler_within)


@pytest.mark.usefixtures("probed")
def test_signals_of_a_test_runner_are_left_alone() -> None:
    """A benchmark in the process of a test runner leaves its handler of SIGTERM as it is."""
    before = signal.getsignal(signal.SIGTERM)
    done = CliRunner().invoke(main, ["bench", "probe"])
    assert (done.output, signal.getsignal(signal.SIGTERM)) == ("True\n", before)


@pytest.mark.usefixtures("probed")
def test_a_benchmark_of_its_own_process_ends_like_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    """The console script has SIGTERM raise SystemExit while the benchmark runs, and restores the handler."""
    before = signal.getsignal(signal.SIGTERM)
    main(["bench", "probe"], standalone_mode=False)
    assert (capsys.readouterr().out, signal.getsignal(signal.SIGTERM)) == ("False\n", before)


def test_every_benchmark_has_a_command() -> None:
    """The help lists what can be measured, and `bench/README.md` has a line for each."""
    shown = CliRunner().invoke(main, ["bench", "--help"]).output
    page = (ROOT / "bench" / "README.md").read_text()
    assert {"cold", "load", "compare", "report", "passes", "check"} <= bench.commands.keys()
    for name in bench.commands:
        assert f"  {name} " in shown
        assert f"| `{name}` |" in page


def test_benchmarks_are_at_most_twelve() -> None:
    """A new question becomes an argument of a command, or replaces one that nobody asks."""
    assert len(bench.commands) <= 12, sorted(bench.commands)


def test_every_check_is_explained() -> None:
    """`bench/README.md` and the help have every part that `check` takes."""
    shown = CliRunner().invoke(main, ["bench", "check", "--help"]).output
    page = (ROOT / "bench" / "README.md").read_text()
    for name in CHECKS:
        assert f"  {name} " in shown
        assert f"`{name}`" in page


def test_too_few_samples_of_a_check_are_an_error() -> None:
    """The message names the check and the fewest samples; nothing is measured."""
    done = CliRunner().invoke(main, ["bench", "check", "memory", "--samples", "2"])
    assert done.exit_code == 2
    assert "expected at least 3" in done.output


def test_every_folder_is_explained() -> None:
    """`bench/README.md` says what is in each folder of `bench`."""
    page = (ROOT / "bench" / "README.md").read_text()
    roots = ROOT / "bench", ROOT / "bench" / "coldframe_bench"
    for name in [folder.name for root in roots for folder in root.iterdir() if folder.is_dir()]:
        assert name == "__pycache__" or f"`{name}/`" in page


def test_two_loaders_get_the_options_of_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`load --loadgen` measures both loaders at the rate and with the requests that were named."""
    chosen: list[LoadGenOptions] = []

    def run(options: LoadGenOptions) -> None:
        chosen.append(options)
        raise click.Abort

    monkeypatch.setattr("coldframe_bench.benchmarks.loadgen.run", run)
    out = tmp_path / "loadgen.jsonl"
    arguments = ["--requests", "40", "--start-rps", "7", "--seed", "3", "--out", str(out)]
    CliRunner().invoke(main, ["bench", "load", "--loadgen", *arguments])
    (options,) = chosen
    assert (options.requests, options.rate_rps, options.seed, options.out) == (40, 7.0, 3, out)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what benchmarks need, the command says how to get it, before it measures."""
    monkeypatch.setattr("coldframe_bench.commands.options.find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["bench", "cold"])
    assert done.exit_code == 1
    assert "make bench-setup" in done.output


def test_wrong_trace(tmp_path: Path) -> None:
    """A file of arrivals that is none is a usage error that names the option and the columns expected."""
    path = tmp_path / "trace.csv"
    path.write_text("a,b\n1,2\n")
    done = CliRunner().invoke(
        main, ["bench", "load", "--arrivals", str(path), "--out", str(tmp_path / "o.jsonl")]
    )
    assert done.exit_code == 2
    assert "Invalid value for --arrivals:" in done.output
    assert "invoke_time_ms" in done.output


def test_cost_is_measured(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invocations are timed in a process of their own, without and with the cache."""
    monkeypatch.delenv("COLDFRAME_DATA", raising=False)
    results = read_results(run_cost(bundle, tmp_path / "cost.jsonl", 0, 20))
    kinds = [timing.conditions["what"] for timing in results.of(Timing)]
    assert (kinds.count("computed"), kinds.count("hit"), kinds.count("cold")) == (20, 20, 10)
    assert "| arm64 | 1769 |" in cost_table(results)
