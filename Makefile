# Every target sets up what it needs, from a fresh clone, and is quick the second time.
PYTHON ?= python3
PORT ?= 3000
TORCH := torch==2.13.0

VENV := .venv
BUILD := .venv-build
SAM := .venv-sam
MINISTACK := .venv-ministack
KSERVE := .venv-kserve
DOCS := .venv-docs
SPARK := .venv-spark
MODELS := models
BUILT := $(MODELS)/topics/manifest.json
PIP := -m pip install --disable-pip-version-check

PYTEST := $(VENV)/bin/python -m pytest -n auto --maxprocesses 4

.DEFAULT_GOAL := help
.PHONY: help run free-port test test-all lint build image image-server image-gpu image-report sam sam-validate check train wheel bench bench-setup bench-check bench-encoder docs lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

run: free-port $(BUILT) ## Start the local API on http://127.0.0.1:3000
	@exec $(VENV)/bin/coldframe up --port $(PORT)

# Before a build of minutes. Whoever answers here would be in the way afterwards, too.
free-port:
	@$(PYTHON) -c 'import socket, sys; taken = socket.socket().connect_ex(("127.0.0.1", $(PORT))) == 0; sys.exit(f"Port $(PORT) is in use by another program. Stop that program, or choose another port: make $(or $(firstword $(MAKECMDGOALS)),run) PORT={$(PORT) + 1}" if taken else 0)'

test: $(VENV)/tests.stamp $(BUILT) $(SAM)/stamp $(KSERVE)/stamp ## Run the quick tests on every core: all unit tests, and most functional ones
	$(PYTEST) --quick

test-all: test $(MINISTACK)/stamp $(SPARK)/stamp ## Run the quick tests, then the slow ones
	$(PYTEST) --slow

lint: $(VENV)/tests.stamp ## Check style, types, and which package imports which
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo --no-cache

build: $(BUILT) ## Build the encoder and the example model

image: $(BUILT) $(SAM)/stamp ## Build the container image `coldframe` (ARCHITECTURE=arm64 for another; needs Docker)
	@local/tools/image.sh $(ARCHITECTURE)

image-server: $(BUILT) $(SAM)/stamp ## Build the container image `coldframe:server`, which stays and serves HTTP (needs Docker)
	@local/tools/server-image.sh

image-gpu: $(BUILT) $(SAM)/stamp ## Build the container image `coldframe:gpu`: the server on an NVIDIA GPU (a download of 0.8 GB; needs Docker)
	@test -e $(MODELS)/encoders/minilm-l6-v2-gpu/manifest.json || $(VENV)/bin/coldframe build --gpu
	@local/tools/server-image.sh gpu
	@$(VENV)/bin/coldframe bench check gpu-image

image-report: image ## Weigh the image and measure its cold start
	@$(VENV)/bin/coldframe bench check image

sam: free-port $(BUILT) $(SAM)/stamp ## Build with the SAM CLI and serve with `sam local start-api` (needs Docker)
	@local/tools/sam.sh build
	@exec local/tools/sam.sh start-api --port $(PORT)

train: $(BUILD)/stamp $(BUILT) ## Train the example model on 20 Newsgroups
	$(VENV)/bin/coldframe train 20newsgroups
	@touch $(BUILT) # training has built it of the heads that it wrote

bench: $(VENV)/bench.stamp $(BUILT) ## Measure cold starts against the floor of this machine
	$(VENV)/bin/coldframe bench cold

bench-setup: $(VENV)/bench.stamp

bench-check: $(VENV)/bench.stamp $(BUILT) ## Fail when a cold start is over its budget
	$(VENV)/bin/coldframe bench cold --check

bench-encoder: $(BUILD)/stamp ## Build and compare variants of the encoder (four minutes; half an hour with the data set)
	PYTHONPATH=bench:local:layers/model:layers/shared/python $(BUILD)/bin/python -m coldframe_bench.studies.variants

check: $(BUILT) $(SAM)/stamp ## Check template and bundle against AWS's limits (PARAMETERS="Name=Value …")
	@$(VENV)/bin/coldframe check $(addprefix --parameter ,$(PARAMETERS))

sam-validate: $(SAM)/stamp ## Validate template.yaml with the SAM CLI
	@local/tools/sam.sh validate

docs: $(DOCS)/stamp ## Build the documentation as a site, and check its links
	@$(DOCS)/bin/python local/coldframe_local/tools/site.py

wheel: $(VENV)/local.stamp ## Build the wheel of this release in dist/, the same for every build of a commit
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(VENV)/bin/python -m pip wheel --disable-pip-version-check --quiet \
		--no-deps --no-build-isolation --wheel-dir dist .

lock: ## Write the lock files anew (needs uv)
	local/tools/lock.sh

clean: ## Remove what the other targets made; models trained on tables of your own stay
	rm -rf $(VENV) $(BUILD) $(SAM) $(MINISTACK) $(KSERVE) $(SPARK) $(DOCS) $(MODELS)/encoders/minilm-l6-v2 $(MODELS)/encoders/minilm-l6-v2-gpu $(MODELS)/topics .pytest_cache .mypy_cache .ruff_cache .hypothesis .aws-sam build

# --- environments -----------------------------------------------------------------
# The runtime never shares one with torch, nor with the SAM CLI.

define create_venv
@echo "==> $(1): $(2)"
@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 14) else f"Found Python {v[0]}.{v[1]}, expected 3.11 to 3.14. Run: make PYTHON=python3.12 $(MAKECMDGOALS)")'
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
endef

$(VENV)/local.stamp: local/requirements.txt pyproject.toml
	$(call create_venv,$(VENV),what serving and the local API need)
	@$(VENV)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@$(VENV)/bin/python $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/bench.stamp: bench/requirements.txt $(VENV)/local.stamp
	@echo "==> $(VENV): what benchmarks need"
	@$(VENV)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

$(VENV)/tests.stamp: tests/requirements.txt $(VENV)/local.stamp
	@echo "==> $(VENV): what tests need"
	@$(VENV)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

# The CPU build of torch: a tenth of the size of the default one, which comes with CUDA.
$(BUILD)/stamp: layers/model/requirements.txt pyproject.toml
	$(call create_venv,$(BUILD),torch with transformers and optimum to build the model (1-3 minutes))
	@$(BUILD)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@$(BUILD)/bin/python layers/model/coldframe_training/install_torch.py $(TORCH)
	@touch $@

$(SAM)/stamp: local/sam-requirements.txt
	$(call create_venv,$(SAM),the SAM CLI)
	@$(SAM)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

$(KSERVE)/stamp: tests/kserve-requirements.txt
	$(call create_venv,$(KSERVE),the models of KServe that tests read manifests with)
	@$(KSERVE)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

$(DOCS)/stamp: local/docs-requirements.txt
	$(call create_venv,$(DOCS),Zensical)
	@$(DOCS)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

# It pins botocore.
$(MINISTACK)/stamp: tests/ministack-requirements.txt
	$(call create_venv,$(MINISTACK),an emulator of CloudFormation that tests deploy to)
	@$(MINISTACK)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

# It pins pandas, and has what executors run. It needs Java 17, which is not installed here.
$(SPARK)/stamp: tests/spark-requirements.txt
	$(call create_venv,$(SPARK),Spark)
	@$(SPARK)/bin/python $(PIP) --no-deps --require-hashes -r $<
	@touch $@

# --- encoder and example -------------------------------------------------------------------

MODEL_SOURCES := $(wildcard layers/model/coldframe_training/build.py $(addprefix layers/model/coldframe_training/,encoder_build/*.py files/*.py publishing/*.py encoder/* heads/*)) \
	$(addprefix layers/shared/python/coldframe/,$(addprefix model/,bundle.py encoder.py first_tokens.py heads.py model.py pieces.py tokenizer.py unigram.py wordpiece.py))

$(BUILT): $(MODEL_SOURCES) | $(VENV)/local.stamp
	@$(MAKE) --no-print-directory $(BUILD)/stamp
	@$(VENV)/bin/coldframe build
	@touch $@
