"""Report beside a model: its answers on held-out rows, as `report.json` and `report.html`."""

from coldframe_training.report.figures.compare import Comparison, answered_by, compare, part_of
from coldframe_training.report.figures.evaluation import Evaluation, EvaluationFault, Strangeness
from coldframe_training.report.figures.report import HeadScore, Report, Summary, make_report
from coldframe_training.report.files import (
    REPORT_DIGESTS,
    REPORT_JSON,
    REPORT_PAGE,
    read_figures,
    write_figures,
    write_predictions,
    write_report,
)

__all__ = [
    "REPORT_DIGESTS",
    "REPORT_JSON",
    "REPORT_PAGE",
    "Comparison",
    "Evaluation",
    "EvaluationFault",
    "HeadScore",
    "Report",
    "Strangeness",
    "Summary",
    "answered_by",
    "compare",
    "make_report",
    "part_of",
    "read_figures",
    "write_figures",
    "write_predictions",
    "write_report",
]
