"""Series of cold starts: what a fresh process does up to its first answer, and who has to give that."""

from enum import StrEnum

from coldframe_bench.loader.samples import Program

_FUNCTION = "from coldframe_functions.predict.app import handler"
_WEB = "import os; from coldframe_functions.predict.engine import Engine; engine = Engine(os.environ)"


class Series(StrEnum):
    """Names in raw files and tables. The floor imports numpy and onnxruntime, and nothing else."""

    INTERPRETER = "interpreter"
    FLOOR = "floor"
    ESTIMATOR = "estimator"
    ENCODER = "encoder"
    WEB = "encoder, through FastAPI and Mangum"
    ESTIMATOR_CLIENT = "estimator, through the runtime client"
    ENCODER_CLIENT = "encoder, through the runtime client"
    SURE_SURE = "first two answers: sure, then sure"
    SURE_UNSURE = "first two answers: sure, then unsure"
    UNSURE_SURE = "first two answers: unsure, then sure"
    UNSURE_UNSURE = "first two answers: unsure, then unsure"

    @property
    def source(self) -> str:
        """Source of the answer, as its `by` says."""
        return "estimator" if self in (Series.ESTIMATOR, Series.ESTIMATOR_CLIENT) else "ensemble"


PROGRAMS = {
    Series.INTERPRETER: Program(load=""),
    Series.FLOOR: Program(load="import numpy, onnxruntime"),
    Series.ESTIMATOR: Program(load=_FUNCTION, handler="handler"),
    Series.ENCODER: Program(load=_FUNCTION, handler="handler"),
    Series.WEB: Program(load=_WEB, handler="engine.fastapi"),
}
"""Programs that run in a process of ours. The series through the runtime client run in AWS's process."""

CHECKED = (Series.FLOOR, Series.ESTIMATOR, Series.ENCODER)
"""Series that have a budget, and the floor beside them."""
ANSWERED = (Series.ESTIMATOR, Series.ENCODER)
"""One for each way in which the function answers."""
THROUGH_CLIENT = (Series.ESTIMATOR_CLIENT, Series.ENCODER_CLIENT)
ORDERS = {
    Series.SURE_SURE: (Series.ESTIMATOR, Series.ESTIMATOR),
    Series.SURE_UNSURE: (Series.ESTIMATOR, Series.ENCODER),
    Series.UNSURE_SURE: (Series.ENCODER, Series.ESTIMATOR),
    Series.UNSURE_UNSURE: (Series.ENCODER, Series.ENCODER),
}
"""Two texts that one process answers in turn, stopped between them: work left for later is counted, too."""
