"""Raw files to one page that needs nothing else, and to the tables of the README."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup, escape

from coldframe.errors import ColdframeError
from coldframe_bench.benchmarks.cold.spent import spent
from coldframe_bench.benchmarks.cold.table import budget_table, cold_table
from coldframe_bench.benchmarks.compare import compare_table
from coldframe_bench.benchmarks.cost import cost_table
from coldframe_bench.benchmarks.encoder import encoder_table
from coldframe_bench.benchmarks.load import load_table
from coldframe_bench.benchmarks.loadgen import loadgen_table
from coldframe_bench.benchmarks.serve.overload import goals as overload_goals
from coldframe_bench.benchmarks.serve.overload import sides_table
from coldframe_bench.benchmarks.serve.table import goals, policies_table, servers_table
from coldframe_bench.records.budgets import load_budgets
from coldframe_bench.records.raw_files import Results, read_results
from coldframe_bench.reporting.goals import goals_table
from coldframe_bench.reporting.plots import plots
from coldframe_bench.reporting.summary import summary_table
from coldframe_bench.studies.experiments import experiments_table
from coldframe_local.pages.page import render
from coldframe_local.paths import ROOT

PUBLISHED = ROOT / "bench" / "published"
_ORDER = ("cold", "load", "compare", "encoder", "cost", "loadgen", "serve", "overload", "experiments")
_TITLES = {
    "cold": "Cold starts",
    "load": "Load",
    "compare": "Peers side by side",
    "encoder": "The encoder",
    "cost": "What a million predictions cost, USD",
    "loadgen": "MLPerf LoadGen beside our own loader",
    "serve": "Passes shared across requests",
    "overload": "Overload: refusing, and answering by less work",
    "experiments": "Statistics of experiments",
}
_TABLES = {
    "load": load_table,
    "compare": compare_table,
    "encoder": encoder_table,
    "cost": cost_table,
    "loadgen": loadgen_table,
    "overload": sides_table,
    "experiments": experiments_table,
}
_MARK = "<!-- bench:{name} -->"
_END = "<!-- /bench -->"

_PAGE = Path(__file__).with_name("page.html")


class NoResults(ColdframeError):
    """There is nothing to report on."""


def read_all(paths: Sequence[Path]) -> dict[str, Results]:
    """One raw file per benchmark; of several, the one begun last."""
    runs = sorted((read_results(path) for path in paths), key=lambda results: results.run.started)
    if not runs:
        raise NoResults("There are no raw files to report on. Run `make bench` first.")
    return {results.run.benchmark: results for results in runs}


def raw_files(folder: Path) -> list[Path]:
    """Raw files in a folder."""
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])


def markdown(results: Mapping[str, Results]) -> dict[str, str]:
    """The tables by name: what the README quotes and the page shows."""
    budgets = load_budgets()
    made = {"goals": goals_table(results, budgets), "summary": summary_table(results, budgets)}
    for name, run in results.items():
        if name == "cold":
            made |= {
                "cold": cold_table(run, budgets),
                "budgets": budget_table(spent(run, budgets)),
            }
        elif name == "serve":
            made |= {
                "serve": policies_table(run),
                "serve_goals": "".join(f"- {line}\n" for line in goals(run)),
            }
            if run.run.options["peers"]:
                made["serve_http"] = servers_table(run)
        elif name in _TABLES:
            made[name] = _TABLES[name](run)
    if "overload" in results:
        made["overload_goals"] = "".join(f"- {line}\n" for line in overload_goals(results["overload"]))
    return made


def write_page(results: Mapping[str, Results], out: Path) -> None:
    """One HTML file without scripts: no network, no other file."""
    made = markdown(results)
    sections = [
        {
            "title": _TITLES[name],
            "facts": _facts(results[name]),
            "table": _cells(made[name]),
            "plots": plots(results[name]),
            "servers": _cells(made["serve_http"]) if name == "serve" and "serve_http" in made else None,
            "budgets": _cells(made["budgets"]) if name == "cold" else None,
        }
        for name in _ORDER
        if name in results
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(_PAGE, goals=_cells(made["goals"]), sections=sections))


def fill(document: str, made: Mapping[str, str]) -> str:
    """A Markdown document with the tables between its marks made anew; other text stays as it is."""
    for name, content in made.items():
        mark = _MARK.format(name=name)
        document = re.sub(
            f"{re.escape(mark)}\n.*?{re.escape(_END)}",
            lambda _, mark=mark, content=content: f"{mark}\n{content}{_END}",  # type: ignore[misc]
            document,
            flags=re.DOTALL,
        )
    return document


def _facts(results: Results) -> dict[str, str]:
    run = results.run
    return {
        "begun": run.started,
        "commit": run.commit + (" and changes" if run.changed else ""),
        "model": run.bundle,
        "machine": f"{run.cpu} ({', '.join(run.cpu_flags)}), {run.cores} cores, {run.memory_mb} MB",
        "system": run.system,
        "load average before": str(run.load_average),
        "Python": ", ".join([run.python, *(f"{name} {version}" for name, version in run.versions.items())]),
        "seed": str(run.seed),
        "options": ", ".join(f"{name}: {value}" for name, value in run.options.items()),
        "raw file": results.path.name,
    }


def _cells(content: str) -> tuple[list[Markup], list[list[Markup]], str]:
    """A Markdown table's headings, its rows, and the class of its columns: words."""
    head, _, *rows = (
        [_cell(cell.strip()) for cell in line.strip("|").split(" | ")] for line in content.splitlines()
    )
    return head, rows, "words"


def _cell(text: str) -> Markup:
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", str(escape(text)))
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", bold))  # noqa: S704 - escaped above
