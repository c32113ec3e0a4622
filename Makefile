# Everything a user or developer does. Only a C++ compiler, make, Python with venv and zlib's headers come from the system;
# the rest is installed into .venv. `make` alone lists the targets.
PYTHON ?= python3
ARCH ?= native
SANITIZE ?=
WERROR ?= OFF
PGO ?= ON
# This machine's card; without one, compute capability 9.0, so that every build with an nvcc compiles the CUDA code.
CUDA_ARCHS ?= $(shell nvidia-smi -L 2>/dev/null | grep -q GPU && echo native || echo 90)
# For what runs on a GPU: a Python with cmake and ninja beside it, numpy, and PyTorch and JAX if they are to be measured.
GPU_PYTHON ?= python3
GPU_OUT ?= build/gpu_results

.DEFAULT_GOAL := help
.PHONY: help preflight setup build run test test-thorough test-native test-ops test-emulator test-disk test-kills soak
.PHONY: test-install wheels
.PHONY: docs fuzz bench lint format lock clean
.PHONY: gpu-build test-gpu test-gpu-sanitize bench-gpu gpu-report pack-gpu
.NOTPARALLEL: # cmake, ctest and pytest share the cores out themselves

BIN := .venv/bin
DEPS := .venv/.installed
EXTRAS := tensorflow,onnx,hub,native,dev,cluster,sweep,compare,illuminate,inspect
PEERS := build/peers
CORES := $(shell nproc)
# Processes of 1 to 3 GB each; more than cores, since many tests wait for clusters, browsers, disks and clocks.
PYTESTS := $(shell echo $$(($(CORES) < 3 ? $(CORES) + 1 : 4)))
CXX_FILES = $(shell find custom_ops tests/native tests/support tests/fuzz/native experiments/benchmarks/native -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.inc')

# A sanitized build has a folder of its own and keeps its libraries there.
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

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*##/  make \1\t/p' $(MAKEFILE_LIST) | expand -t 28
	@echo 'Variables: PYTHON=$(PYTHON) ARCH=native|portable|x86-64-v4|x86-64-v3|x86-64 WERROR=ON|OFF PGO=ON|OFF'
	@echo '  CUDA_ARCHS=$(CUDA_ARCHS)|all|... GPU_PYTHON=$(GPU_PYTHON) GPU_OUT=$(GPU_OUT) GPU_RESULTS='

preflight:
	@custom_ops/cmake/preflight.sh '$(PYTHON)' '$(CXX)'

LOCK := constraints.txt
# $(call install,FOLDER OF A PYTHON,WHAT): by uv, which takes a fifth of pip's time, and by pip where uv does not work.
install = { $(BIN)/uv pip install --quiet --python $(1)/python --constraint $(LOCK) $(2) || \
  $(1)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) $(2); }

$(DEPS): pyproject.toml $(LOCK) | preflight
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'Installing the dependencies of pyproject.toml into .venv'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) uv || true
	@$(call install,$(BIN),--editable '.[$(EXTRAS)]') || \
	  { echo 'make: pip could not install the dependencies (its message is above); is there a network and a package index?' >&2; exit 1; }
	@touch $@

# Always asked, since fetch_ale.py, cmake and ninja know best what is out of date and are quick when nothing is. Where
# two builds at once damaged ninja's record of headers, ninja 1.13 compiles everything in every build from then on (its
# issue 2703); to recompact the record, which takes no time, mends it.
$(BUILD)/build.ninja: $(DEPS) FORCE
	@$(BIN)/python custom_ops/cmake/fetch_ale.py build
	@CXX='$(CXX)' $(BIN)/cmake -S custom_ops -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DNEUROEVO_PYTHON=$(CURDIR)/$(BIN)/python -DNEUROEVO_ARCH=$(ARCH) \
	  -DNEUROEVO_WERROR=$(WERROR) -DNEUROEVO_PGO=$(PGO) '-DNEUROEVO_CUDA_ARCHS=$(CUDA_ARCHS)' $(CMAKE_WHERE) >/dev/null
	@$(BIN)/ninja -C $(BUILD) -t recompact
FORCE:

setup: build  ## Make .venv, install the dependencies, compile the native libraries

build: $(BUILD)/build.ninja  ## Compile what changed in custom_ops/ into neuroevo/_lib/
	@$(CMAKE_BUILD)

run: setup  ## A first evolution: the demo
	$(BIN)/python -m experiments.demo

# The trackers that users may have beside this package, which only tests need.
TRACKERS := .venv/.trackers
$(TRACKERS): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py wandb mlflow))
	@touch $@

test: setup $(TRACKERS) test-native  ## All tests: native, then Python
	$(BIN)/python -m pytest --numprocesses=$(PYTESTS) --dist=loadfile \
	  --no-loadscope-reorder tests

test-thorough: setup $(TRACKERS)  ## The checks of make test on more machines, pages, windows and commands, after more kills
	$(BIN)/python -m pytest --thorough -m thorough --numprocesses=$(PYTESTS) --dist=loadfile tests

test-native: $(BUILD)/build.ninja  ## C++ tests alone; SANITIZE=address,undefined or SANITIZE=thread to instrument them
	@$(CMAKE_BUILD) --target native_tests benchmarks # which are compiled, so that they stay whole
	$(BIN)/ctest --test-dir $(BUILD) --parallel $(CORES) --label-exclude '^gpu$$' --output-on-failure --no-tests=error

# What a sanitizer writes before it ends the process is seen where pytest leaves the process's own output alone.
FUZZ_CALLS ?= 20000
test-ops: $(BUILD)/build.ninja  ## The tests of TensorFlow's ops and FUZZ_CALLS=20000 random calls; SANITIZE=address,undefined
	@$(CMAKE_BUILD)
	$(WITH_BUILD) $(BIN)/python -m pytest --capture=sys tests/ops
	$(WITH_BUILD) $(BIN)/python -m tests.support.fuzz_ops --calls $(FUZZ_CALLS)

# Seeds of 20,000 frames for each game and each way of looking at it.
NEUROEVO_TEST_EMULATOR ?= 5
test-emulator: setup  ## Every Atari game against the ale-py wheel, frame for frame, for hours; NEUROEVO_TEST_EMULATOR=5 seeds
	NEUROEVO_TEST_EMULATOR=$(NEUROEVO_TEST_EMULATOR) $(BIN)/python -m pytest --numprocesses=$(PYTESTS) \
	  --dist=worksteal tests/envs/test_emulator.py

# Both are in `make test` with samples.
test-disk: setup  ## Thousands of disks as power cuts may leave them, and every call to the file system that can fail
	$(BIN)/python -m tests.support.power_cuts --states 2500
	NEUROEVO_TEST_FAULTS=1 $(BIN)/python -m pytest --numprocesses=$(PYTESTS) tests/runs/test_disk_faults.py

# A sample of the kills is in `make test`; of the soak, that it finds a leak.
KILLS ?= 200
test-kills: setup  ## Kills runs of every kind, and sweeps, and compares every file with what was left alone; KILLS=200
	$(BIN)/python -m tests.support.kills --kills $(KILLS)

MINUTES ?= 10
soak: setup  ## Thousands of generations in one process: does memory, threads, descriptors, files grow? MINUTES=10
	$(BIN)/python -m tests.support.soak --minutes $(MINUTES)

# $(call wheels,FOLDER,MORE SETTINGS): builds a source archive, from it a wheel for all x86-64 processors, without the GPU
# backend, and splits that wheel by license.
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

wheels: $(WHEEL_TOOLS)  ## Wheels for every x86-64 processor and Python, of which neuroevo-ale has the GPL's part, in build/wheels
	$(call wheels,build/wheels)

# Installs wheels as a user does, with no compiler on the PATH. They are built without optimization and debug information,
# which take minutes.
DIST := build/dist
PYTHONS ?= $(PYTHON)
test-install: $(WHEEL_TOOLS)  ## That pip can build the package from a source archive, and that its wheels work where pip puts them
	$(call wheels,$(DIST),--config-settings=cmake.build-type=None --config-settings=cmake.define.NEUROEVO_PGO=OFF)
	@set -ex; for python in $(PYTHONS); do venv=$(DIST)/venv-$$(basename $$python); $$python -m venv $$venv; \
	  $(call install,$$venv/bin,$(DIST)/*.whl); du -sh $$venv; \
	  PATH= $$venv/bin/python tests/house/check_installed.py; \
	  $(call install,$$venv/bin,$$($(BIN)/python tests/house/extras.py tensorflow)); \
	  PATH= $$venv/bin/python tests/house/check_installed.py tensorflow; done

SECONDS ?= 60
TARGETS ?=
SEED ?= 0
# atheris, for which there are wheels for Python 3.11 to 3.13: without it the targets in Python are skipped.
ATHERIS := .venv/.atheris
$(ATHERIS): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py fuzz)) || \
	  echo 'make: atheris cannot be installed here (pip says why above)'
	@touch $@

fuzz: $(ATHERIS)  ## Feed every parser and the C interface with random inputs; SECONDS=60 for each, TARGETS='networks mazes', SEED=1
	@$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) --seed $(SEED) $(TARGETS)

# Into build/site. --strict fails where a link, an anchor or the list of pages in mkdocs.yml is wrong.
SITE := .venv/.docs
$(SITE): $(DEPS)
	@$(call install,$(BIN),$$($(BIN)/python tests/house/extras.py docs))
	@touch $@

docs: $(SITE)  ## Build the site of docs/ into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python tests/house/check_site.py build/site

bench: setup $(PEERS)/.installed  ## Measure speed beside peers and this machine's limits, about half an hour
	@$(CMAKE_BUILD) --target benchmarks ale_bench
	$(BIN)/python -m experiments.benchmarks --json build/bench.json

$(PEERS)/.installed: experiments/benchmarks/peers/requirements.txt | preflight
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo 'Installing the peers of experiments/benchmarks/peers/requirements.txt into $(PEERS)'
	@$(call install,$(PEERS)/bin,--requirement $<) || \
	  { echo 'make: pip could not install the peers (its message is above)' >&2; exit 1; }
	@touch $@

# A build of its own, for this machine's GPU alone and without TensorFlow, which needs neither .venv nor a network where
# build/gpu_carry (of make pack-gpu) was carried. Where there is no GPU it is for an H100 or H200.
GPU_BUILD := build/gpu
GPU_PATH = PATH="$(dir $(shell command -v $(GPU_PYTHON) 2>/dev/null))$${PATH:+:$$PATH}:$(CURDIR)/$(BIN)"
GPU_RUN = GPU_PYTHON=$(GPU_PYTHON) experiments/benchmarks/gpu/run.sh $(GPU_OUT)

gpu-build:
	@$(GPU_PATH) CXX='$(CXX)' custom_ops/cmake/gpu_configure.sh $(GPU_BUILD) -DNEUROEVO_ARCH=$(ARCH) \
	  -DNEUROEVO_WERROR=$(WERROR) -DNEUROEVO_PGO=OFF '-DNEUROEVO_CUDA_ARCHS=$(CUDA_ARCHS)' >/dev/null
	@$(GPU_PATH) cmake --build $(GPU_BUILD) --target gpu_tests gpu_benchmarks -- -k 0

test-gpu: gpu-build  ## The GPU backend's tests on this machine's GPU; needs no TensorFlow
	@$(GPU_PATH) ctest --test-dir $(GPU_BUILD) --label-regex '^gpu$$' --verbose --no-tests=error

test-gpu-sanitize:  ## The same at reduced size under compute-sanitizer: memcheck, initcheck, racecheck
	GPU_SECONDS=36000 $(GPU_RUN) build sanitize

bench-gpu:  ## Measure the GPU backend beside PyTorch and JAX and the card's bandwidth; about ten minutes
	GPU_SECONDS=36000 $(GPU_RUN) build bench pipeline peers

gpu-report:  ## Everything about a GPU in one go of under ten minutes (GPU_SECONDS): tests, figures, report
	$(GPU_RUN) build test pipeline train bench peers sanitize

pack-gpu: $(DEPS)  ## Put what a GPU machine without network needs beside this repository into build/gpu_carry
	@custom_ops/cmake/gpu_pack.sh $(BIN)/python

lint: $(DEPS)  ## Check style, types, and who may import and include whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(BIN)/python tests/house/check_includes.py

# All extras but playground, which excludes accelerated. --upgrade takes the newest versions.
UPGRADE ?= --upgrade
lock: $(DEPS)  ## Write the versions of all dependencies to constraints.txt, the newest that pyproject.toml allows; UPGRADE= keeps most
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --no-annotate --custom-compile-command 'make lock' \
	  $(addprefix --extra ,$(subst $(comma), ,$(EXTRAS),ppo,wandb,mlflow,fuzz,docs,wheels)) --output-file $(LOCK) pyproject.toml

format: $(DEPS)  ## Put everything into style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

clean:  ## Delete what was compiled; .venv and the downloaded ALE sources stay
	rm -rf build/native* $(GPU_BUILD) neuroevo/_lib
