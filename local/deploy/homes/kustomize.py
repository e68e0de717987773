"""A Kustomize base: a file for each object, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from local.deploy.homes.notes import Manifest, as_yaml

LIST = "kustomization.yaml"


def write_base(folder: Path, objects: Sequence[Manifest]) -> list[Path]:
    """Writes the base; returns its files, the list first. Files of these names are replaced, others stay."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{manifest['kind'].lower()}.yaml": manifest for manifest in objects}
    listed = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(files),
    }
    paths = []
    for name, document in {LIST: listed, **files}.items():
        path = folder / name
        path.write_text(as_yaml([document]))
        paths.append(path)
    return paths
