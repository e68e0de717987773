"""Which models a folder has, which of them are served, and which one answers where none is named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import BundleMissing
from coldframe.model.files import (
    DEFAULT,
    MANIFEST,
    built_models,
    keep_default,
    read_file,
    record_default,
    recorded_default,
    served_models,
)

NAMES = st.lists(st.sampled_from(["alarm", "mail", "support", "topics"]), min_size=1, max_size=4, unique=True)


def folder_of(path: Path, *models: str) -> Path:
    """A folder with empty models, beside what else lies in such a folder."""
    for name in (*models, "encoders/minilm", ".unfinished"):
        (path / name).mkdir(parents=True)
        (path / name / MANIFEST).touch()
    (path / "no-model").mkdir()
    return path


def test_built_models(tmp_path: Path) -> None:
    """A model is a folder with a manifest; encoders, hidden folders and the record are not models."""
    record_default(folder_of(tmp_path, "topics", "mail"), "mail")
    assert built_models(tmp_path) == ["mail", "topics"]
    assert built_models(tmp_path / "nowhere") == []


def test_named_models_are_served_unseen(tmp_path: Path) -> None:
    """Names are an explicit choice, the first is the default; the folder is not looked at for it."""
    assert served_models(tmp_path / "nowhere", " b , a,,b ") == ["b", "a"]


def test_the_only_model_is_the_default(tmp_path: Path) -> None:
    """One model alone answers, whatever an old record says."""
    record_default(folder_of(tmp_path, "support"), "removed")
    assert served_models(tmp_path, "") == ["support"]


def test_the_recorded_model_is_the_default(tmp_path: Path) -> None:
    """Of several models the recorded one answers, and all are served."""
    record_default(folder_of(tmp_path, "alarm", "mail", "topics"), "mail")
    assert served_models(tmp_path, "") == ["mail", "alarm", "topics"]


@pytest.mark.parametrize(("recorded", "problem"), [("", "is missing"), ("gone", "names 'gone'")])
def test_nothing_says_which_model_answers(tmp_path: Path, recorded: str, problem: str) -> None:
    """Of several models without a usable record none is guessed: the error names them, and what to do."""
    folder_of(tmp_path, "mail", "topics")
    if recorded:
        record_default(tmp_path, recorded)
    with pytest.raises(
        BundleMissing, match=f"2 models: mail, topics.*{problem}.*coldframe models --default NAME"
    ):
        served_models(tmp_path, "")


@given(names=NAMES)
def test_an_added_model_never_becomes_the_default(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first model of a folder stays its default, in whatever order others are added by name."""
    folder = tmp_path_factory.mktemp("models")
    for name in names:
        keep_default(folder, name)
        (folder / name).mkdir()
        (folder / name / MANIFEST).touch()
        assert served_models(folder, "")[0] == names[0]


def test_models_from_before_the_record(tmp_path: Path) -> None:
    """The only model of a folder without a record is recorded once another is added; of several none is."""
    keep_default(folder_of(tmp_path, "topics"), "alarm")
    assert recorded_default(tmp_path) == "topics"
    (tmp_path / DEFAULT).unlink()
    (tmp_path / "alarm").mkdir()
    (tmp_path / "alarm" / MANIFEST).touch()
    for added in ("mail", "topics"):
        keep_default(tmp_path, added)
        assert recorded_default(tmp_path) == ""


@pytest.mark.parametrize("retrained", ["topics", "alarm"])
def test_retraining_changes_no_default(tmp_path: Path, retrained: str) -> None:
    """A model that takes the place of its older self, and a record of the user's choice, stay as they are."""
    record_default(folder_of(tmp_path, "alarm", "topics"), "alarm")
    keep_default(tmp_path, retrained)
    assert recorded_default(tmp_path) == "alarm"


def test_folder_that_is_a_model(tmp_path: Path) -> None:
    """A model in the place of the folder is named as such, with the two words to give instead."""
    folder_of(tmp_path, "support")
    with pytest.raises(
        BundleMissing, match=f"support is a model.*Give {tmp_path} as the folder, and support as"
    ):
        served_models(tmp_path / "support", "")


def test_name_of_no_model(tmp_path: Path) -> None:
    """A name that no model has is an error with the names there are, or with how to make one."""
    with pytest.raises(BundleMissing, match=r"has no model\. Run `coldframe build`"):
        read_file(tmp_path / "nope", MANIFEST)
    folder_of(tmp_path, "mail", "topics")
    with pytest.raises(BundleMissing, match=r"has no model 'nope'\. Models: mail, topics\. Name one of them"):
        read_file(tmp_path / "nope", MANIFEST)
    with pytest.raises(BundleMissing, match=r"no-model has no readable manifest\.json"):
        read_file(tmp_path / "no-model", MANIFEST)
