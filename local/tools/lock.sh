#!/usr/bin/env bash
# Writes the lock files anew (`make lock`): hash-checked, for every supported
# Python and platform, without index addresses. Needs `uv` on the PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
compile() { # compile OUTPUT "EXCLUDED…" [uv flags…]
    local output=$1 excluded=$2
    shift 2
    echo "locking $output"
    uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
        --excludes <(tr ' ' '\n' <<<"$excluded") -o "$output" "$@"
}
# tokenizers asks for the hub's client only in order to download; nothing is
# downloaded at run time, and it would bring twelve more packages. onnxruntime asks
# for three others in order to convert models, and its Python binding for numpy: the
# C library, which the images run, asks for none of them.
compile functions/requirements.txt "huggingface-hub flatbuffers packaging protobuf numpy"
compile functions/pyarrow-requirements.txt "huggingface-hub flatbuffers packaging protobuf numpy" --extra arrow \
    -c functions/requirements.txt
compile functions/feedback-requirements.txt "huggingface-hub flatbuffers packaging protobuf numpy" --extra feedback \
    -c functions/requirements.txt
compile functions/server/requirements.txt "huggingface-hub flatbuffers packaging protobuf numpy" --extra server \
    -c functions/requirements.txt
# onnxruntime-gpu holds the same module. cuBLAS asks for NVRTC, a compiler, which these graphs never call.
compile functions/server/gpu-requirements.txt "huggingface-hub flatbuffers packaging protobuf onnxruntime nvidia-cuda-nvrtc" \
    --extra gpu -c functions/server/requirements.txt
compile local/requirements.txt huggingface-hub --extra local -c functions/server/requirements.txt
compile bench/requirements.txt huggingface-hub --extra bench -c local/requirements.txt
compile tests/requirements.txt huggingface-hub --extra dev -c bench/requirements.txt
compile layers/model/requirements.txt torch --extra build -c functions/requirements.txt
# Tools with an environment of their own: they pin versions of what we use too.
compile_tool() { # compile_tool REQUIREMENTS OUTPUT ["EXCLUDED…"] [uv flags…]
    echo "locking $2"
    echo "$1" | uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
        --excludes <(tr ' ' '\n' <<<"${3:-}") -o "$2" "${@:4}"
}
compile_tool aws-sam-cli==1.170.0 local/sam-requirements.txt
compile_tool zensical==0.0.73 local/docs-requirements.txt
# boto3, because the functions that it runs find it in Lambda's runtime too.
compile_tool $'ministack==1.5.33\nboto3' tests/ministack-requirements.txt
# Its models of manifests alone: with what it serves models with it would be 430 MB. kubernetes 37 reads no JSON
# through kserve's models.
compile_tool $'kserve==0.21.0\nkubernetes==36.0.3' tests/kserve-requirements.txt "aiohttp cloudevents cryptography \
fastapi grpc-interceptor grpcio grpcio-tools h11 httpx numpy orjson pandas pillow prometheus-client protobuf psutil \
pyasn1 pydantic pyjwt python-multipart starlette tabulate timing-asgi uvicorn watchfiles"
# Executors of Spark run the product: what serves, in the versions of the function. pyspark 4.3 wants pandas 2.
compile_tool $'pyspark==4.3.0\npyarrow\npandas<3\nmsgspec\nnumpy\nonnxruntime\ntokenizers' \
    tests/spark-requirements.txt "huggingface-hub flatbuffers packaging protobuf" -c functions/requirements.txt
