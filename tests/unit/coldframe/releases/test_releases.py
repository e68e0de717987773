"""Releases: what is published is what arrives, and what is not whole never arrives."""

import io
import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest

from coldframe.errors import BundleCorrupt, BundleError, BundleMissing
from coldframe.model.bundle import FileEntry
from coldframe.model.files import served_models
from coldframe.model.verify import verify_bundle
from coldframe.releases import release as release_module
from coldframe.releases.place import (
    BucketPlace,
    FolderPlace,
    PlaceUnavailable,
    Pointer,
    PointerChanged,
    open_place,
)
from coldframe.releases.publishing import releases, roll_back
from coldframe.releases.release import Release, fetch, path_in, read_release
from tests.conftest import EXAMPLE
from tests.support.example import publish_folder, relabelled


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of temporary files, for this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def place(tmp_path: Path) -> FolderPlace:
    return FolderPlace(tmp_path / "place")


@pytest.fixture(scope="session")
def two_versions(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("versions")
    return bundle, relabelled(bundle, folder / "other", "-2")


def written(place: FolderPlace, release: Release, name: str = "") -> str:
    """The name of a release whose list alone is written."""
    place.write(path_in(name or release.name()), io.BytesIO(release.encode()))
    return name or release.name()


def test_a_published_release_arrives_whole(place: FolderPlace, bundle: Path, temporary: Path) -> None:
    """The copy passes every check of a build; `close` leaves nothing."""
    pointer = publish_folder(place, bundle)
    copy = fetch(place, pointer.release)
    assert [report.name for report in verify_bundle(copy.path)[1]] == [EXAMPLE]
    assert served_models(copy.path, "") == [EXAMPLE]
    copy.close()
    copy.close()
    assert list(temporary.iterdir()) == []


def test_a_release_has_no_report(place: FolderPlace, bundle: Path) -> None:
    """Reports may quote texts: they are not published."""
    release = read_release(place, publish_folder(place, bundle).release)
    assert not [file for file in release.files if "report" in file]
    assert (bundle / EXAMPLE / "report.html").exists()


def test_a_second_roll_back_undoes_the_first(place: FolderPlace, two_versions: tuple[Path, Path]) -> None:
    """The pointer keeps the release before; equal models published again change nothing."""
    first, second = (publish_folder(place, folder).release for folder in two_versions)
    assert publish_folder(place, two_versions[1]) == Pointer(second, first)
    assert roll_back(place) == Pointer(first, second)
    assert roll_back(place) == Pointer(second, first)
    assert roll_back(place, first[:12]).release == first
    assert [name for name, _ in releases(place)] == sorted((first, second))


@pytest.mark.parametrize("to", ["", "0", "not-a-digest"])
def test_nothing_to_roll_back_to(place: FolderPlace, bundle: Path, to: str) -> None:
    """One release alone: the error says so, and the pointer stays."""
    pointer = publish_folder(place, bundle)
    to = "f" * 64 if to == "0" else to
    with pytest.raises(BundleMissing):
        roll_back(place, to)
    assert place.mark().pointer() == pointer


def test_two_publishers_at_once(place: FolderPlace, bundle: Path) -> None:
    """The second one finds another pointer than it read, and changes nothing."""
    old = place.mark()
    pointer = publish_folder(place, bundle)
    with pytest.raises(PointerChanged):
        place.replace(Pointer("a" * 64), old.tag)
    assert place.mark().pointer() == pointer


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"release": "../../etc"}', b"x" * 2_000_000])
def test_a_broken_pointer(place: FolderPlace, bundle: Path, content: bytes) -> None:
    """It is an error for servers, and the next publisher repairs it."""
    place.write("current", io.BytesIO(content))
    with pytest.raises(BundleCorrupt, match="does not name a release"):
        place.mark().pointer()
    pointer = publish_folder(place, bundle)
    assert place.mark().pointer() == pointer


@pytest.mark.parametrize("fault", ["missing", "shorter", "longer", "altered", "list", "gone"])
def test_what_is_not_whole_never_arrives(
    place: FolderPlace, bundle: Path, tmp_path: Path, temporary: Path, fault: str
) -> None:
    """A file of the release is damaged: an error names the fault, and no copy is left."""
    name = publish_folder(place, bundle).release
    folder = tmp_path / "place" / "releases" / name
    file = folder / EXAMPLE / "estimator.bin"
    content = file.read_bytes()
    match fault:
        case "missing":
            file.unlink()
        case "shorter":
            file.write_bytes(content[:-1])
        case "longer":
            file.write_bytes(content + b"\0" * 2_000_000)
        case "altered":
            file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        case "list":
            (folder / "release.json").write_bytes(b"{}")
        case "gone":
            shutil.rmtree(tmp_path / "place")
    with pytest.raises(BundleError, match="Publish"):
        fetch(place, name)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "topics/../../outside", "a//b"])
def test_a_list_cannot_leave_its_folder(place: FolderPlace, path: str) -> None:
    """Paths of a list stay below the folder of the copy."""
    name = written(place, Release({"topics": "sha256:1"}, {path: FileEntry("0" * 64, 1)}))
    with pytest.raises(BundleCorrupt, match="outside"):
        fetch(place, name)


def test_a_list_of_another_release(place: FolderPlace) -> None:
    """The list is under another digest than its own: it is refused."""
    name = written(place, Release({"topics": "sha256:1"}, {}), "a" * 64)
    with pytest.raises(BundleCorrupt, match="another digest"):
        fetch(place, name)


def test_a_list_without_a_model(place: FolderPlace) -> None:
    """A release has a model."""
    with pytest.raises(BundleCorrupt, match="names no model"):
        fetch(place, written(place, Release({}, {})))


def test_a_copy_of_a_killed_process_is_removed(place: FolderPlace, bundle: Path, temporary: Path) -> None:
    """The next copy removes a folder that nobody locks, and leaves one that a process uses."""
    name = publish_folder(place, bundle).release
    left = temporary / "coldframe-release-killed"
    left.mkdir()
    other = temporary / "something-else"
    other.mkdir()
    used = fetch(place, name)
    assert not left.exists() and other.exists()
    second = fetch(place, name)
    assert used.path.exists()
    used.close()
    second.close()


def test_a_copy_can_be_given_up(place: FolderPlace, bundle: Path, temporary: Path) -> None:
    """An error of `check` ends the copy between two pieces."""
    name = publish_folder(place, bundle).release

    def stop() -> None:
        raise PlaceUnavailable("The server ends. Start it again.")

    with pytest.raises(PlaceUnavailable):
        fetch(place, name, stop)
    assert list(temporary.iterdir()) == []


def test_an_unreadable_place(tmp_path: Path) -> None:
    """A file where the folder should be: the error says what to check."""
    (tmp_path / "file").write_text("")
    place = FolderPlace(tmp_path / "file")
    for call in (place.mark, place.names, lambda: place.write("a", io.BytesIO(b""))):
        with pytest.raises(PlaceUnavailable, match="Check the volume"):
            call()


def test_addresses() -> None:
    """`s3://` is S3, anything else a folder; a bucket has a name."""
    assert isinstance(open_place("s3://bucket/models/"), BucketPlace)
    assert open_place("s3://bucket/models/").address == "s3://bucket/models"
    assert isinstance(open_place("models"), FolderPlace)
    with pytest.raises(PlaceUnavailable, match="names no bucket"):
        open_place("s3://")


def test_a_name_is_the_digest_of_the_list() -> None:
    """Two lists have one name only if they are equal."""
    one = Release({"topics": "sha256:1"}, {"a": FileEntry("0" * 64, 1)})
    assert one.name() == msgspec.structs.replace(one).name()
    assert one.name() != msgspec.structs.replace(one, models={"topics": "sha256:2"}).name()
    assert release_module.LIST in path_in(one.name())
