#!/usr/bin/env bash
# The SAM CLI on this template, without an AWS account:
#     local/tools/sam.sh validate
#     local/tools/sam.sh build
#     local/tools/sam.sh start-api [FLAGS…]             HTTP, as in `sam local start-api`
#     local/tools/sam.sh invoke [FLAGS…]                one event, as in `sam local invoke`
#     local/tools/sam.sh generate-event SERVICE EVENT   an event to invoke it with
set -euo pipefail
cd "$(dirname "$0")/../.."
sam=.venv-sam/bin/sam
[ -x "$sam" ] || { echo "$sam is missing. Run \`make sam\`, which installs it." >&2; exit 1; }
command=${1:-}
shift || true

# Credentials that open nothing. Without any, SAM looks for some at every request, which takes most of its time.
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none AWS_DEFAULT_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=1 SAM_CLI_TELEMETRY=0
unset AWS_PROFILE AWS_SESSION_TOKEN

case $(uname -m) in aarch64 | arm64) machine=arm64 ;; *) machine=x86_64 ;; esac
# The shared cache is in AWS: here it is off.
parameters=("Architecture=$machine" CachePolicy=off)

case $command in
validate)
    for template in template.yaml functions/*.yaml; do "$sam" validate --lint --template "$template"; done ;;
build)
    base=$(local/tools/base-image.sh)
    exec "$sam" build --parameter-overrides "${parameters[@]}" "LambdaBase=$base" "$@" ;;
invoke)
    exec "$sam" local invoke PredictFunction --skip-pull-image --parameter-overrides "${parameters[@]}" "$@" ;;
start-api)
    # WARM_CONTAINERS= (nothing) for a fresh container, and so a cold start, with every request.
    warm=${WARM_CONTAINERS-LAZY}
    exec "$sam" local start-api --skip-pull-image ${warm:+--warm-containers "$warm"} \
        --parameter-overrides "${parameters[@]}" "$@" ;;
generate-event)
    exec "$sam" local generate-event "$@" ;;
*)
    echo "Found '$command', expected validate, build, start-api, invoke or generate-event." >&2
    exit 2 ;;
esac
