"""The wheel has everything: without the repository it makes a project, trains, serves and plans."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import httpx
import pytest

from coldframe_local.new_project.project import WHEEL
from coldframe_local.paths import BUILD_PYTHON
from tests.conftest import ROOT
from tests.support.running import coldframe_up

pytestmark = pytest.mark.trains

ENCODER = "minilm-l6-v2"
OURS = {"coldframe", "coldframe_functions", "coldframe_local", "coldframe_training"}


def build(folder: Path) -> Path:
    """The wheel of this repository."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    environ = os.environ | {"SOURCE_DATE_EPOCH": "1764000000"}
    subprocess.run([*command, "--wheel-dir", folder, ROOT], env=environ, check=True, cwd=folder)
    return folder / WHEEL


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; other packages are of this process and of the build environment."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run([folder / "bin" / "python", *pip], check=True)
    builder = "import sysconfig; print(sysconfig.get_path('purelib'))"
    others = subprocess.run([BUILD_PYTHON, "-c", builder], capture_output=True, text=True, check=True).stdout
    # A path in such a file is searched, and its own .pth files, which name the repository, are not read.
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{others}")
    return folder


def run(environment: Path, folder: Path, *command: str | Path) -> str:
    """Output of a command in a folder; the environment comes first on the path."""
    environ = {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_builds_are_equal(wheel: Path, tmp_path: Path) -> None:
    """A wheel depends on the sources alone, when SOURCE_DATE_EPOCH says the time."""
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_top_level_names_are_ours(wheel: Path) -> None:
    """The wheel installs packages of our names only, each with its mark for type checkers."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == OURS
    assert {name.partition("/")[0] for name in names if name.endswith("/py.typed")} == OURS


@pytest.fixture(scope="module")
def project(environment: Path, wheel: Path, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a packed encoder, trained on its table."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "models").symlink_to(bundle)
    packed = f"{ENCODER}.tar"
    run(environment, folder, "coldframe", "encoder", "pack", ENCODER, "--out", packed)
    printed = run(environment, folder, "coldframe", "new", "my-service", "--encoder", packed)
    assert printed.endswith("Next: cd my-service && make run\n")
    assert (folder / "my-service" / "wheels" / WHEEL).read_bytes() == wheel.read_bytes()
    run(environment, folder / "my-service", "make", "train", f"VENV={environment}")
    return folder / "my-service"


def test_no_code_is_from_the_repository(environment: Path, tmp_path: Path) -> None:
    """Each package of ours is imported from the environment, in an empty folder."""
    code = f"import importlib; print([importlib.import_module(name).__file__ for name in {sorted(OURS)!r}])"
    printed = run(environment, tmp_path, "python", "-c", code)
    assert printed.count(str(environment)) == len(OURS), printed
    assert str(ROOT) not in printed


def test_tests_of_the_project_pass(environment: Path, project: Path) -> None:
    """`make test` of a new project passes."""
    assert " passed" in run(environment, project, "make", "test", f"VENV={environment}")


def test_project_is_served(environment: Path, project: Path) -> None:
    """`coldframe up` answers requests to the project's function."""
    with coldframe_up(
        "Coldframe is listening on", program=environment / "bin" / "coldframe", cwd=project
    ) as [url]:
        answer = httpx.post(f"{url}/v1/predict", json={"text": "I cannot sign in."}, timeout=60)
    labels = json.loads((project / "models" / "tickets" / "manifest.json").read_text())["labels"]
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"][0]["heads"]["auto"]["label"] in labels


def test_commands_need_no_repository(environment: Path, project: Path) -> None:
    """Version, predictions, a plan and the DuckDB function come from the wheel alone."""
    assert run(environment, project, "coldframe", "--version").startswith("coldframe, version ")
    assert json.loads(run(environment, project, "coldframe", "predict", "I cannot sign in."))
    assert "USD" in run(environment, project, "coldframe", "plan", "--rps", "2")
    code = "import duckdb; from coldframe.duckdb import register; register(duckdb.connect(), 'models')"
    assert run(environment, project, "python", "-c", code) == ""


def test_an_index_is_not_asked_for_our_package(environment: Path, project: Path) -> None:
    """The project's requirements are a file and pytest: no index sees a name of ours."""
    lines = (project / "requirements.txt").read_text().splitlines()
    assert [line.partition(">")[0] for line in lines] == [f"./wheels/{WHEEL}[local,train]", "pytest"]


def test_a_spoiled_encoder_is_refused(environment: Path, project: Path, tmp_path: Path) -> None:
    """A packed encoder with a changed byte is refused, and none is installed."""
    models = shutil.copytree(project / "models" / "encoders", tmp_path / "models" / "encoders")
    run(environment, tmp_path, "coldframe", "encoder", "pack", ENCODER, "--out", "packed.tar")
    shutil.rmtree(models / ENCODER)
    content = bytearray((tmp_path / "packed.tar").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "packed.tar").write_bytes(content)
    program = environment / "bin" / "coldframe"
    done = subprocess.run(
        [program, "encoder", "install", "packed.tar"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "Error: " in done.stderr
    assert list(models.iterdir()) == []
