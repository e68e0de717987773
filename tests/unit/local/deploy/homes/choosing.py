"""Choices of operators for tests, and manifests as those who take them read them."""

from dataclasses import replace
from typing import Any

import yaml
from hypothesis import settings
from hypothesis import strategies as st

from local.deploy.homes.facts import Choices, Replicas, Size
from local.deploy.homes.notes import Manifest, as_yaml

USUAL = Choices("coldframe", "coldframe:server", Size(1, 1024), Replicas(2, 10), {})
WITH_GPU = Choices(
    "on-gpu", "coldframe:gpu", Size(4, 16384, 1), Replicas(2, 2), {"COLDFRAME_MODELS": "topics"}
)
WITH_CACHE = Choices(
    "cached",
    "registry.example/coldframe@sha256:" + "0" * 64,
    Size(0.5, 512),
    Replicas(1, 3),
    {"COLDFRAME_CACHE_TABLE": "predictions", "COLDFRAME_LOG_LEVEL": "off", "COLDFRAME_MAX_TEXTS": "20"},
)

ANYONE = {"COLDFRAME_ALLOW_ANYONE": "true"}

FEW = settings(max_examples=25, deadline=None)
"""A validator reads its schemas anew each time."""

sizes = st.builds(
    Size,
    st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 7.0, 16.0]),
    st.integers(512, 120 * 1024),
    st.integers(0, 8),
)
choices = st.builds(
    Choices,
    st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True),
    st.sampled_from(["coldframe:server", "registry.example:5000/a/b:1.2"]),
    sizes,
    st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda pair: Replicas(pair[0], sum(pair))),
    st.dictionaries(
        st.sampled_from(["COLDFRAME_MODELS", "COLDFRAME_CACHE_TABLE", "COLDFRAME_TOKENS_FILE"]),
        st.text("yesno0:# ", min_size=1),
    ),
)


def _scalable(chosen: Choices) -> Choices:
    """Plain Kubernetes has nothing to scale GPUs by."""
    least = chosen.replicas.least
    return replace(chosen, replicas=Replicas(least, least)) if chosen.size.gpus else chosen


scalable = choices.map(_scalable)


def read(documents: list[Manifest]) -> list[Any]:
    """Through YAML and back."""
    return list(yaml.safe_load_all(as_yaml(documents)))
