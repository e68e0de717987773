"""`coldframe encoder`: a built encoder as one file, and back."""

import tarfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import click

from coldframe.errors import BundleCorrupt, BundleMissing, ColdframeError
from coldframe.model.files import ENCODERS, MANIFEST, encoder_folder
from coldframe_local.command_group import Group
from coldframe_local.paths import model_dir

_MOST_BYTES = 4 * 2**30  # unpacked


class EncoderExists(ColdframeError):
    """Another encoder of this name is installed."""


@click.group(cls=Group)
def encoder() -> None:
    """Pack a built encoder into one file, or install such a file: no PyTorch is needed."""


@encoder.command()
@click.argument("name", default="minilm-l6-v2")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: NAME.tar]"
)
def pack(name: str, out: Path | None) -> None:
    """Write the built encoder NAME into one file, for `coldframe encoder install`."""
    from coldframe.model.verify import load_whole_encoder
    from coldframe.whole_file import whole_file

    load_whole_encoder(model_dir(), name)
    path = out or Path(f"{name}.tar")
    with whole_file(path) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for source in sorted(encoder_folder(model_dir(), name).iterdir()):
            archive.add(source, f"{name}/{source.name}", recursive=False, filter=_without_owner)
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


@encoder.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def install(file: Path) -> None:
    """Check the packed encoder FILE on this machine, and put it beside the models."""
    install_into(model_dir(), file)


def install_into(models: Path, file: Path) -> None:
    """Installs a packed encoder into a folder of models. Raises a BundleError, or EncoderExists."""
    from coldframe.model.bundle import load_encoder_manifest
    from coldframe.model.verify import load_whole_encoder, verify_encoder

    models.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".encoder-", dir=models) as scratch:
        name = _unpack(file, Path(scratch) / ENCODERS)
        report = verify_encoder(load_whole_encoder(Path(scratch), name))
        target = encoder_folder(models, name)
        if (target / MANIFEST).exists():
            if load_encoder_manifest(models, name).version != report.version:
                raise EncoderExists(f"{target} is another encoder of this name. Remove it to install {file}.")
            click.echo(f"{name} {report.version} is installed already.")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        encoder_folder(Path(scratch), name).rename(target)
    click.echo(f"{name} {report.version} is installed in {target.relative_to(models.parent)}.")


def _unpack(file: Path, folder: Path) -> str:
    """Unpacks plain files of one folder; returns its name. Raises BundleCorrupt, BundleMissing."""
    expected = "Expected a file from `coldframe encoder pack`: name one."
    try:
        with tarfile.open(file, mode="r:") as archive:
            members = archive.getmembers()
            names = {PurePosixPath(member.name).parts[0] for member in members if member.name}
            plain = all(member.isfile() and len(PurePosixPath(member.name).parts) == 2 for member in members)
            if len(names) != 1 or not plain or sum(member.size for member in members) > _MOST_BYTES:
                raise BundleCorrupt(f"{file} is not a packed encoder. {expected}")
            archive.extractall(folder, filter="data")
    except tarfile.TarError as exc:
        raise BundleCorrupt(f"{file} is not a packed encoder, or is cut off. {expected}") from exc
    except OSError as exc:
        raise BundleMissing(
            f"{file} cannot be unpacked: {exc.strerror}. Free some space, or name another file."
        ) from exc
    return names.pop()


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same for everybody who packs the same encoder."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
