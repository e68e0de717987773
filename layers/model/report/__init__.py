"""The report beside a model: what the model says of held-out rows, as `report.json` and `report.html`."""

from layers.model.report.compare import Comparison, answered_by, compare
from layers.model.report.evaluation import Evaluation, EvaluationFault, Strangeness
from layers.model.report.files import write_report
from layers.model.report.report import Report, Summary, make_report

__all__ = [
    "Comparison",
    "Evaluation",
    "EvaluationFault",
    "Report",
    "Strangeness",
    "Summary",
    "answered_by",
    "compare",
    "make_report",
    "write_report",
]
