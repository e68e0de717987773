#!/usr/bin/env bash
# Builds the container image `coldframe:ARCHITECTURE`, which is `coldframe` where it is for this machine's.
#     local/tools/image.sh [ARCHITECTURE]      # x86_64 or arm64; default: this machine's
# EXTRA=pyarrow adds that package, for Parquet sources of jobs and for Athena; EXTRA=feedback encrypts texts of feedback.
# None of the image's programs runs: any machine builds it for any other.
set -euo pipefail
cd "$(dirname "$0")/../.."

builder=$(local/tools/base-image.sh)
base=$builder
[ $# = 0 ] || base=$(local/tools/base-image.sh "$1")
architecture=${base##*-}
options=(--tag "coldframe:$architecture")
[ "$base" != "$builder" ] || options+=(--tag coldframe)

# See functions/Dockerfile: BuildKit has to be told which platform it is, the classic builder must not.
if docker buildx version >/dev/null 2>&1; then
    export DOCKER_BUILDKIT=1
    options+=(--platform "linux/${architecture/x86_64/amd64}")
else
    export DOCKER_BUILDKIT=0
fi
docker build --file functions/Dockerfile --build-arg "LAMBDA_BASE=$base" --build-arg "BUILDER_BASE=$builder" \
    --build-arg "EXTRA=${EXTRA:-none}" "${options[@]}" .
