# Everything a user or developer does. Only a C++ compiler, make, Python with venv and zlib's headers come from the system;
# the rest is installed into .venv. `make` alone lists the targets.
PYTHON ?= python3
ARCH ?= native
SANITIZE ?=
WERROR ?= OFF
PGO ?= ON

.DEFAULT_GOAL := help
.PHONY: help preflight setup build run test test-native bench lint format clean
.NOTPARALLEL: # cmake and pytest share the cores out themselves

BIN := .venv/bin
DEPS := .venv/.installed
PEERS := build/peers
CXX_FILES = $(wildcard custom_ops/*/*.cc custom_ops/*/*.h custom_ops/*/*.cu tests/native/*.cc tests/native/*.h)

# A sanitized build has a folder of its own, keeps its libraries there, and leaves TensorFlow out.
comma := ,
ifeq ($(SANITIZE),)
BUILD := build/native
CMAKE_WHERE := -DNEUROEVO_LIB_DIR=$(CURDIR)/neuroevo/_lib
else
BUILD := build/native-$(subst $(comma),-,$(SANITIZE))
CMAKE_WHERE := -DNEUROEVO_SANITIZE=$(SANITIZE) -DNEUROEVO_TF=OFF
endif
CMAKE_BUILD = $(BIN)/cmake --build $(BUILD)

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*##/  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22
	@echo 'Variables: PYTHON=$(PYTHON) ARCH=native|x86-64-v4|x86-64-v3|x86-64 WERROR=ON|OFF PGO=ON|OFF'

preflight:
	@custom_ops/cmake/preflight.sh '$(PYTHON)' '$(CXX)'

$(DEPS): pyproject.toml | preflight
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'Installing the dependencies of pyproject.toml into .venv'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[native,dev]' || \
	  { echo 'make: pip could not install the dependencies (its message is above); is there a network and a package index?' >&2; exit 1; }
	@touch $@

# Always asked, since fetch_ale.py, cmake and ninja know best what is out of date and are quick when nothing is.
$(BUILD)/build.ninja: $(DEPS) FORCE
	@$(BIN)/python custom_ops/cmake/fetch_ale.py build
	@CXX='$(CXX)' $(BIN)/cmake -S custom_ops -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DNEUROEVO_PYTHON=$(CURDIR)/$(BIN)/python -DNEUROEVO_ARCH=$(ARCH) \
	  -DNEUROEVO_WERROR=$(WERROR) -DNEUROEVO_PGO=$(PGO) $(CMAKE_WHERE) >/dev/null
FORCE:

setup: build  ## Make .venv, install the dependencies, compile the native libraries

build: $(BUILD)/build.ninja  ## Compile what changed in custom_ops/ into neuroevo/_lib/
	@$(CMAKE_BUILD)

run: setup  ## A first evolution: the demo
	$(BIN)/python -m experiments.demo

test: setup test-native  ## All tests: native, then Python
	$(BIN)/python -m pytest tests

test-native: $(BUILD)/build.ninja  ## C++ tests alone; SANITIZE=address,undefined or SANITIZE=thread to instrument them
	@$(CMAKE_BUILD) --target native_tests
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure --no-tests=error

bench: setup $(PEERS)/.installed  ## Measure speed beside peers and this machine's limits, about half an hour
	@$(CMAKE_BUILD) --target benchmarks ale_bench
	$(BIN)/python -m experiments.bench --json build/bench.json

$(PEERS)/.installed: experiments/peers/requirements.txt | preflight
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo 'Installing the peers of experiments/peers/requirements.txt into $(PEERS)'
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $< || \
	  { echo 'make: pip could not install the peers (its message is above)' >&2; exit 1; }
	@touch $@

lint: $(DEPS)  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(DEPS)  ## Put everything into style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

clean:  ## Delete what was compiled; .venv and the downloaded ALE sources stay
	rm -rf build/native* neuroevo/_lib
