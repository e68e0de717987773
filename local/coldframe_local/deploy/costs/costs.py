"""Monthly cost of a platform beside Lambda, and the texts per second from which it is cheaper.

Lambda:      USD per text = (GB × price per GB-second × seconds of a request + price of a request) / texts
container:   USD a month = containers × (vCPU × price + GB × price) × 730 h
             containers = texts/s ÷ (texts/s of one × share that it may be busy), rounded up
break-even:  of a container against Lambda: its USD a month ÷ (USD per text on Lambda × seconds of a month)
             of a GPU against containers:   its USD an hour ÷ USD an hour of a container × texts/s of one
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from coldframe.capacity.limits import VCPU
from coldframe_local.planner.scenarios.prices import MONTH_S, PricesUnusable, RegionPrices

_H_S, _MB_PER_GB = 3600.0, 1024


@dataclass(frozen=True)
class Work:
    """Load that texts put on one virtual processor.

    text_ms: one text. texts: of a request. request_ms: a request, beside its texts. sharing: how many times
    as many texts a server does because requests share passes. busy: the share of its time that a server may
    work, so that bursts need not wait.
    """

    text_ms: float
    texts: int = 1
    request_ms: float = 1.0
    sharing: float = 1.0
    busy: float = 0.7

    @property
    def request_s(self) -> float:
        """Seconds of one request, served alone."""
        return (self.request_ms + self.texts * self.text_ms) / 1e3

    def texts_s(self, cpus: float) -> float:
        """Texts per second that a server with this number of processors is planned for."""
        alone_s = self.request_ms / 1e3 + self.texts * self.text_ms / 1e3 / self.sharing
        return cpus * self.busy * self.texts / alone_s


@dataclass(frozen=True)
class Container:
    """One that is always on. texts_s: what it is planned for."""

    month_usd: float
    texts_s: float

    def count(self, texts_s: float) -> int:
        """How many hold this rate; one at the least."""
        return max(1, math.ceil(texts_s / self.texts_s))


@dataclass(frozen=True)
class Gpu:
    """One GPU that is always on. texts_s: None where nobody has measured it."""

    name: str
    instance: str
    month_usd: float
    texts_s: float | None


@dataclass(frozen=True)
class Costs:
    """Costs of all platforms."""

    prices: RegionPrices
    architecture: str
    work: Work
    container: Container
    gpus: tuple[Gpu, ...]

    def lambda_usd(self, texts_s: float) -> float:
        """A month on demand at one virtual processor, cold starts left out."""
        requests = texts_s * MONTH_S / self.work.texts
        gb_s = requests * self.work.request_s * VCPU.value / _MB_PER_GB
        return self.prices.lambda_[self.architecture].on_demand_usd(gb_s) + requests * self.prices.request_usd

    def containers_usd(self, texts_s: float) -> float:
        """A month of as many containers as hold this rate."""
        return self.container.count(texts_s) * self.container.month_usd

    @property
    def container_pays_from(self) -> float | None:
        """Texts per second at which a container costs what Lambda does; None: a full one costs more."""
        break_even = self.container.month_usd / self.lambda_usd(1.0)
        return break_even if break_even <= self.container.texts_s else None

    def gpu_pays_from(self, gpu: Gpu) -> float:
        """Texts per second at which containers cost as much as this GPU, if the GPU can process them."""
        return gpu.month_usd / self.container.month_usd * self.container.texts_s


def costs(
    prices: RegionPrices,
    architecture: str,
    work: Work,
    cpus: float,
    memory_mb: int,
    gpu_texts_s: float | None = None,
) -> Costs:
    """Costs of containers of this size. gpu_texts_s: measured, by GPU. Raises PricesUnusable."""
    rates = prices.container.get(architecture)
    if rates is None:
        raise PricesUnusable(
            f"There are no prices of containers on {architecture} for this region, only on:"
            f" {', '.join(prices.container) or 'none'}. Set `price_file` in a scenario file to"
            " a file that has them."
        )
    hour_usd = cpus * rates.vcpu_h_usd + memory_mb / _MB_PER_GB * rates.gb_h_usd
    gpus = tuple(
        Gpu(name, of.instance, of.gpu_h_usd * MONTH_S / _H_S, gpu_texts_s) for name, of in prices.gpu.items()
    )
    container = Container(hour_usd * MONTH_S / _H_S, work.texts_s(cpus))
    return Costs(prices, architecture, work, container, gpus)
