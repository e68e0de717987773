"""Work in log lines: Lambda's billed time and the texts answered in it, for their energy."""

import json
import re
from collections.abc import Iterable, Iterator

from coldframe.capacity.energy import energy_of

_REPORT = re.compile(r"\bREPORT RequestId: .*\bBilled Duration: (\d+) ms\s+Memory Size: (\d+) MB\b")
_MB_PER_GB, _MS_PER_S = 1024, 1000


class Work:
    """Sums over log lines that pass through `watch`.

    gb_s: billed seconds times memory, by Lambda's REPORT lines. texts: texts by the lines of requests.
    """

    def __init__(self) -> None:
        self.gb_s = 0.0
        self.texts = 0

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Passes each line on, and adds its work. Lines without any, or with broken JSON, add nothing."""
        for line in lines:
            if report := _REPORT.search(line):
                self.gb_s += int(report[1]) / _MS_PER_S * int(report[2]) / _MB_PER_GB
            elif '"usage"' in line:
                self.texts += _texts_of(line)
            yield line

    def summary(self) -> str | None:
        """Energy of a thousand texts as one line; None without texts or without REPORT lines."""
        if not self.texts or not self.gb_s:
            return None
        energy = energy_of(self.gb_s * 1000 / self.texts)
        return (
            f"energy of a thousand texts: {energy}, by {self.texts:,} texts in {self.gb_s:,.1f} billed GB-s"
        )


def _texts_of(line: str) -> int:
    try:
        texts = json.loads(line[line.index("{") :])["usage"]["texts"]
    except (ValueError, KeyError, TypeError):
        return 0
    return texts if type(texts) is int and texts > 0 else 0
