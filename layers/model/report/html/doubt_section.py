"""The section of the page about texts that are nothing like the rows of the table."""

from xml.etree.ElementTree import Element

from layers.model.report.figures.detection import FALSE_ALARMS, Detection
from layers.model.report.figures.report import Report
from layers.model.report.figures.words import count, percent, with_interval
from layers.model.report.html.axes import Axes, Point
from layers.model.report.html.markup import node, table
from layers.model.report.html.plots import Dot, plot_dots
from layers.model.report.html.sections import legend, section


def doubt(report: Report) -> Element | None:
    """How well the model sees that a text is of another kind."""
    detections = report.out_of_distribution
    if detections is None:
        return None
    dots = [Dot(_name(one), one.auroc, "auto" if one.is_score else "other") for one in detections.measures]
    return section(
        "Does it see what it does not know?",
        node(
            "p",
            f"{count(detections.others, 'text')} (other languages, code, logs, recipes, gibberish"
            " and more) stand against the held-out rows. AUROC: how often a text of another kind looks"
            " stranger than a held-out row. 50% is a guess, 100% is never wrong. By its probability alone, a"
            " text looks the stranger the less probable its answer is.",
        ),
        plot_dots(dots, "How well each measure tells texts of other kinds, with its 95% interval", "AUROC"),
        table(
            ["measure", "AUROC", "other texts stranger than 95% of the rows"],
            [[_name(one), with_interval(one.auroc), _caught(one)] for one in detections.measures],
        ),
        *(part for measure in detections.measures if measure.is_score for part in _distributions(measure)),
        node(
            "p",
            "Texts of other kinds may belong to a label all the same: a line about a parcel, say, in a model"
            " of support tickets. Texts that are nearly of a known kind are harder to see than these, and"
            " short texts look stranger than long ones.",
            class_="note",
        ),
    )


def _name(measure: Detection) -> str:
    return f"score by {measure.name}" if measure.is_score else measure.name


def _caught(measure: Detection) -> str:
    """The share of other texts that is caught; a score is coarse where few rows chose its steps."""
    if measure.caught.value == 0 and measure.held_out[-1] > FALSE_ALARMS:
        return f"none: {percent(measure.held_out[-1])} of the rows have the highest scores, too"
    return with_interval(measure.caught)


def _distributions(measure: Detection) -> tuple[Element, Element, Element]:
    return (
        node("h3", f"Score by {measure.name}"),
        plot_score(measure),
        legend(("line auto", "held-out rows"), ("line baseline", "texts of other kinds")),
    )


def plot_score(measure: Detection) -> Element:
    """Both distributions of a score. Rows that are like those of validation lie flat."""
    highest = max(*measure.held_out, *measure.others)
    axes = Axes(x=(0, 1), y=(0, min(1.0, highest * 1.08)), height=280)
    flat = 1 / len(measure.held_out)
    words = f"{percent(measure.others[-1])} of the texts of other kinds are in the last bin"
    return axes.drawing(
        f"Distributions of the score by {measure.name}; {words}",
        *axes.grid_x("out-of-distribution score"),
        *axes.grid_y("share of the texts"),
        axes.line((0, flat), (1, flat), "guide"),
        axes.area([(0, 0), (1, 0)], _steps(measure.held_out), "band"),
        axes.path(_steps(measure.held_out), "line auto"),
        axes.path(_steps(measure.others), "line baseline"),
    )


def _steps(shares: list[float]) -> list[Point]:
    width = 1 / len(shares)
    return [
        point
        for place, share in enumerate(shares)
        for point in ((place * width, share), ((place + 1) * width, share))
    ]
