#!/usr/bin/env bash
# Writes the eight lock files anew (`make lock`): hash-checked, for every supported
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
# for the other three in order to convert models; the image leaves them out.
compile functions/requirements.txt "huggingface-hub flatbuffers packaging protobuf"
compile local/requirements.txt huggingface-hub --extra local -c functions/requirements.txt
compile bench/requirements.txt huggingface-hub --extra bench -c local/requirements.txt
compile tests/requirements.txt huggingface-hub --extra dev -c bench/requirements.txt
compile layers/model/requirements.txt torch --extra build -c functions/requirements.txt
# Tools with an environment of their own: they pin versions of what we use too.
compile_tool() { # compile_tool REQUIREMENTS OUTPUT [uv flags…]
    local requirements=$1 output=$2
    shift 2
    echo "locking $output"
    echo "$requirements" | uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-annotate --custom-compile-command "make lock" -o "$output" "$@"
}
compile_tool aws-sam-cli==1.170.0 local/sam-requirements.txt
# boto3, because the functions that it runs find it in Lambda's runtime too.
compile_tool $'ministack==1.5.33\nboto3' tests/ministack-requirements.txt
# Executors of Spark run the product: what serves, in the versions of the function. pyspark 4.3 wants pandas 2.
compile_tool $'pyspark==4.3.0\npyarrow\npandas<3\nmsgspec\nnumpy\nonnxruntime\ntokenizers' tests/spark-requirements.txt \
    -c functions/requirements.txt --excludes <(printf '%s\n' huggingface-hub flatbuffers packaging protobuf)
