"""Where the code of a function is on this machine, and how it is started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coldframe_local.emulator.lambda_service.environments.scratch import new_folder
from coldframe_local.emulator.template.functions.dockerfile import Dockerfile
from coldframe_local.emulator.template.functions.requirements import not_importable
from coldframe_local.emulator.template.syntax.errors import NotKnown, NotRunnable, TemplateError
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.ref_names import FUNCTION, LAYER, PLAIN_LAYER
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note

_LAYERS_PATH = "/opt/python"
_TASK_ROOTS = ("${LAMBDA_TASK_ROOT}", "$LAMBDA_TASK_ROOT", "/var/task")
# What the CDK writes beside a resource whose code is a local folder.
# https://docs.aws.amazon.com/cdk/v2/guide/assets.html, read 2026-11-21.
_CDK_PATH = "aws:asset:path"
_CDK_DOCKERFILE = "aws:asset:dockerfile-path"
_CDK_TARGET = "aws:asset:docker-build-target"


@dataclass(frozen=True, slots=True)
class Code:
    """Where a function's code is, and what its image sets.

    paths: files and folders that are deployed. folders: of this machine, by their place in the image.
    """

    handler: str
    task_root: Path
    environ: dict[str, str]
    paths: tuple[Path, ...]
    folders: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


class CodeReader:
    """Reads the code of the functions of one template, which is in `folder`."""

    def __init__(self, resources: Resources, folder: Path) -> None:
        self._resources = resources
        self._folder = folder

    def read(self, name: str, properties: Properties) -> Code:
        """Raises NotRunnable for code that is not on this machine, or not in Python; TemplateError."""
        if is_image(properties):
            return self._image(name, properties)
        handler, runtime = properties.word("Handler"), properties.word("Runtime")
        if not handler or not runtime:
            raise TemplateError(f"{name} has Handler {handler!r} and Runtime {runtime!r}, expected both.")
        if not runtime.startswith("python"):
            raise NotRunnable(f"found {runtime}, expected a Python function: no other runs on this machine")
        folder = self._code_folder(name, properties)
        layers, notes = self._layers(name, properties)
        environ = {"PYTHONPATH": os.pathsep.join(map(str, layers))} if layers else {}
        notes += _missing(name, folder, layers)
        return Code(handler, folder, environ, (folder, *layers), notes=tuple(notes))

    # Zip functions.

    def _code_folder(self, name: str, properties: Properties) -> Path:
        if self._resources.kind(name) == FUNCTION:
            inline = properties.word("InlineCode")
            return _inline(inline) if inline is not None else self._local(name, properties, "CodeUri")
        code = properties.value("Code")
        if isinstance(code, dict) and "ZipFile" in code:
            return _inline(str(code["ZipFile"]))
        return self._local(name, properties, "Code")

    def _local(self, name: str, properties: Properties, key: str) -> Path:
        """The folder that a property names, or that the CDK names beside the resource."""
        asset = self._resources.metadata(name).word(_CDK_PATH)
        place = asset if asset is not None else properties.value(key)
        if place is None or place == "":
            raise TemplateError(f"{properties.place(key)} is missing. Expected the folder of the code.")
        if not isinstance(place, str) or place.startswith("s3://"):
            raise NotRunnable(f"its {key} is in S3, expected a folder on this machine")
        return self._folder / place

    def _layers(self, name: str, properties: Properties) -> tuple[list[Path], list[Note]]:
        """Folders that are on the path of the function, and what of its layers is not."""
        folders: list[Path] = []
        notes: list[Note] = []
        try:
            arns = properties.items("Layers")
        except NotKnown as exc:
            return [], [Note(Effect.MISSING, properties.place("Layers"), exc.why)]
        own = {self._resources.reference(layer): layer for layer, _ in self._own_layers()}
        for arn in arns:
            try:
                folder, on_path = self._layer(own[str(arn)])
            except (KeyError, NotRunnable):
                why = "the layer is not on this machine, and what it brings cannot be imported"
                notes.append(Note(Effect.MISSING, f"{arn} of {name}", why))
                continue
            folders.append(on_path)
            notes += _layer_notes(own[str(arn)], folder, on_path)
        return folders, notes

    def _own_layers(self) -> Iterator[tuple[str, Properties]]:
        return self._resources.of_types(LAYER, PLAIN_LAYER)

    def _layer(self, layer: str) -> tuple[Path, Path]:
        """The folder of a layer, and what of it is on the path.

        SAM puts what it builds for Python under `python/`:
        https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/building-layers.html
        (read 2026-11-21).
        """
        key = "ContentUri" if self._resources.kind(layer) == LAYER else "Content"
        folder = self._local(layer, self._resources.properties(layer), key)
        built = (self._resources.metadata(layer).word("BuildMethod") or "").startswith("python")
        return folder, folder if built else folder / "python"

    # Image functions.

    def _image(self, name: str, properties: Properties) -> Code:
        metadata = self._resources.metadata(name)
        properties.written("ImageUri")
        if not ({"Dockerfile", "DockerContext", _CDK_PATH} & {*metadata}) and self._is_elsewhere(properties):
            raise NotRunnable(
                "its image is in a registry, expected Metadata.Dockerfile, to know what it runs"
            )
        context = self._folder / (metadata.word("DockerContext") or metadata.word(_CDK_PATH) or ".")
        file = metadata.word("Dockerfile") or metadata.word(_CDK_DOCKERFILE) or "Dockerfile"
        target = metadata.word("DockerBuildTarget") or metadata.word(_CDK_TARGET)
        dockerfile = Dockerfile.read(context / file, name, target)
        config = properties.map("ImageConfig")
        command = [str(word) for word in config.items("Command")] or dockerfile.command
        if config.items("EntryPoint") or len(command) != 1:
            raise TemplateError(
                f"{name} starts {command!r}, expected the handler alone: AWS's Python base image takes it "
                'as its one argument. Write CMD ["package.module.handler"] or ImageConfig.Command, and no '
                "EntryPoint."
            )
        copied = [(context / source, destination.rstrip("/")) for source, destination in dockerfile.copied]
        searched = [str(folder) for folder in _import_folders(copied) if folder != context]
        return Code(
            command[0],
            context,
            {**dockerfile.environ, **({"PYTHONPATH": os.pathsep.join(searched)} if searched else {})},
            tuple(source for source, _ in copied),
            {destination: str(source) for source, destination in copied},
        )

    def _is_elsewhere(self, properties: Properties) -> bool:
        return "ImageUri" in properties or "Code" in properties


def is_image(properties: Properties) -> bool:
    """Whether a function is a container image."""
    return properties.word("PackageType") == "Image"


def _import_folders(copied: Iterable[tuple[Path, str]]) -> list[Path]:
    """Folders of this machine that stand for the task root of an image, then those for its layers' folder."""
    folders: list[Path] = []
    layers: list[Path] = []
    for source, destination in copied:
        root = next((root for root in _TASK_ROOTS if f"{destination}/".startswith(f"{root}/")), None)
        if destination == _LAYERS_PATH:
            layers.append(source)
        elif root is not None and destination == root:
            folders.append(source if source.is_dir() else source.parent)
        elif root is not None and destination.removeprefix(f"{root}/") == source.name:
            folders.append(source.parent)
    return list(dict.fromkeys(folders + layers))


def _inline(text: str) -> Path:
    """A folder with code of the template, as Lambda's module `index`; it goes when this process ends."""
    folder = new_folder()
    (folder / "index.py").write_text(text)
    return folder


def _missing(name: str, folder: Path, layers: list[Path]) -> Iterator[Note]:
    """Code that is not there, and requirements that nobody installed."""
    if not folder.is_dir():
        yield Note(Effect.MISSING, name, f"{folder} is not a folder: every init phase will fail")
    for path in (folder, *layers):
        file = path / "requirements.txt"
        if names := not_importable(file, [folder, *layers]):
            install = f"`pip install -r {file} --target {path}`"
            built = "`sam build` and then `coldframe up --template .aws-sam/build/template.yaml`"
            why = f"{', '.join(names)} of {file} cannot be imported. Run {install}, or {built}"
            yield Note(Effect.MISSING, name, why)


def _layer_notes(layer: str, folder: Path, on_path: Path) -> Iterator[Note]:
    """Part of a layer that a function does not find."""
    if not folder.is_dir():
        yield Note(Effect.MISSING, layer, f"{folder} is not a folder: imports from it will fail")
    elif not on_path.is_dir():
        why = (
            f"without a folder python/ nothing of it is imported; what is in /opt on AWS is in {folder} here"
        )
        yield Note(Effect.IGNORED, layer, why)
