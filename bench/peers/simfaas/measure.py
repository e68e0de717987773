"""Invocations of SimFaaS in a second of processor time: `measure.py CONCURRENCY DURATION_S INVOCATIONS SEED`.

The same arrivals and durations as ours: Poisson, and exponential. SimFaaS knows no trace, no limits but
one on concurrency, no provisioned concurrency and no price.
"""

import sys
import time

import numpy as np
from simfaas.ServerlessSimulator import ServerlessSimulator

concurrency, duration_s, invocations, seed = (float(value) for value in sys.argv[1:])
rate = concurrency / duration_s
np.random.seed(int(seed))
simulator = ServerlessSimulator(
    arrival_rate=rate,
    warm_service_rate=1 / duration_s,
    cold_service_rate=1 / (20 * duration_s),
    expiration_threshold=600,
    max_time=invocations / rate,
    maximum_concurrency=1000,
)
started = time.process_time()
simulator.generate_trace(debug_print=False, progress=False)
print(simulator.total_req_count / (time.process_time() - started))
