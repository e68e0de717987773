"""A trained head as files: one `.npz` where it is kept, a folder of arrays where it is served."""

from pathlib import Path

import numpy as np

from coldframe.model.files import head_folder
from coldframe.model.heads import Arrays


def save_head(folder: Path, name: str, arrays: Arrays) -> None:
    """`<name>.npz` in `folder`, readable without pickle."""
    np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def unpack_head(folder: Path, name: str, bundle: Path) -> None:
    """Arrays of their own in `bundle`: reading a zip file would cost a cold start five milliseconds."""
    target = bundle / head_folder(name)
    target.mkdir(parents=True)
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        for array in arrays.files:
            np.save(target / f"{array}.npy", arrays[array], allow_pickle=False)
