"""Documents are true, their commands run, and they name every setting, flag and error."""

import ast
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner
from msgspec import Meta

from coldframe.config import ENVIRONMENT_NAMES
from coldframe.contract import JSON, READ_AS_JSON
from coldframe.errors import REQUEST_ERRORS
from coldframe.model.bundle import load_manifest
from coldframe.model.files import previous_folder
from coldframe.scheduling.stats import Stats
from coldframe.schemas import CacheUsage, Usage
from coldframe.server.metrics import Metrics
from coldframe.server.settings import ServerSettings
from coldframe.telemetry.metrics_line import add_metrics
from coldframe_local.cli import main
from coldframe_local.commands.scenario_settings import Settings
from coldframe_local.deploy.check.check import RULES, Rule
from coldframe_local.paths import BUILD_PYTHON, MODELS
from tests.conftest import EXAMPLE, ROOT

pytestmark = pytest.mark.documents

README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "local" / "README.md",
    ROOT / "bench" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
REFERENCE = {page.stem: page.read_text() for page in PAGES if page.parent.name == "docs"}
FENCE = re.compile(r"```sh( docker)?\n(.*?)```", re.DOTALL)
FENCES = [fence for page in PAGES for fence in FENCE.findall(page.read_text())]
BLOCKS = list(dict.fromkeys(block for _, block in FENCES))
IN_CONTAINERS = {block for docker, block in FENCES if docker}
SERVER, SAM = "make run", "make sam PORT=3001"
(TRAINING,) = (block for block in BLOCKS if "--name tickets" in block and "--compare" not in block)
OWN_SERVER = ".venv/bin/coldframe up --model tickets --port 3002"
STORES_SERVER = ".venv/bin/coldframe up --port 3003 --stores-port 4566"
JOBS_SERVER = ".venv/bin/coldframe up --parameter Jobs=on --port 3004"
SERVERS = (SERVER, SAM, TRAINING, OWN_SERVER, STORES_SERVER, JOBS_SERVER)
BY_FIXTURES = [block.split("#")[0].strip() for block in SERVERS]
NEEDS = {
    "localhost:3000": "server",
    "localhost:3001": "sam",
    "localhost:3002": "own_server",
    "localhost:3003": "stores_server",
    "localhost:3004": "jobs_server",
    "--compare tickets": "own_model",
    "--restore tickets": "own_model",
}
STARTS_TESTS = re.compile(r"make test(-all)?\b")  # what is running now


def command_environ() -> dict[str, str]:
    """What a shell has, without what make and pytest add for this run."""
    dropped = ("MAKE", "MFLAGS", "PYTEST", "COLDFRAME_")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


@contextmanager
def running(command: str, address: str) -> Iterator[None]:
    """A server, as the README says; ended by Ctrl-C, after which no process is left."""
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=ROOT, env=command_environ(), text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        wait_until_listening(process, address)
        yield
    finally:  # also when the tests themselves are interrupted
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=180)  # containers take their time on a busy machine
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.fixture(scope="module")
def server(bundle: Path) -> Iterator[None]:
    """`make run`."""
    with running(SERVER, "listening on http://127.0.0.1:3000"):
        yield


@pytest.fixture(scope="module")
def sam(containers: None, bundle: Path) -> Iterator[None]:
    """`make sam`."""
    with running(SAM, "Running on http://127.0.0.1:3001"):
        yield


@contextmanager
def kept_aside(folder: Path) -> Iterator[None]:
    """A name without a folder; what had the name before has it again afterwards."""
    aside = folder.with_name(f".{folder.name}-aside")
    if folder.exists():
        folder.rename(aside)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if aside.exists():
            aside.rename(folder)


@pytest.fixture(scope="module")
def own_model(bundle: Path) -> Iterator[None]:
    """The model of docs/your-labels.md, by its own command; somebody's model of that name comes back."""
    if not BUILD_PYTHON.exists():
        pytest.skip(f"no {BUILD_PYTHON}: nothing was trained. `make build` sets it up.")
    with kept_aside(MODELS / "tickets"), kept_aside(previous_folder(MODELS, "tickets")):
        run_block(TRAINING)
        yield


@pytest.fixture(scope="module")
def own_server(own_model: None) -> Iterator[None]:
    """`coldframe up` with that model."""
    with running(OWN_SERVER, "listening on http://127.0.0.1:3002"):
        yield


@pytest.fixture(scope="module")
def stores_server(bundle: Path) -> Iterator[None]:
    """`coldframe up` with stores on a port of their own; answers of an earlier run are removed."""
    shutil.rmtree(ROOT / "build" / "answers", ignore_errors=True)
    with running(STORES_SERVER, "in memory: http://127.0.0.1:4566"):
        yield


@pytest.fixture(scope="module")
def jobs_server(bundle: Path) -> Iterator[None]:
    """`coldframe up` with jobs."""
    with running(JOBS_SERVER, "listening on http://127.0.0.1:3004"):
        yield


def wait_until_listening(process: "subprocess.Popen[str]", address: str) -> None:
    """Reads the server's output until it says that it listens."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if address in line:
            return
    pytest.fail("The server ended:\n" + "".join(lines))


def test_blocks_are_found() -> None:
    """The README has the two commands of a newcomer."""
    assert [block.strip().splitlines()[0].split("  ")[0] for block in BLOCKS[:1]] == [SERVER]
    assert any(STARTS_TESTS.search(block) for block in BLOCKS)
    assert f"{SAM}\n" in IN_CONTAINERS
    assert f"{OWN_SERVER}\n" in BLOCKS


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.split("#")[0].strip() not in BY_FIXTURES]
)
def test_block_runs(block: str, request: pytest.FixtureRequest) -> None:
    """Every command block runs as it stands, and prints what the README says beside it."""
    if block in IN_CONTAINERS:
        request.getfixturevalue("containers")
    for named, fixture in NEEDS.items():
        if named in block:
            request.getfixturevalue(fixture)
    run_block(block)


def run_block(block: str) -> None:
    """Runs the commands of a block in the repository, and compares what they print."""
    commands = STARTS_TESTS.sub(r"\g<0> --dry-run >/dev/null", block)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=ROOT,
        env=command_environ(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for expected in re.findall(r"^# → (.*)$", block, re.MULTILINE):
        assert expected in done.stdout


@pytest.mark.parametrize("name", sorted(ENVIRONMENT_NAMES))
def test_settings_are_documented(name: str) -> None:
    """Every setting is documented."""
    assert f"`{name}`" in REFERENCE["settings"]


def flags() -> list[str]:
    """Every flag of every command."""
    found = {flag for command in commands(main) for option in command.params for flag in option.opts}
    return sorted(flag for flag in found if flag.startswith("--"))


def commands(group: click.Group) -> list[click.Command]:
    """Every command of a group and of the groups in it."""
    context = click.Context(group)
    named = [group.get_command(context, name) for name in group.list_commands(context)]
    return [
        command
        for found in named
        for command in (commands(found) if isinstance(found, click.Group) else [found])
        if command is not None
    ]


@pytest.mark.parametrize("flag", flags())
def test_flags_are_documented(flag: str) -> None:
    """Every flag of the command line is documented."""
    assert f"`{flag}" in REFERENCE["commands"]


@pytest.mark.parametrize("name", ["up", "train", "simulate"])
def test_option_tables_are_complete(name: str) -> None:
    """The table of a command with many options has exactly the command's options."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    options = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    table = REFERENCE["commands"].partition(f"| options of `{name}` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(--[a-z0-9-]+)", table)) == {flag for flag in options if flag.startswith("--")}


@pytest.mark.parametrize("setting", Settings.__struct_fields__)
def test_settings_of_scenarios_are_documented(setting: str) -> None:
    """Every setting of a scenario file is documented."""
    assert f"`{setting}`" in REFERENCE["commands"]


@pytest.mark.parametrize("error", REQUEST_ERRORS)
def test_errors_are_documented(error: type[Exception]) -> None:
    """Every error that a caller can meet is documented."""
    assert f"`{error.__name__}`" in REFERENCE["contract"]


@pytest.mark.parametrize("media_type", sorted(READ_AS_JSON - {"", JSON}))
def test_types_read_as_json_are_documented(media_type: str) -> None:
    """The row of 415 names the types that are read as JSON all the same."""
    [row] = [line for line in REFERENCE["contract"].splitlines() if line.startswith("| 415 |")]
    assert f"`{media_type}`" in row


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of every page is a file of the repository."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def anchor(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def sections(page: Path) -> dict[str, str]:
    """Each section of a page by its anchor: its text up to the next heading of its level or above."""
    fences = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    text = fences.sub(lambda fence: re.sub("^#", "-", fence[0], flags=re.MULTILINE), page.read_text())
    starts = list(re.finditer(r"^(#+) (.*)$", text, re.MULTILINE))
    return {
        anchor(start[2]): text[
            start.start() : next(
                (later.start() for later in starts[i + 1 :] if len(later[1]) <= len(start[1])), len(text)
            )
        ]
        for i, start in enumerate(starts)
    }


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_anchors_lead_to_headings(page: Path) -> None:
    """Every anchor in a relative link is a heading of the page that it names."""
    for target, name in re.findall(r"\]\(([^)#:]*\.md)?#([^)]+)\)", page.read_text()):
        assert name in sections(page.parent / target if target else page), f"{target}#{name}"


def test_decisions_are_listed_by_their_titles() -> None:
    """The list of decisions has each record once, in order, by the record's own title."""
    folder = ROOT / "docs" / "decisions"
    rows = []
    for record in sorted(folder.glob("0*.md")):
        number, title = record.read_text().partition("\n")[0].removeprefix("# ").split(" ", 1)
        rows.append(f"| [{number}]({record.name}) | {title} |")
    assert [
        line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| [")
    ] == rows


READING_PATHS = REFERENCE["README"].partition("## All pages")[0].split("\n**You ")[1:]


@pytest.mark.parametrize("path", READING_PATHS, ids=lambda path: path.partition("*")[0])
def test_reading_path_takes_ten_minutes(path: str) -> None:
    """The pages and sections of a path have at most 2,300 words: ten minutes at 230 words a minute."""
    words = 0
    for target, name in re.findall(r"\]\(([^)#]+)#?([^)]*)\)", path):
        page = ROOT / "docs" / target
        words += len(re.findall(r"[A-Za-z']{2,}", sections(page)[name] if name else page.read_text()))
    assert 0 < words <= 2300


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_commands_exist(page: Path) -> None:
    """Every `coldframe COMMAND` in a page's text is a command."""
    named = set(re.findall(r"`coldframe ([a-z][\w-]*)", page.read_text()))
    assert named <= set(main.list_commands(click.Context(main)))


def test_accuracy_table_is_the_manifest(bundle: Path) -> None:
    """The accuracies in docs/accuracy.md are those of the bundle."""
    page = REFERENCE["accuracy"]
    for name, facts in load_manifest(bundle, EXAMPLE).named_heads.items():
        forms = [
            f"{facts.accuracy[form]:.4f}" if form in facts.accuracy else "–" for form in ("stripped", "full")
        ]
        numbers = f"| {forms[0]} | {forms[1]} | {facts.validation:.4f} |"
        assert re.search(rf"^\| `{name}` \| .* {re.escape(numbers)}$", page, re.MULTILINE), name
    auto = load_manifest(bundle, EXAMPLE).estimator
    numbers = f"| {auto.auto_accuracy['stripped']:.4f} | {auto.auto_accuracy['full']:.4f} |"
    assert re.search(rf"^\| `auto` \| .* {re.escape(numbers)}", page, re.MULTILINE)
    alone = auto.auto_alone
    assert f"{alone['stripped']:.0%} of the stripped and\n{alone['full']:.0%} of the full" in page


def test_readme_quotes_the_manifest(bundle: Path) -> None:
    """The README's accuracies of `auto` and of the best head are those of the bundle."""
    manifest = load_manifest(bundle, EXAMPLE)
    best = max(manifest.heads.values(), key=lambda facts: facts.accuracy["stripped"])
    said = " ".join(README.split())
    for accuracy in (manifest.estimator.auto_accuracy, best.accuracy):
        assert re.search(rf"{accuracy['stripped']:.1%}.*{accuracy['full']:.1%}".replace("%", " %"), said)


def test_readme_is_short() -> None:
    """A newcomer reads the README in one go, and reaches the folders within the first screen and a half."""
    lines = README.splitlines()
    assert len(lines) <= 147
    assert lines.index("## Where things are") <= 75


def test_settings_table_is_the_code() -> None:
    """Defaults and reasons in the tables are those of `Settings` and `ServerSettings`."""
    hints = get_type_hints(ServerSettings, include_extras=True)
    for field in msgspec.structs.fields(ServerSettings):
        default = str(field.default).lower() if isinstance(field.default, bool) else field.default
        (about,) = (note for note in hints[field.name].__metadata__ if isinstance(note, Meta))
        variable, why = f"COLDFRAME_{field.name.upper()}", re.escape(str(about.description))
        row = rf"^\| `{variable}` \| `{default}` \| .* \| {why} \|$"
        assert re.search(row, REFERENCE["settings"], re.MULTILINE), field.name


# docs/deploy.md

DEPLOY = (ROOT / "docs" / "deploy.md").read_text()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rules_of_check_are_documented(rule: Rule) -> None:
    """Every rule of `coldframe check` is in the table of what it refuses, by the name that it prints."""
    name = "".join(word.title() for word in rule.__name__.split("_")).replace("Snapstart", "SnapStart")
    assert f"`{name}`" in DEPLOY


def test_jobs_of_the_pipeline_are_documented() -> None:
    """The table has the jobs of the workflow, in its order."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
    section = DEPLOY.partition("## In a pipeline")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == [*workflow["jobs"]]


def test_prices_are_what_the_formulas_give() -> None:
    """The sums in the comparison of modes follow from the prices beside them."""
    gb, month_s, rounds = 1769 / 1024, 730 * 3600, 730 * 12
    duration, request = 0.0000133334, 0.20 / 1e6
    for price, told in (
        (gb * month_s * 0.0000033334, "15.13"),
        (gb * month_s * 0.0000041667, "18.92"),
        (gb * month_s * 0.0000015046, "6.83"),
        (gb * 0.0001397998 * 1e6, "241.51"),
        (rounds * (0.3 * gb * duration + request), "0.06"),
        (rounds * (0.8 * 0.5 * duration + request), "0.05"),
    ):
        assert f"{price:.2f}" == told
        assert f"{told} USD" in DEPLOY or f"x86-64: {told}" in DEPLOY


# docs/serve.md

SERVE = REFERENCE["serve"]


@pytest.mark.parametrize(
    ("texts", "options"),
    [("posts", ["--text-ms", "9"]), ("headlines", ["--text-ms", "1.1", "--sharing", "1.9"])],
)
def test_costs_of_platforms_are_what_the_command_says(texts: str, options: list[str]) -> None:
    """Each sum in the tables of docs/serve.md is one that `coldframe homes` prints."""
    printed = CliRunner().invoke(main, ["homes", *options]).stdout
    rows = {line.partition("  ")[0]: re.split(r"  +", line)[1:] for line in printed.splitlines()}
    for told, row in (
        (f"{texts}.*: Lambda on demand", "lambda, on demand"),
        (f"{texts}: containers.*", "containers, always on"),
        ("one L4 .*", "g6.xlarge, one L4"),
    ):
        cells = re.escape(" | ".join(rows[row]))
        assert re.search(rf"^\| {told} \| {cells} \|$", SERVE, re.MULTILINE), row
    planned, *pays = re.findall(r"(?:for|from) ([\d,]+)(?: texts/s| on)", printed)
    l4, _, h200 = pays
    assert f"| {texts} | {planned} | {l4} texts/s | {h200} texts/s |" in SERVE


# docs/observe.md

OBSERVE = REFERENCE["observe"]


def server_metrics() -> dict[str, str]:
    """Rows of the server's metrics, without their labels, by name."""
    metrics = Metrics()
    metrics.add_passes(Stats)
    rows = {}
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows[name] = f"| `{name}` | {family.type} | {family.documentation} |"
    return {name: row for name, row in rows.items() if name.startswith("coldframe_")}


def test_metrics_of_cloudwatch_are_documented() -> None:
    """The table has exactly the metrics that a line can have, and the cost is theirs."""
    page = OBSERVE.partition("## CloudWatch's metrics")[2].partition("\n## ")[0]
    rows = [row for row in page.splitlines() if re.match(r"\| `[a-z]", row)]
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    kinds = ("on-demand", "provisioned-concurrency", "snap-start", "lambda-managed-instances")
    possible = set()
    for status, kind in itertools.zip_longest((200, 404, 500), kinds, fillvalue=""):
        record: dict[str, object] = {
            "status": status,
            "duration_ms": 1.5,
            "stages_ms": dict.fromkeys(("cache", "tokenize", "estimate", "encode", "heads", "explain"), 1.0),
            "answers": dict.fromkeys(("estimator", "ensemble", "abstained", "rushed"), 1),
            "cache_error": "TimeoutError",
            "usage": Usage(1, 1, 1, 1, 1, 1, 1, CacheUsage(1, 1, 1, 1)),
        }
        add_metrics(record, "Coldframe/test", kind, 0.0)
        directive: Any = record["_aws"]
        possible |= {metric["Name"] for metric in directive["CloudWatchMetrics"][0]["Metrics"]}
    assert names == possible
    one_kind = len(names) - len(kinds) + 1
    assert f"at most {one_kind} metrics, three times each: {3 * one_kind} metrics" in page
    assert f"{3 * one_kind * 0.3:.2f} USD per month. Each further head adds {one_kind * 0.3:.2f} USD" in page


def test_metrics_are_documented() -> None:
    """The table has a row for each metric of the server, with its type and its own text, and no other row."""
    table = OBSERVE.partition("## Metrics")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(coldframe_\w+)`", table, re.MULTILINE) == list(server_metrics())
    assert [row for row in server_metrics().values() if row not in table] == []


def test_alert_rules_name_metrics() -> None:
    """Rules and Grafana's queries use metrics that exist; a histogram is read by its buckets."""
    panels = json.loads((ROOT / "functions" / "server" / "grafana.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    for rules in (OBSERVE.partition("## Alert rules")[2], "\n".join(queries)):
        named = {name.removesuffix("_bucket") for name in re.findall(r"\bcoldframe_\w+", rules)}
        assert named and named <= set(server_metrics())


def calls_of_the_log() -> Iterator[tuple[str, ast.Call]]:
    """Calls that write a log line, with their file, in the package and the functions."""
    package = ROOT / "layers" / "shared" / "python" / "coldframe"
    for path in (*sorted(package.rglob("*.py")), *sorted((ROOT / "functions").rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in ("event", "_log", "log_line", "plain_line") and (node.keywords or node.args):
                    yield path.name, node


def test_every_log_line_has_a_duration() -> None:
    """Each event is logged with `duration_ms`; the log adds the time."""
    events = 0
    for file, call in calls_of_the_log():
        names = {keyword.arg for keyword in call.keywords}
        is_event = any(keyword.arg == "event" for keyword in call.keywords) or isinstance(
            call.args[0] if call.args else None, ast.Constant
        )
        if is_event and not ast.unparse(call.func).endswith("plain_line"):
            events += 1
            assert "duration_ms" in names, f"{file}: {ast.unparse(call)}"
    assert events > 15
    functions = [path.read_text() for path in (ROOT / "functions").rglob("app.py")]
    assert not any("print(json" in code and "duration_ms" not in code for code in functions)


def test_log_events_are_documented() -> None:
    """Each event that the package and the functions log has a row, and no other event has one."""
    package = ROOT / "layers" / "shared" / "python" / "coldframe"
    files = [*sorted(package.rglob("*.py")), *sorted((ROOT / "functions").rglob("*.py"))]
    code = "".join(path.read_text() for path in files)
    logged = set(re.findall(r'(?:\.event\(|_log\(|plain_line\(|event=|"event": )\s*"([a-z-]+)"', code))
    table = OBSERVE.partition("## Other lines")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \| (?!when)", table, re.MULTILINE)) == logged - {"request"}
