"""Constants of one simulation, as the kernel reads them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Rules(NamedTuple):
    """Limits of an account and draws for its environments.

    function_of, snapstart: by pool. synchronous: by function.
    inits_s, restores_s: (pools, draws): seconds of the init phases, and of the restores, of a function's
    environments in the order of their start, over and over. keeps_s: (functions, draws): how long each of
    them is kept idle.
    An allocation rate of 0 switches its rule off, and so does -1 as scaling burst, as rate of requests or as
    their growth. rated: whether the rate of requests, or its growth, can be exceeded at all.
    provisioned: whether any pool has provisioned concurrency at some time. most_due: invocations and init
    phases that can be under way at a time, those of stopped environments among them.
    """

    function_of: Any
    snapstart: Any
    synchronous: Any
    inits_s: Any
    restores_s: Any
    keeps_s: Any
    account_concurrency: int
    max_age_s: float
    scaling_burst: int
    scaling_per_s: float
    allocation_burst: int
    allocation_per_s: float
    allocation_delay_s: float
    requests_per_environment_s: float
    request_growth: int
    rated: bool
    provisioned: bool
    most_due: int


class Changes(NamedTuple):
    """Configuration changes in the order of time: `provisioning.change` describes them."""

    at_s: Any
    kinds: Any
    of: Any
    values: Any
