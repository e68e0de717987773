"""Made encoders and models are kept between runs of the tests, by the digest of their inputs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import made_encoders
from tests.support.made_encoders import reuse


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "build.py").write_text("ONE = 1")
    (tmp_path / "layers" / "model").mkdir()
    (tmp_path / "layers" / "model" / "requirements.txt").write_text("numpy==2")
    monkeypatch.setattr(made_encoders, "ROOT", tmp_path)
    return tmp_path


def counting(calls: list[Path]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "model.bin").write_text("made")

    return make


def test_equal_inputs_are_made_once(tmp_path: Path) -> None:
    calls: list[Path] = []
    for name in ("a", "b"):
        folder = reuse("kind", counting(calls), tmp_path / name)
        assert (folder / "model.bin").read_text() == "made"
    assert len(calls) == 1


def test_a_test_may_change_its_copy(tmp_path: Path) -> None:
    calls: list[Path] = []
    first = reuse("kind", counting(calls), tmp_path / "a")
    (first / "model.bin").write_text("spoiled")
    second = reuse("kind", counting(calls), tmp_path / "b")
    assert (second / "model.bin").read_text() == "made"


@pytest.mark.parametrize("changed", ["layers/build.py", "layers/model/requirements.txt", "table.csv"])
def test_other_code_and_other_inputs_are_made_again(root: Path, changed: str) -> None:
    calls: list[Path] = []
    (root / "table.csv").write_text("text,label")
    reuse("kind", counting(calls), root / "a", root / "table.csv")
    (root / changed).write_text("something else")
    reuse("kind", counting(calls), root / "b", root / "table.csv")
    assert len(calls) == 2


def test_a_failure_keeps_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        reuse("kind", fail, tmp_path / "a")
    assert (reuse("kind", counting([]), tmp_path / "b") / "model.bin").exists()
    assert not (tmp_path / "b" / "half").exists()
