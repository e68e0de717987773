"""Switches for AWS's rates: each is a rule of `Limits`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coldframe.capacity.states import Limits


@dataclass(frozen=True, slots=True)
class Switches:
    """request_rate: ten synchronous requests per second for each unit of concurrency. scaling_rate: 1,000 new
    environments, and 10,000 more requests per second, every ten seconds. allocation_rate: 6,000 provisioned
    environments a minute, after their delay. Their sources stand at `Limits`.
    """

    request_rate: bool = True
    scaling_rate: bool = True
    allocation_rate: bool = True

    def of(self, limits: Limits) -> Limits:
        """The limits without the rules that are switched off."""
        if not self.request_rate:
            limits = replace(limits, requests_per_environment_s=None)
        if not self.scaling_rate:
            limits = replace(limits, scaling_per_s=None, request_growth=None)
        if not self.allocation_rate:
            limits = replace(limits, allocation_per_s=None, allocation_delay_s=0.0)
        return limits


ALL_RATES = Switches()
