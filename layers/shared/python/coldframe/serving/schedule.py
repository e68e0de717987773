"""Models of a server: their encoders share passes across requests, under one scheduler for the device."""

import time
from collections.abc import Mapping

from coldframe.model.encoder import RowEncoder, TextEncoder
from coldframe.model.model import Model
from coldframe.pipeline.models import Models
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.scheduling.scheduler import Scheduler
from coldframe.serving.calibration import calibrate
from coldframe.serving.driver import Driver
from coldframe.serving.encoder import SharedEncoder
from coldframe.timing import Clock


def schedule_models(models: Models, limits: Limits, clock: Clock = time.monotonic) -> Driver:
    """Makes all requests to these models share passes; answers are unchanged, to the bit.

    Measures pass times for half a second, and starts `limits.workers` threads.
    Raises the BundleError of a model that cannot be used.
    """
    predictors = models.all()
    alone = {predictor.encoder.name: predictor.model.encoder for predictor in predictors}
    driver = _drive(alone, limits, clock)
    for predictor in predictors:
        name, heads = predictor.encoder.name, predictor.model.heads
        predictor.model = Model(SharedEncoder(alone[name], name, driver), heads)
    return driver


def _drive(encoders: Mapping[str, TextEncoder], limits: Limits, clock: Clock) -> Driver:
    rows = {name: encoder.row_encoder for name, encoder in encoders.items()}
    times = {name: PassTimes() for name in rows}
    for name, encoder in rows.items():
        calibrate(times[name], encoder.encode, limits, clock)
    mixing = frozenset(name for name, encoder in rows.items() if mixes_lengths(encoder))
    averages = {name: encoder.ms_per_token for name, encoder in encoders.items()}
    return Driver(Scheduler(limits, times, mixing), rows, averages, clock)


def mixes_lengths(encoder: RowEncoder) -> bool:
    """Whether a pass of this encoder may hold rows of several lengths, as a GPU's encoder reports."""
    return bool(getattr(encoder, "mixes_lengths", False))
