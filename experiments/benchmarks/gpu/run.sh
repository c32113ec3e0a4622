#!/usr/bin/env bash
# Builds, tests and benchmarks on a machine with a GPU, in independent steps, each with a time limit, in the order
# given, within a total time: for a machine that is available only for minutes.
#
#   experiments/benchmarks/gpu/run.sh OUT STEP...     steps: build test pipeline train bench peers sanitize
#
# OUT gets log.txt with the output of all steps, a JSON file of figures from each step that measures (files of earlier
# runs are replaced), and at the end report.md and scaling.png. Variables: GPU_PYTHON, a Python with cmake and ninja in
# the same folder, numpy, and PyTorch and JAX if peers are measured (python3); GPU_SECONDS,
# the total time (570); GPU_RESULTS, a name: the report becomes experiments/results/NAME.md, too. Exits with 1 where a
# step failed, was cut off or could not start.
set -u
cd "$(dirname "$0")/../../.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
: "${GPU_PYTHON:=python3}" "${GPU_SECONDS:=570}"
PATH=$(dirname "$(command -v "$GPU_PYTHON")"):/usr/local/cuda/bin:$PATH:$PWD/.venv/bin
export PATH GPU_PYTHON PYTHONUNBUFFERED=1
build=build/gpu
reserve=15 # seconds for the report
failed=0
began_at=$(date +%s)

roms=$PWD/build/gpu_carry/roms
if [ -x .venv/bin/python ]; then
  roms=$(.venv/bin/python -c "from importlib.util import find_spec as f; print(f('ale_py').submodule_search_locations[0] + '/roms')")
fi

# limited SECONDS COMMAND...: runs a command with a time limit, also within the total time; kills its process group.
limited() {
  local seconds=$1 left=$((GPU_SECONDS - reserve - ($(date +%s) - began_at)))
  shift
  [ "$left" -lt 5 ] && { echo "no time is left"; return 124; }
  timeout -k 5 "$((seconds < left ? seconds : left))" "$@"
}

build() {
  limited 300 make --no-print-directory gpu-build
}

tests() {
  local test status=0
  for test in "$build"/tests/gpu_*_test; do
    [ -x "$test" ] || { echo "no tests are built"; return 1; }
    echo "-- ${test##*/}"
    NEUROEVO_ROMS=$roms NEUROEVO_GPU_TESTS=needed limited 100 "$test" || status=1
  done
  return $status
}

bench() {
  rm -f "$out/bench.jsonl"
  limited 150 "$build/bench/gpu_bench" --json "$out/bench.jsonl"
}

# The emulator of `make build`, which is optimized by a profile, where that was built or carried.
libraries=$PWD/$build/lib
[ -f neuroevo/_lib/libneuroevo_cuda.so ] && libraries=$PWD/neuroevo/_lib

pipeline() {
  local cores=() n
  for n in 1 4 16 64; do [ "$n" -lt "$(nproc)" ] && cores+=("$n"); done
  cores+=("$(nproc)")
  rm -f "$out/pipeline.jsonl"
  LD_LIBRARY_PATH=$libraries limited 240 "$build/bench/gpu_pipeline" "$roms/frostbite.bin" \
    --threads "$(IFS=,; echo "${cores[*]}")" --layouts 3x64,16x8,32x8 --seconds 1 --rounds 3 --json "$out/pipeline.jsonl"
}

train() {
  if ls build/gpu_carry/wheels/*.whl >/dev/null 2>&1; then
    "$GPU_PYTHON" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$build/site" \
      build/gpu_carry/wheels/*.whl || return 1
  fi
  rm -f "$out/train.jsonl"
  NEUROEVO_LIB_DIR=$libraries PYTHONPATH=$build/site limited 150 "$GPU_PYTHON" \
    experiments/benchmarks/gpu/generations.py "$build/runs" --json "$out/train.jsonl"
}

peers() {
  local way status=0
  rm -f "$out/peers.jsonl"
  for way in torch_unfold jax_vmap torch_vmap jax_vmap_patches torch_unfold_compiled; do # a process each: one may fail
    limited 75 "$GPU_PYTHON" experiments/benchmarks/peers/gpu_population.py --ways $way --seconds 1 --json "$out/peers.jsonl" || status=1
  done
  return $status
}

# Runs one test under one tool, with a separate log.
sanitize_one() {
  local log status
  log=$(mktemp)
  NEUROEVO_ROMS=$roms NEUROEVO_GPU_TESTS=small limited 120 compute-sanitizer --tool "$1" --error-exitcode 9 "$2" >"$log" 2>&1
  status=$?
  echo "-- $1 ${2##*/}: exit status $status"
  tail -n 20 "$log"
  rm -f "$log"
  return $status
}

sanitize() {
  local reason tool test
  if reason=$(NEUROEVO_GPU_TESTS=small "$build/tests/gpu_rows_test" | grep -m1 SKIPPED); then
    echo "$reason"
    return 0
  fi
  command -v compute-sanitizer >/dev/null || { echo "there is no compute-sanitizer"; return 1; }
  export -f limited sanitize_one
  export roms GPU_SECONDS began_at reserve
  for tool in memcheck initcheck racecheck; do
    for test in "$build"/tests/gpu_*_test; do printf '%s\0%s\0' $tool "$test"; done
  done | xargs -0 -n 2 -P 6 bash -c 'sanitize_one "$@"' sanitize
}

{
  date
  git describe --always --dirty 2>/dev/null
  nvidia-smi 2>/dev/null
  grep -m1 "model name" /proc/cpuinfo
  echo "$(nproc) cores"
} >>"$out/log.txt"
for step in "$@"; do
  case $step in
  build | bench | pipeline | train | peers | sanitize) function=$step ;;
  test) function=tests ;;
  *) echo "step '$step' is unknown, expected build, test, pipeline, train, bench, peers or sanitize" >&2; exit 2 ;;
  esac
  began=$SECONDS
  printf '\n== %s\n' "$step" | tee -a "$out/log.txt"
  $function 2>&1 | tee -a "$out/log.txt"
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || failed=1
  echo "{\"figure\": \"step\", \"step\": \"$step\", \"status\": $status, \"seconds\": $((SECONDS - began))}" |
    tee -a "$out/steps.jsonl"
done
"$GPU_PYTHON" experiments/benchmarks/gpu/report.py "$out" ${GPU_RESULTS:+--results "$GPU_RESULTS"} || failed=1
exit $failed
