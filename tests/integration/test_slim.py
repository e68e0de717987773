"""What the image leaves out of its dependencies; needs a package index."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import botocore
import pyarrow as pa
import pytest
import tokenizers
from botocore.loaders import Loader
from pyarrow import parquet as pq

import slim
from coldframe_bench.benchmarks.image import OURS_BUDGET_BYTES
from tests.conftest import ROOT

pytestmark = pytest.mark.containers

# The instruction set of Lambda that this machine does not have: `test_image.py` sees to the other one.
MACHINE, ELF_NUMBER = ("x86_64", 62) if platform.machine() == "aarch64" else ("aarch64", 183)


@pytest.mark.parametrize(
    "requirements", ["requirements.txt", "pyarrow-requirements.txt", "feedback-requirements.txt"]
)
def test_dependencies_of_the_other_instruction_set(bundle: Path, tmp_path: Path, requirements: str) -> None:
    """Every dependency has a wheel, all that is to be removed is there, and what is left is within budget."""
    has_pyarrow, has_extra = requirements.startswith("pyarrow"), requirements != "requirements.txt"
    install(tmp_path, requirements)
    slim.main(tmp_path, slim.REMOVED | slim.REMOVED_ON_CPU | (slim.REMOVED_OF_PYARROW if has_pyarrow else {}))
    slim.compress(tmp_path)
    slim.cut_symbols(tmp_path)
    libraries = [path for path in tmp_path.rglob("*.so*") if path.is_file()]
    assert {int.from_bytes(path.read_bytes()[18:20], "little") for path in libraries} == {ELF_NUMBER}
    left = sum(path.stat().st_size for folder in (tmp_path, bundle) for path in folder.rglob("*"))
    assert has_extra or left < OURS_BUDGET_BYTES
    for needed in ("botocore/data/dynamodb", "botocore/data/endpoints.json.gz", "botocore/data/s3"):
        assert (tmp_path / needed).exists()


def test_slim_pyarrow_reads_parquet(tmp_path: Path) -> None:
    """What is left of pyarrow reads a table, and Athena's batches."""
    for kept in slim.KEPT:
        (tmp_path / kept).mkdir(parents=True)
    shutil.copytree(Path(pa.__file__).parent, tmp_path / "pyarrow")
    pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "table.parquet")
    slim.main(tmp_path, slim.REMOVED_OF_PYARROW)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pyarrow as pa; from pyarrow import parquet\n"
        "assert pa.__file__.startswith(sys.argv[1]), pa.__file__\n"
        "table = parquet.ParquetFile(open(sys.argv[1] + '/table.parquet', 'rb')).read()\n"
        "[batch] = table.to_batches()\n"
        "assert pa.ipc.read_record_batch(batch.serialize(), batch.schema).to_pylist() == table.to_pylist()\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)


def test_a_stale_table_ends_the_build(tmp_path: Path) -> None:
    """Where a dependency no longer has what is to be removed, the build says which line to correct."""
    for kept in slim.KEPT:
        (tmp_path / kept).mkdir(parents=True)
    with pytest.raises(SystemExit, match=r"onnxruntime/backend matches nothing"):
        slim.main(tmp_path, slim.REMOVED)


def test_cut_libraries_work(tmp_path: Path) -> None:
    """Without its symbols a library tokenizes as before, and it is no larger than what is loaded of it."""
    package = Path(tokenizers.__file__).parent
    shutil.copytree(package, tmp_path / package.name)
    [library] = (tmp_path / package.name).glob("*.so")
    before = library.read_bytes()
    slim.cut_symbols(tmp_path)
    after = library.read_bytes()
    assert len(after) < len(before)
    assert after[64:] == before[64 : len(after)]
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import tokenizers\n"
        "assert tokenizers.__file__.startswith(sys.argv[1]), tokenizers.__file__\n"
        "tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({'a': 0, 'b': 1}, unk_token='a'))\n"
        "assert tokenizer.encode('b').ids == [1]\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)


def test_a_library_of_another_kind_ends_the_build(tmp_path: Path) -> None:
    """A library that is not a 64-bit ELF library is not cut."""
    (tmp_path / "x.so").write_bytes(b"\x7fELF\x01\x01" + bytes(100))
    with pytest.raises(SystemExit, match=r"x\.so is not a 64-bit ELF library"):
        slim.cut_symbols(tmp_path)


def test_botocore_reads_compressed_endpoints(tmp_path: Path) -> None:
    """Endpoints are under gzip what they were."""
    source = Path(botocore.__file__).parent / "data" / "endpoints.json"
    for name in slim.COMPRESSED:
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(source, tmp_path / name)
    slim.compress(tmp_path)
    data = tmp_path / "botocore" / "data"
    assert [path.name for path in data.iterdir()] == ["endpoints.json.gz"]
    loader = Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
    assert loader.load_data("endpoints") == json.loads(source.read_bytes())


def test_what_serving_needs_has_to_be_there(tmp_path: Path) -> None:
    """A dependency that moved what serving needs ends the build, too."""
    with pytest.raises(SystemExit, match="botocore/data/dynamodb"):
        slim.main(tmp_path, slim.REMOVED)


def install(folder: Path, requirements: str) -> None:
    """Installs for `MACHINE` what its image installs."""
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-compile",
            ),
            *(
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
                "--implementation=cp",
                "--python-version=3.13",
            ),
            *(f"--platform=manylinux_2_28_{MACHINE}", f"--platform=manylinux2014_{MACHINE}"),
            *("--target", folder, "--requirement", ROOT / "functions" / requirements),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"pip cannot install for {MACHINE}: {done.stderr.splitlines()[-1]}")
