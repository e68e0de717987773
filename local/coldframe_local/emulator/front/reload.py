"""Changed code is loaded: `coldframe up --reload` replaces the environments of its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from watchfiles import awatch

from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log


async def recycle_on_change(
    code: Mapping[str, Iterable[Path]], recycle: Callable[[str], None], log: Log
) -> None:
    """Watches until it is cancelled. code: of each function, the files and folders that are deployed.

    Environments that are busy end after their invocation, so no request fails because of a change.
    """
    watched = {path.resolve() for paths in code.values() for path in paths if path.exists()}
    async for changes in awatch(*watched):
        changed = [Path(path) for _, path in changes]
        for name, paths in code.items():
            if any(_is_inside(path, paths) for path in changed):
                log(f"Code of {name} has changed ({changed[0].name}): its environments are replaced.")
                recycle(name)


def _is_inside(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder.resolve()) for folder in folders)
