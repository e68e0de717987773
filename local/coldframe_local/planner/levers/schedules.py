"""Provisioned concurrency that changes: by the slot, by a timetable, or by Auto Scaling's target tracking.

Source: https://docs.aws.amazon.com/lambda/latest/dg/provisioned-concurrency.html#managing-provisioned-concurency
and https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html,
read 2026-11-21.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from coldframe_local.planner.simulator.provisioning import PROVISION
from coldframe_local.planner.simulator.simulator import Change

_HOUR_S, _DAY_S = 3600.0, 86_400.0
_AHEAD_S = 120.0  # a scheduled action comes this long before its hour, because allocation takes time
_HOURS = 24
TARGET = 0.7
# Alarms of target tracking on ProvisionedConcurrencyUtilization: minutes in a row.
_OUT_MINUTES, _IN_MINUTES, _IN_SHARE = 3, 15, 0.9


def levels_by_hour(peaks_by_minute: npt.NDArray[np.int64], share: float) -> tuple[int, ...]:
    """For each hour of the day, a level that holds this share of its minutes' peaks, over all days."""
    hours = np.arange(len(peaks_by_minute)) // 60 % _HOURS
    return tuple(
        int(np.quantile(of_hour, share, method="inverted_cdf"))
        if len(of_hour := peaks_by_minute[hours == hour])
        else 0
        for hour in range(_HOURS)
    )


def slot_by_slot(levels: Iterable[int], slot_s: float, after_s: float = 0.0) -> tuple[Change, ...]:
    """A level for each slot, from none on: a change wherever it differs from the one before.

    after_s: seconds from the start of a slot to its change.
    """
    steps = enumerate(pairwise((0, *levels)))
    return tuple(
        Change(slot * slot_s + after_s, PROVISION, 0, to) for slot, (before, to) in steps if to != before
    )


def timetable(levels: tuple[int, ...], span_s: float) -> tuple[Change, ...]:
    """The scheduled actions of every day of the span."""
    changes, before = [], levels[0]
    for number in range(math.ceil(span_s / _HOUR_S)):
        level = levels[number % _HOURS]
        if level != before:
            changes.append(Change(max(0.0, number * _HOUR_S - _AHEAD_S), PROVISION, 0, level))
            before = level
    return tuple(changes)


def target_tracking(mean_by_minute: npt.NDArray[np.float64], least: int, most: int) -> tuple[Change, ...]:
    """Levels that target tracking sets from each minute's mean concurrency (-1: no invocation, so no data).

    It is blind to bursts of less than three minutes, and without traffic it never scales in.
    """
    changes: list[Change] = []
    provisioned, high, low = least, 0, 0
    for minute, mean in enumerate(mean_by_minute.tolist()):
        if mean < 0:
            high = low = 0
            continue
        use = min(mean, provisioned) / provisioned
        high = high + 1 if use > TARGET else 0
        low = low + 1 if use < TARGET * _IN_SHARE else 0
        if high < _OUT_MINUTES and low < _IN_MINUTES:
            continue
        target = min(most, max(least, math.ceil(provisioned * use / TARGET)))
        if target != provisioned:
            changes.append(Change((minute + 1) * 60.0, PROVISION, 0, target))
            provisioned = target
        high = low = 0
    return tuple(changes)
