"""Training, in the build environment: every module can be imported, and a small data set becomes heads."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from coldframe.model.bundle import EstimatorFacts
from coldframe_local.paths import BUILD_PYTHON, ROOT, build_environ

pytestmark = [
    pytest.mark.trains,
    pytest.mark.skipif(
        not BUILD_PYTHON.exists(), reason=f"no {BUILD_PYTHON}: nothing was trained. `make build` sets it up."
    ),
]

HEADS_FOLDER = ROOT / "layers" / "model" / "coldframe_training" / "heads"
MODULES = [
    ".".join(path.relative_to(ROOT / "layers" / "model").with_suffix("").parts)
    for path in sorted((ROOT / "layers" / "model" / "coldframe_training").rglob("*.py"))
    if "bundle" not in path.parts
]
FAILED_IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as exc:
        print(name, exc)
"""
# scikit-learn's cache of the data set, made of sentences that are put together by a seeded dice.
MADE_UP = """
import codecs, pickle, random, sys
from pathlib import Path
from sklearn.utils import Bunch
dice = random.Random(7)
WORDS = {
    "ovens": "bread oven dough flour crust bake yeast loaf".split(),
    "rivers": "river boat bank water fish current bridge mud".split(),
    "stars": "star telescope planet orbit comet sky lens dust".split(),
}
OTHERS = "the a of with and then over under near old new good bad".split()
def post(name, number):
    body = " ".join(dice.choice(WORDS[name] if dice.random() < 0.5 else OTHERS) for _ in range(30))
    return f"From: nobody\\nSubject: {name} {number // 2}\\n\\n{body}.\\n"
def split(each):
    names = sorted(WORDS)
    target = [i for i in range(len(names)) for _ in range(each)]
    data = [post(names[i], n) for n, i in enumerate(target)]
    return Bunch(data=data, target=target, target_names=names, filenames=data)
import numpy
splits = {"train": split(20), "test": split(6)}
for each in splits.values():
    each.target, each.filenames = numpy.array(each.target), numpy.array(each.filenames)
content = codecs.encode(pickle.dumps(splits), "zlib_codec")
(Path(sys.argv[1]) / "20news-bydate_py3.pkz").write_bytes(content)
"""

EXAMPLE = """
import json
from coldframe_training.training_data.data import load_split, threads_of
from coldframe_training.training.newsgroups import load_example
example, threads = load_example(), threads_of(load_split("train").full)
sides = example.task.fit, example.task.validation
fit, validation = ({int(threads[row]) for row in rows} for rows in sides)
shown = {"numbers": example.numbers, "threads": len(fit | validation), "on both sides": len(fit & validation)}
print(json.dumps(shown | {"forms": list(example.task.test.forms), "heads": list(example.parameters)}))
"""


def in_build_environment(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Runs Python where torch and scikit-learn are, with one thread: several would wait for each other."""
    return subprocess.run(
        [BUILD_PYTHON, *arguments],
        cwd=ROOT,
        env=build_environ() | {"OMP_NUM_THREADS": "1"} | environ,
        capture_output=True,
        text=True,
        timeout=300,
    )


def content_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set of three classes in the form of 20 Newsgroups."""
    folder = tmp_path_factory.mktemp("data")
    done = in_build_environment("-c", MADE_UP, str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def train_example(out: Path, data: Path) -> "subprocess.CompletedProcess[str]":
    """Trains the example on other data, beside the one that is built."""
    models = out.parent.with_name(f"{out.parent.name}-models")
    places = (f"--trained={out}", f"--models={models}")
    return in_build_environment(
        "-m", "coldframe_training.train_newsgroups", *places, COLDFRAME_DATA=str(data)
    )


@pytest.fixture(scope="module")
def trained(bundle: Path, data_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What training made of the small data set."""
    out = tmp_path_factory.mktemp("trained") / "heads"
    done = train_example(out, data_set)
    assert done.returncode == 0, done.stderr
    return out


def test_every_module_can_be_imported() -> None:
    """No module of the build imports a name that has moved."""
    done = in_build_environment("-c", FAILED_IMPORTS, *MODULES)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_example_is_a_task(data_set: Path) -> None:
    """The example has the numbers of its test rows, both forms, every head, no discussion on both sides."""
    done = in_build_environment("-c", EXAMPLE, COLDFRAME_DATA=str(data_set))
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout) == {
        "numbers": list(range(1, 19)),
        "threads": 30,
        "on both sides": 0,
        "forms": ["stripped", "full"],
        "heads": ["logreg", "rf", "hgb", "mlp"],
    }


def test_training_makes_what_is_committed(trained: Path) -> None:
    """Training writes the files that are in the repository: no more, and none of them is missing."""
    assert set(content_of(trained)) == set(content_of(HEADS_FOLDER))


def test_training_learns(trained: Path) -> None:
    """Heads and estimator tell three classes of made-up sentences apart."""
    metrics = msgspec.json.decode((trained / "metrics.json").read_bytes())
    estimator = msgspec.json.decode((trained / "estimator.json").read_bytes(), type=EstimatorFacts)
    assert metrics["labels"] == ["ovens", "rivers", "stars"]
    assert min(head["accuracy"]["stripped"] for head in metrics["heads"].values()) > 0.9
    assert min(estimator.accuracy["stripped"], estimator.auto_accuracy["full"]) > 0.9


def test_training_ends_before_it_replaces(tmp_path: Path, bundle: Path) -> None:
    """A training that cannot read its data leaves the folder of heads as it was, and nothing beside it."""
    out, empty = tmp_path / "out" / "heads", tmp_path / "empty"
    out.mkdir(parents=True)
    empty.mkdir()
    (out / "logreg.npz").write_bytes(b"old")
    done = train_example(out, empty)
    assert done.returncode == 1
    assert "Error: 20 Newsgroups cannot be had" in done.stderr
    assert "Traceback" not in done.stderr
    assert content_of(out) == {"logreg.npz": b"old"}
    assert [path.name for path in out.parent.iterdir()] == ["heads"]
