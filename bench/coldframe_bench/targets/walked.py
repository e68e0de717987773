"""Runs inside a fresh process: has the function answer events, and follows it through the last one.

    python -m coldframe_bench.targets.walked ROOT < events        one JSON event per line

ROOT is the tree whose `coldframe_functions` and `coldframe` count as ours. Writes one JSON object: the
answer, and what of ours the last event ran through, in the thread that answered it.
"""

import inspect
import json
import sys
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

_OURS = ("functions/coldframe_functions", "layers/shared/python/coldframe")
# Python 3.12 runs a comprehension in the frame around it (PEP 709): no version counts them as functions.
_INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class Walk:
    """Code that a request runs through: files in the order entered, functions, lines, and the deepest call.

    Only functions of ours count; code that runs because a module is imported does not.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = tuple(f"{root / folder}/" for folder in _OURS)
        self.files: dict[str, str] = {}
        self.functions: set[CodeType] = set()
        self.lines: set[tuple[str, int]] = set()
        self.depth = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """For `sys.settrace`: called when a function is entered."""
        if not self._is_ours(frame) or (depth := self._depth_of(frame)) is None:
            return None
        if frame.f_code.co_name not in _INLINED:
            file = str(Path(frame.f_code.co_filename).relative_to(self._root))
            self.files.setdefault(file, frame.f_code.co_qualname)
            self.functions.add(frame.f_code)
            self.depth = max(self.depth, depth)
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _depth_of(self, frame: FrameType | None) -> int | None:
        """Functions of ours that are under way; None within an import, whoever asked for it."""
        depth = 0
        while frame is not None and frame.f_code is not _answer.__code__:
            if frame.f_code.co_name == "<module>":
                return None
            depth += self._is_ours(frame) and frame.f_code.co_name not in _INLINED
            frame = frame.f_back
        return depth

    def _is_ours(self, frame: FrameType) -> bool:
        """A function: bodies of modules and of classes are none."""
        code = frame.f_code
        return code.co_filename.startswith(self._folders) and bool(code.co_flags & inspect.CO_OPTIMIZED)


def _answer(handler: Any, event: Any, walk: Walk | None) -> Any:
    context = SimpleNamespace(aws_request_id="bench", get_remaining_time_in_millis=lambda: 29_000)
    sys.settrace(walk.trace if walk is not None else None)
    try:
        return handler(event, context)
    finally:
        sys.settrace(None)


def main() -> None:
    """Answers all events but the last one beforehand, so that its road has nothing of what they load."""
    from coldframe_functions.predict.app import handler

    *before, last = [json.loads(line) for line in sys.stdin]
    for event in before:
        _answer(handler, event, None)
    walk = Walk(Path(sys.argv[1]).resolve())
    answer = _answer(handler, last, walk)
    walked = {
        "files": list(walk.files.items()),
        "functions": len(walk.functions),
        "lines": len(walk.lines),
        "depth": walk.depth,
    }
    print(json.dumps({"answer": answer, "walked": walked}))


if __name__ == "__main__":
    main()
