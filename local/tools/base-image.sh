#!/usr/bin/env bash
# Prints the base image to build on: AWS's own, or, where no registry can be reached, a stand-in made of Debian.
#     local/tools/base-image.sh [ARCHITECTURE]      # x86_64 or arm64; default: this machine's
# The stand-in has AWS's paths, variables, entry point, runtime client and emulator; its distribution is Debian
# trixie, whose Python is 3.13, too. Making it needs root and debootstrap, and takes a minute. Packages are
# unpacked and never configured, so that none of the image's own programs has to run: those of another
# architecture could not.
set -euo pipefail
MIRROR=${MIRROR:-http://deb.debian.org/debian}
SAM_PYTHON=$(dirname "$0")/../../.venv-sam/bin/python

say() { echo "==> $*" >&2; }
has() { docker image inspect "$1" >/dev/null 2>&1; }
end() { say "$@"; exit 1; }

# AWS's name of an architecture, Debian's and Docker's, the kernel's and Python's.
name() {
    case $1 in
    x86_64 | amd64) echo x86_64 amd64 x86_64 ;;
    arm64 | aarch64) echo arm64 arm64 aarch64 ;;
    *) end "Found the architecture '$1', expected x86_64 or arm64." ;;
    esac
}
names=$(name "${1:-$(uname -m)}")
read -r architecture debian machine <<<"$names"
read -r native _ _ <<<"$(name "$(uname -m)")"

# By tags that name the architecture: Docker keeps one image by a name, and 3.13 alone may be either.
AWS_IMAGE=public.ecr.aws/lambda/python:3.13-$architecture
STAND_IN=lambda-python:3.13-$architecture

docker info >/dev/null 2>&1 || end "Docker does not answer. Start it, or join the group that may use it; then try again."
if has "$AWS_IMAGE"; then echo "$AWS_IMAGE"; exit; fi
if has "$STAND_IN"; then
    say "building on the stand-in $STAND_IN; \`docker image rm $STAND_IN\` to try $AWS_IMAGE again"
    echo "$STAND_IN"; exit
fi
say "pulling $AWS_IMAGE"
if docker pull --quiet --platform "linux/$debian" "$AWS_IMAGE" >&2; then echo "$AWS_IMAGE"; exit; fi

say "$AWS_IMAGE cannot be pulled: making the stand-in $STAND_IN (a minute)"
[ "$(id -u)" = 0 ] || end "The stand-in can only be made by root. Run this as root, or where $AWS_IMAGE can be pulled."
command -v debootstrap >/dev/null || end "The stand-in needs debootstrap. On Debian or Ubuntu: apt install debootstrap"
EMULATOR=$("$SAM_PYTHON" -c 'import pathlib, samcli, sys
print(pathlib.Path(samcli.__file__).parent / f"local/rapid/aws-lambda-rie-{sys.argv[1]}")' "$architecture") ||
    end "The emulator comes with the SAM CLI, which $SAM_PYTHON does not have. Run \`make sam\`, which installs it."

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
debootstrap --foreign --arch="$debian" --variant=minbase --include=python3,ca-certificates trixie "$root" "$MIRROR" \
    >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; end "debootstrap failed; its last lines are above."; }
# It unpacks what Debian cannot be without, and downloads the rest.
for package in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
# What pip trusts inside `docker build` is what this machine trusts.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

# AWS's own Python is below /var/lang: here, a virtual environment of Debian's.
lang=$root/var/lang
mkdir -p "$lang/bin" "$lang/lib/python3.13/site-packages" "$root/var/task" "$root/var/runtime" "$root/opt"
for python in python python3 python3.13; do ln -s /usr/bin/python3.13 "$lang/bin/$python"; done
printf '%s\n' 'home = /usr/bin' 'include-system-site-packages = false' 'version = 3.13' >"$lang/pyvenv.cfg"
# pip and the runtime client, by this machine's pip: it knows where packages come from.
install_packages() { # install_packages FOLDER PACKAGE
    "$SAM_PYTHON" -m pip install --quiet --disable-pip-version-check --no-compile --target "$1" \
        --python-version 3.13 --implementation cp --only-binary=:all: \
        --platform "manylinux_2_28_$machine" --platform "manylinux2014_$machine" "$2" >&2
}
install_packages "$lang/lib/python3.13/site-packages" pip
install_packages "$root/var/runtime" awslambdaric
install -D -m 755 "$EMULATOR" "$root/usr/local/bin/aws-lambda-rie"

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

# Bytecode does not depend on the architecture: the other one's is compiled by this one's base image.
compile() { # compile FOLDER…, as the image names them
    local options=(-m compileall -q -j 0 --invalidation-mode unchecked-hash)
    if [ "$architecture" = "$native" ]; then
        chroot "$root" /var/lang/bin/python3.13 "${options[@]}" "$@"
    else
        docker run --rm --user 0:0 --volume "$root:/root-of-another" --entrypoint /var/lang/bin/python3.13 "$base" \
            "${options[@]}" -s /root-of-another -p / "${@/#//root-of-another}"
    fi >&2
}
[ "$architecture" = "$native" ] || base=$("$0" "$native")
compile /usr/lib/python3.13 /var/lang/lib/python3.13 /var/runtime

# By `docker build`, because `docker import` takes every image for one of this machine's architecture.
mkdir "$work/image"
tar -C "$root" --numeric-owner --create --file "$work/image/root.tar" --exclude='./debootstrap' \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/log/*' \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' .
cat >"$work/image/Dockerfile" <<'END'
FROM scratch
ADD root.tar /
ENV LANG=en_US.UTF-8 TZ=:/etc/localtime
ENV PATH=/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin
ENV LD_LIBRARY_PATH=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib
ENV LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime
WORKDIR /var/task
ENTRYPOINT ["/lambda-entrypoint.sh"]
END
docker build --quiet --platform "linux/$debian" --tag "$STAND_IN" "$work/image" >&2
echo "$STAND_IN"
