# All tasks of users and developers. The system provides a C++ compiler, make, Python with venv and zlib's headers;
# everything else is installed into .venv. `make` without arguments lists the targets.
PYTHON ?= python3
ARCH ?= native
SANITIZE ?=
WERROR ?= OFF
PGO ?= ON
# This machine's GPU; without a GPU, compute capability 9.0, so that every build with nvcc compiles the CUDA code.
CUDA_ARCHS ?= $(shell nvidia-smi -L 2>/dev/null | grep -q GPU && echo native || echo 90)
# For GPU targets: a Python with cmake and ninja in its folder, numpy, and optionally PyTorch and JAX for comparisons.
GPU_PYTHON ?= python3
GPU_OUT ?= build/gpu_results$(if $(GPU_DRY),_dry)

.DEFAULT_GOAL := help
.PHONY: help preflight setup build run test test-thorough test-native test-ops test-emulator test-disk test-kills soak
.PHONY: test-install wheels
.PHONY: docs fuzz bench lint format lock clean
.PHONY: gpu-build test-gpu test-gpu-sanitize bench-gpu gpu-report pack-gpu
.NOTPARALLEL: # cmake, ctest and pytest run in parallel themselves

BIN := .venv/bin
DEPS := .venv/.installed
EXTRAS := tensorflow,onnx,hub,native,dev,cluster,sweep,compare,illuminate,inspect
PEERS := build/peers
CORES := $(shell nproc)
# pytest processes, 1 to 3 GB each; on few cores more processes than cores, since many tests wait for I/O and timers.
PYTESTS := $(shell echo $$(($(CORES) < 3 ? $(CORES) + 1 : 4)))
CXX_FILES = $(shell find custom_ops tests/native tests/support tests/fuzz/native experiments/benchmarks/native -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.inc')

# A sanitized build has a separate folder, which also contains its libraries.
comma := ,
ifeq ($(SANITIZE),)
BUILD := build/native
CMAKE_WHERE := -DNEUROEVO_LIB_DIR=$(CURDIR)/neuroevo/_lib
WITH_BUILD :=
else
BUILD := build/native-$(subst $(comma),-,$(SANITIZE))
CMAKE_WHERE := -DNEUROEVO_SANITIZE=$(SANITIZE) -DNEUROEVO_TF=ON
WITH_BUILD := NEUROEVO_LIB_DIR=$(CURDIR)/$(BUILD)/lib CXX='$(CXX)' tests/support/sanitized.sh
endif
CMAKE_BUILD = $(BIN)/cmake --build $(BUILD)

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*##/  make \1\t/p' $(MAKEFILE_LIST) | expand -t 28
	@echo 'Variables: PYTHON=$(PYTHON) ARCH=native|portable|x86-64-v4|x86-64-v3|x86-64 WERROR=ON|OFF PGO=ON|OFF'
	@echo '  CUDA_ARCHS=$(CUDA_ARCHS)|all|... GPU_PYTHON=$(GPU_PYTHON) GPU_OUT=$(GPU_OUT) GPU_RESULTS= GPU_DRY='

preflight:
	@custom_ops/cmake/preflight.sh '$(PYTHON)' '$(CXX)'

LOCK := constraints.txt
LOCKED = --constraint $(LOCK)
# $(call install,FOLDER OF A PYTHON,PACKAGES): installs with uv, which is five times as fast as pip, or pip if uv fails.
install = { $(BIN)/uv pip install --quiet --python $(1)/python $(LOCKED) $(2) || \
  $(1)/python -m pip install --quiet --disable-pip-version-check $(LOCKED) $(2); }

$(DEPS): pyproject.toml $(LOCK) | preflight
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'Installing the dependencies of pyproject.toml into .venv'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) uv || true
	@$(call install,$(BIN),--editable '.[$(EXTRAS)]') || \
	  { echo 'make: pip could not install the dependencies (its message is above); is there a network and a package index?' >&2; exit 1; }
	@touch $@

# Always run: fetch_ale.py, cmake and ninja detect what is out of date, and are fast if nothing is. After two concurrent
# builds have damaged ninja's record of headers, ninja 1.13 recompiles everything in every later build (ninja issue
# 2703). Recompacting the record repairs it and takes no time.
$(BUILD)/build.ninja: $(DEPS) FORCE
	@$(BIN)/python custom_ops/cmake/fetch_ale.py build
	@CXX='$(CXX)' $(BIN)/cmake -S custom_ops -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DNEUROEVO_PYTHON=$(CURDIR)/$(BIN)/python -DNEUROEVO_ARCH=$(ARCH) \
	  -DNEUROEVO_WERROR=$(WERROR) -DNEUROEVO_PGO=$(PGO) '-DNEUROEVO_CUDA_ARCHS=$(CUDA_ARCHS)' $(CMAKE_WHERE) >/dev/null
	@$(BIN)/ninja -C $(BUILD) -t recompact
FORCE:

setup: build  ## Create .venv, install the dependencies, compile the native libraries

build: $(BUILD)/build.ninja  ## Compile changes in custom_ops/ into neuroevo/_lib/
	@$(CMAKE_BUILD)

run: setup  ## Run the demo, a first evolution
	$(BIN)/python -m experiments.demo

# Optional experiment trackers, which only tests need.
TRACKERS := .venv/.trackers
$(TRACKERS): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py wandb mlflow))
	@touch $@

test: setup $(TRACKERS) test-native  ## Run all tests: native, then Python
	$(BIN)/python -m pytest --numprocesses=$(PYTESTS) --dist=loadfile \
	  --no-loadscope-reorder tests

test-thorough: setup $(TRACKERS)  ## Run the thorough variants of tests: more machines, pages, windows, commands and kills
	$(BIN)/python -m pytest --thorough -m thorough --numprocesses=$(PYTESTS) --dist=loadfile tests

test-native: $(BUILD)/build.ninja  ## Run only the C++ tests; SANITIZE=address,undefined or SANITIZE=thread instruments them
	@$(CMAKE_BUILD) --target native_tests benchmarks # benchmarks are compiled to check that they still build
	$(BIN)/ctest --test-dir $(BUILD) --parallel $(CORES) --label-exclude '^gpu$$' --output-on-failure --no-tests=error

# --capture=sys: the report that a sanitizer writes before it ends the process is lost if pytest captures descriptors.
FUZZ_CALLS ?= 20000
test-ops: $(BUILD)/build.ninja  ## Test the TensorFlow ops, with FUZZ_CALLS=20000 random calls; SANITIZE=address,undefined
	@$(CMAKE_BUILD)
	$(WITH_BUILD) $(BIN)/python -m pytest --capture=sys tests/ops
	$(WITH_BUILD) $(BIN)/python -m tests.support.fuzz_ops --calls $(FUZZ_CALLS)

# Number of seeds, with 20,000 frames each, for every game and every observation setting.
NEUROEVO_TEST_EMULATOR ?= 5
test-emulator: setup  ## Compare all Atari games with ale-py frame by frame, for hours; NEUROEVO_TEST_EMULATOR=5 seeds
	NEUROEVO_TEST_EMULATOR=$(NEUROEVO_TEST_EMULATOR) $(BIN)/python -m pytest --numprocesses=$(PYTESTS) \
	  --dist=worksteal tests/envs/test_emulator.py

# `make test` runs a sample of both.
test-disk: setup  ## Test thousands of disk states after power failures, and failures of every file system call
	$(BIN)/python -m tests.support.power_cuts --states 2500
	NEUROEVO_TEST_FAULTS=1 $(BIN)/python -m pytest --numprocesses=$(PYTESTS) tests/runs/test_disk_faults.py

# `make test` runs a sample of the kills, and checks that the soak test detects a leak.
KILLS ?= 200
test-kills: setup  ## Kill and resume runs and sweeps, and compare every file with uninterrupted runs; KILLS=200
	$(BIN)/python -m tests.support.kills --kills $(KILLS)

MINUTES ?= 10
soak: setup  ## Run thousands of generations in one process and check for resource leaks; MINUTES=10
	$(BIN)/python -m tests.support.soak --minutes $(MINUTES)

# $(call wheels,FOLDER,MORE SETTINGS): builds a source archive and from it a wheel for all x86-64 processors, without
# the GPU backend, and splits this wheel by license.
define wheels
@rm -rf $(1)
@$(BIN)/python custom_ops/cmake/fetch_ale.py build
$(BIN)/python -m build --sdist --no-isolation --outdir $(1) .
PATH='$(CURDIR)/$(BIN):$(PATH)' $(BIN)/python -m pip --quiet --disable-pip-version-check wheel --no-deps \
  --no-build-isolation --wheel-dir $(1)/built --config-settings=cmake.define.NEUROEVO_ARCH=portable \
  --config-settings=cmake.define.NEUROEVO_CUDA=OFF $(2) $(1)/neuroevo-*.tar.gz
PATH='$(CURDIR)/$(BIN):$(PATH)' $(BIN)/python custom_ops/cmake/wheels.py $(1)/built/*.whl $(1)
endef

WHEEL_TOOLS := .venv/.wheels
$(WHEEL_TOOLS): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py wheels))
	@touch $@

wheels: $(WHEEL_TOOLS)  ## Build wheels for all x86-64 processors into build/wheels; neuroevo-ale is the GPL part
	$(call wheels,build/wheels)

# Installs wheels like a user, without a compiler on the PATH. The wheels are built without optimization and debug
# information, which would take minutes.
DIST := build/dist
PYTHONS ?= $(PYTHON)
test-install: $(WHEEL_TOOLS)  ## Test that pip can build a source archive and that the installed wheels work
	$(call wheels,$(DIST),--config-settings=cmake.build-type=None --config-settings=cmake.define.NEUROEVO_PGO=OFF)
	@set -ex; for python in $(PYTHONS); do venv=$(DIST)/venv-$$(basename $$python); $$python -m venv $$venv; \
	  $(call install,$$venv/bin,$(DIST)/*.whl); du -sh $$venv; \
	  PATH= $$venv/bin/python tests/house/check_installed.py; \
	  $(call install,$$venv/bin,$$($(BIN)/python tests/house/extras.py tensorflow)); \
	  PATH= $$venv/bin/python tests/house/check_installed.py tensorflow; done

SECONDS ?= 60
TARGETS ?=
SEED ?= 0
# atheris has wheels for Python 3.11 to 3.13; without it, the Python targets are skipped.
ATHERIS := .venv/.atheris
$(ATHERIS): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py fuzz)) || \
	  echo 'make: atheris could not be installed (the message of pip is above)'
	@touch $@

fuzz: $(ATHERIS)  ## Fuzz every parser and the C interface; SECONDS=60 per target, TARGETS='networks mazes', SEED=1
	@$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) --seed $(SEED) $(TARGETS)

# --strict fails if a link, an anchor or the list of pages in mkdocs.yml is wrong.
SITE := .venv/.docs
$(SITE): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py docs))
	@touch $@

docs: $(SITE)  ## Build the site of docs/ into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python tests/house/check_site.py build/site

bench: setup $(PEERS)/.installed  ## Compare speed with other packages and this machine's limits, about half an hour
	@$(CMAKE_BUILD) --target benchmarks ale_bench
	$(BIN)/python -m experiments.benchmarks --json build/bench.json

$(PEERS)/.installed: LOCKED := # they have versions of their own
$(PEERS)/.installed: experiments/benchmarks/peers/requirements.txt | preflight
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo 'Installing the peers of experiments/benchmarks/peers/requirements.txt into $(PEERS)'
	@$(call install,$(PEERS)/bin,--requirement $<) || \
	  { echo 'make: pip could not install the peers (its message is above)' >&2; exit 1; }
	@touch $@

# A separate build, only for this machine's GPU and without TensorFlow. It needs neither .venv nor, if build/gpu_carry
# (see make pack-gpu) was copied here, a network. Without a GPU, it targets an H100 or H200.
GPU_BUILD := build/gpu
GPU_PATH = PATH="$(dir $(shell command -v $(GPU_PYTHON) 2>/dev/null))$${PATH:+:$$PATH}:$(CURDIR)/$(BIN)"
GPU_RUN = GPU_PYTHON=$(GPU_PYTHON) experiments/benchmarks/gpu/run.sh $(GPU_OUT)

gpu-build:
	@$(GPU_PATH) CXX='$(CXX)' custom_ops/cmake/gpu_configure.sh $(GPU_BUILD) -DNEUROEVO_ARCH=$(ARCH) \
	  -DNEUROEVO_WERROR=$(WERROR) -DNEUROEVO_PGO=OFF '-DNEUROEVO_CUDA_ARCHS=$(CUDA_ARCHS)' >/dev/null
	@$(GPU_PATH) cmake --build $(GPU_BUILD) --target gpu_tests gpu_benchmarks -- -k 0

test-gpu: gpu-build  ## Test the GPU backend on this machine's GPU; needs no TensorFlow
	@$(GPU_PATH) ctest --test-dir $(GPU_BUILD) --label-regex '^gpu$$' --verbose --no-tests=error

test-gpu-sanitize: gpu-build  ## Run the GPU tests at reduced size under compute-sanitizer: memcheck, initcheck, racecheck
	GPU_SECONDS=36000 $(GPU_RUN) sanitize

bench-gpu:  ## Compare the GPU backend with PyTorch, JAX and the GPU's bandwidth, about ten minutes
	GPU_SECONDS=36000 $(GPU_RUN) build bench pipeline peers

gpu-report:  ## Run GPU tests and benchmarks and write a report, in less than ten minutes; GPU_DRY=1: no GPU
	$(GPU_RUN) build test pipeline train bench sanitize peers

pack-gpu: $(DEPS)  ## Collect the files that a GPU machine without network needs in build/gpu_carry
	@custom_ops/cmake/gpu_pack.sh $(BIN)/python

lint: $(DEPS)  ## Check style, types, and the allowed imports and includes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(BIN)/python tests/house/check_includes.py
	$(BIN)/python tests/house/check_words.py

# All extras except playground, which conflicts with accelerated. --upgrade selects the newest versions.
UPGRADE ?= --upgrade
lock: $(DEPS)  ## Write the newest versions that pyproject.toml allows to constraints.txt; UPGRADE= keeps most versions
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --no-annotate --custom-compile-command 'make lock' \
	  $(addprefix --extra ,$(subst $(comma), ,$(EXTRAS),ppo,wandb,mlflow,fuzz,docs,wheels)) --output-file $(LOCK) pyproject.toml

format: $(DEPS)  ## Format all code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

clean:  ## Delete compiled files; keeps .venv and the downloaded ALE sources
	rm -rf build/native* $(GPU_BUILD) neuroevo/_lib
