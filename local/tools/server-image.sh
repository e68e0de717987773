#!/usr/bin/env bash
# Builds the container image `coldframe:server`, or `coldframe:gpu` when asked for `gpu`, on python:3.13-slim, or on the base named by SERVER_BASE.
# Where no registry can be reached, on the stand-in that local/tools/base-image.sh makes: its Python is 3.13, too.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${1:-server} # or gpu
base=${SERVER_BASE:-python:3.13-slim}
if ! docker image inspect "$base" >/dev/null 2>&1 && ! docker pull --quiet "$base" >&2; then
    echo "==> $base cannot be pulled" >&2
    base=$(local/tools/base-image.sh)
fi
docker buildx version >/dev/null 2>&1 && export DOCKER_BUILDKIT=1 || export DOCKER_BUILDKIT=0
docker build --file functions/server/Dockerfile --target "$target" --build-arg "SERVER_BASE=$base" --tag "coldframe:$target" .
