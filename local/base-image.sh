#!/usr/bin/env bash
# Prints the base image to build on: AWS's own, or, where no registry can be reached, a stand-in made of Debian.
#     local/base-image.sh [PYTHON-OF-THE-SAM-CLI]
# The stand-in has AWS's paths, variables, entry point, runtime client and emulator; its distribution is Debian
# trixie, whose Python is 3.13, too. Making it needs root and debootstrap, and takes a minute.
set -euo pipefail
AWS_IMAGE=public.ecr.aws/lambda/python:3.13
STAND_IN=lambda-python:3.13
MIRROR=${MIRROR:-http://deb.debian.org/debian}
SAM_PYTHON=${1:-$(dirname "$0")/../.venv-sam/bin/python}

say() { echo "==> $*" >&2; }
has() { docker image inspect "$1" >/dev/null 2>&1; }
end() { say "$@"; exit 1; }

docker info >/dev/null 2>&1 || end "Docker does not answer. Start it, or join the group that may use it; then try again."
if has "$AWS_IMAGE"; then echo "$AWS_IMAGE"; exit; fi
if has "$STAND_IN"; then
    say "building on the stand-in $STAND_IN; \`docker image rm $STAND_IN\` to try $AWS_IMAGE again"
    echo "$STAND_IN"; exit
fi
say "pulling $AWS_IMAGE"
if docker pull --quiet "$AWS_IMAGE" >&2; then echo "$AWS_IMAGE"; exit; fi

say "$AWS_IMAGE cannot be pulled: making the stand-in $STAND_IN (a minute)"
[ "$(id -u)" = 0 ] || end "The stand-in can only be made by root. Run this as root, or where $AWS_IMAGE can be pulled."
command -v debootstrap >/dev/null || end "The stand-in needs debootstrap. On Debian or Ubuntu: apt install debootstrap"
EMULATOR=$("$SAM_PYTHON" -c 'import pathlib, platform, samcli
machine = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]
print(pathlib.Path(samcli.__file__).parent / f"local/rapid/aws-lambda-rie-{machine}")') ||
    end "The emulator comes with the SAM CLI, which $SAM_PYTHON does not have. Run \`make sam\`, which installs it."

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie "$root" "$MIRROR" \
    >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; end "debootstrap failed; its last lines are above."; }

# What pip trusts inside `docker build` is what this machine trusts.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root/var/task" "$root/var/runtime" "$root/opt"
chroot "$root" python3 -m venv /var/lang
install -m 755 "$EMULATOR" "$root/usr/local/bin/aws-lambda-rie"
# The runtime client, by this machine's pip: it knows where packages come from.
"$SAM_PYTHON" -m pip install --quiet --disable-pip-version-check --no-compile --target "$root/var/runtime" \
    --python-version 3.13 --implementation cp --only-binary=:all: \
    --platform "manylinux_2_28_$(uname -m)" --platform "manylinux2014_$(uname -m)" awslambdaric >&2

cat >"$root/lambda-entrypoint.sh" <<'END'
#!/bin/sh
# As AWS's: one argument, the handler; under the emulator where Lambda itself is not.
[ $# -eq 1 ] || { echo "entrypoint requires the handler name to be the first argument" >&2; exit 142; }
export _HANDLER="$1"
[ -n "$AWS_LAMBDA_RUNTIME_API" ] && exec /var/runtime/bootstrap
exec /usr/local/bin/aws-lambda-rie /var/runtime/bootstrap
END
cat >"$root/var/runtime/bootstrap" <<'END'
#!/bin/sh
export AWS_EXECUTION_ENV=AWS_Lambda_python3.13
exec /var/lang/bin/python3.13 /var/runtime/bootstrap.py
END
cat >"$root/var/runtime/bootstrap.py" <<'END'
# The managed runtime's search path: code, layers, then the runtime itself, which is this file's folder.
import os, runpy, sys
sys.path[:0] = [os.environ["LAMBDA_TASK_ROOT"], "/opt/python/lib/python3.13/site-packages", "/opt/python"]
sys.argv = ["awslambdaric", os.environ["_HANDLER"]]
runpy.run_module("awslambdaric", run_name="__main__")
END
chmod 755 "$root/lambda-entrypoint.sh" "$root/var/runtime/bootstrap"
chroot "$root" /var/lang/bin/python -m compileall -q --invalidation-mode unchecked-hash /var/runtime >&2

tar -C "$root" --numeric-owner --create \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/log/*' \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' . |
docker import \
    --change 'ENV LANG=en_US.UTF-8 TZ=:/etc/localtime PATH=/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin LD_LIBRARY_PATH=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime' \
    --change 'WORKDIR /var/task' --change 'ENTRYPOINT ["/lambda-entrypoint.sh"]' - "$STAND_IN" >&2
echo "$STAND_IN"
