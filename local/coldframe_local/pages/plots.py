"""Plots as SVG: Vega-Lite draws them here, so that a page needs no script."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import vl_convert
from markupsafe import Markup

Spec = dict[str, Any]
"""A part of a specification: https://vega.github.io/vega-lite/docs/"""

_COLOURS = ("#2f81f7", "#e5534b", "#3fb950", "#d4a72c", "#a371f7", "#39c5cf", "#ec6cb9", "#8b6f47", "#768390",
    "#c2410c", "#0e7490")  # fmt: skip
_MUTED = {f"{part}Color": "var(--muted)" for part in ("label", "title")}
_WORDS = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 330}
# Colours are the page's variables, which differ between light and dark. The library brings the first font and
# measures words with it. The next two fonts are as wide.
_CONFIG = {
    "background": "transparent",
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "view": {"stroke": None, "continuousWidth": 760, "continuousHeight": 320},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": "var(--line)",
        "labelPadding": 8,
        "titlePadding": 10,
        "labelFlush": False,
        **_MUTED,
        **_WORDS,
    },
    "legend": {
        "orient": "bottom",
        "columns": 3,
        "title": None,
        "symbolType": "stroke",
        "symbolSize": 300,
        "symbolStrokeWidth": 2.5,
        **_MUTED,
        **_WORDS,
    },
    "title": {"color": "var(--ink)", "anchor": "start", "fontSize": 14, "offset": 12},
    "mark": {"color": _COLOURS[0]},
    "range": {"category": _COLOURS},
    "line": {"aria": False},
    "area": {"aria": False},
    "rule": {"aria": False, "color": "var(--muted)"},
    "point": {"filled": True, "opacity": 1, "size": 60},
    "text": {"aria": False, "color": "var(--ink)", "fontSize": 12},
}
_FRAME = """<div class="wide" tabindex="0" role="group" aria-label="{0}">
<svg role="graphics-document" aria-label="{0}"{1}
</div>
"""


def plot(about: str, spec: Spec) -> Markup:
    """A drawing that scrolls on a small screen. about: what it shows, for readers who cannot see it."""
    content = json.dumps(spec, ensure_ascii=False, default=msgspec.to_builtins)
    # A label may hold half of a surrogate pair, which UTF-8 and the library cannot.
    svg = vl_convert.vegalite_to_svg(content.encode(errors="replace").decode(), config=_CONFIG)
    return Markup(_FRAME).format(about, Markup(_inline(svg)))  # noqa: S704 - the library escapes labels


def layer(mark: str | Spec, rows: Sequence[object], **encoding: Spec) -> Spec:
    """Marks of one kind. A line or an area joins the rows; another kind draws one mark for each row."""
    return {"mark": mark, "data": {"values": rows}, "encoding": encoding}


def number(field: str, title: str | None = None, **options: Any) -> Spec:
    """A channel of numbers. title: of its axis."""
    return {"field": field, "type": "quantitative", "title": title, **options}


def name(field: str, **options: Any) -> Spec:
    """A channel of names, in the order of the rows."""
    return {"field": field, "type": "nominal", "title": None, "sort": None, **options}


def logarithmic(field: str, title: str) -> Spec:
    """A channel of numbers above zero, each power of ten as long as the next."""
    return number(field, title, scale={"type": "log"}, axis={"format": ",~r", "tickCount": 8})


def palette(colours: Mapping[str, str]) -> Spec:
    """A scale: the colour of each name."""
    return {"domain": list(colours), "range": list(colours.values())}


def _inline(svg: str) -> str:
    """A drawing without its opening tag. The pointer shows a mark's label, which is also read aloud."""
    content = re.sub(r'^<svg( (xmlns|xmlns:xlink|version|class)="[^"]*")+', "", svg)
    return re.sub(r'<path (aria-label="([^"]*)"[^>]*)/>', r"<path \1><title>\2</title></path>", content)
