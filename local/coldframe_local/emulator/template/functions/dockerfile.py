"""Result of a Dockerfile: command, variables, and copied files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dockerfile_parse import DockerfileParser

from coldframe_local.emulator.template.syntax.errors import TemplateError


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """Result of a stage of a Dockerfile.

    copied: files that all stages copy from the context, with their targets.
    """

    command: list[str]
    environ: dict[str, str]
    copied: list[tuple[str, str]]

    @classmethod
    def read(cls, path: Path, function: str, target: str | None) -> Dockerfile:
        """The one at `path`, of an image function. Raises TemplateError.

        target: the stage to build; None for the last one.
        """
        try:
            text = path.read_text()
        except OSError as exc:
            raise TemplateError(
                f"{function}: {path} cannot be read: {exc.strerror}. "
                "Metadata.DockerContext and Metadata.Dockerfile of the function say where it is."
            ) from exc
        structure = DockerfileParser(fileobj=io.StringIO(text)).structure
        instructions = [(each["instruction"], each["value"], each["content"]) for each in structure]
        copied = [
            (source, value.split()[-1])
            for word, value, _ in instructions
            if word == "COPY" and "--from" not in value
            for source in value.split()[:-1]
            if not source.startswith("--")
        ]
        stage = DockerfileParser(fileobj=io.StringIO(_stage(path, instructions, target)))
        return cls(_exec_form(stage.cmd), dict(stage.envs), copied)


def _stage(path: Path, instructions: Sequence[tuple[str, str, str]], target: str | None) -> str:
    """One stage with the stages that it is built from, as a Dockerfile of its own.

    instructions: each one's word, what follows it, and its lines.
    """
    stages: dict[str, str] = {}
    name = ""
    for word, value, lines in instructions:
        if word == "FROM":
            base, _, alias = re.sub(r"\s+as\s+", " as ", value.lower()).partition(" as ")
            name = alias.strip() or str(len(stages))
            stages[name] = stages.get(base.strip(), lines)
        elif name:  # an ARG may come before the first stage
            stages[name] += lines
    stage = stages.get((target or name).lower())
    if stage is None:
        raise TemplateError(f"{path} has no stage {target}; its stages: {', '.join(stages)}.")
    return stage


def _exec_form(command: str | None) -> list[str]:
    """`CMD ["a", "b"]` as a list; the shell form is one string."""
    try:
        words = json.loads(command or "[]")
    except ValueError:
        return [str(command)]
    return [str(word) for word in words]
