"""Starts Ray on this machine alone and serves until it is stopped."""

import os
import time

import ray
from app import app
from ray import serve

ray.init(
    num_cpus=int(os.environ["PEER_WORKERS"]),
    include_dashboard=False,
    object_store_memory=100 * 2**20,
    log_to_driver=False,
)
serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PEER_PORT"])})
serve.run(app, route_prefix="/predict")
while True:
    time.sleep(3600)
