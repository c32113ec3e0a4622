#!/usr/bin/env bash
# Builds, tests and benchmarks on a machine with a GPU, in independent steps, each with a time limit, in the order
# given, within a total time: for a machine that is available only for minutes.
#
#   experiments/benchmarks/gpu/run.sh OUT STEP...     steps: build test pipeline train bench sanitize peers
#
# OUT gets log.txt with the output of all steps, a JSON file of figures from each step that measures, after every step
# report.md and gpu_bench.json, and at the end scaling.png. If the first step is build, a new report begins, without the
# figures of earlier runs; other steps, such as a second call's, are added to the report. Variables: GPU_PYTHON, a Python
# with cmake and ninja in the same folder, numpy, and PyTorch and JAX if peers are measured (python3); GPU_SECONDS, the
# total time (570); GPU_RESULTS, a name: the report becomes experiments/results/NAME.md, too; GPU_DRY, if not empty: try
# the steps without a GPU, with the emulated device of build/native and small sizes. Exits with 1 where a step failed,
# was cut off or could not start.
set -u
cd "$(dirname "$0")/../../.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
: "${GPU_PYTHON:=python3}" "${GPU_SECONDS:=570}"
PATH=$(dirname "$(command -v "$GPU_PYTHON")"):/usr/local/cuda/bin:$PATH:$PWD/.venv/bin
export PATH GPU_PYTHON PYTHONUNBUFFERED=1
build=build/gpu runs=build/gpu/runs emulated=
if [ -n "${GPU_DRY:=}" ]; then
  build=build/native runs=$out/runs emulated=_emulated
  [ -x .venv/bin/python ] && GPU_PYTHON=$PWD/.venv/bin/python # that of build/native
fi
reserve=15 # seconds for the report
failed=0
began_at=$(date +%s)

roms=$PWD/build/gpu_carry/roms
if [ -x .venv/bin/python ]; then
  roms=$(.venv/bin/python -c "from importlib.util import find_spec as f; \
print(f('ale_py').submodule_search_locations[0] + '/roms')")
fi

# limited SECONDS COMMAND...: runs a command with a time limit, also within the total time; kills its process group.
limited() {
  local seconds=$1 left=$((GPU_SECONDS - reserve - ($(date +%s) - began_at)))
  shift
  [ "$left" -lt 5 ] && { echo "no time is left"; return 124; }
  timeout -k 5 "$((seconds < left ? seconds : left))" "$@"
}

# worst STATUS NEW: the status of a step of which a part ended with NEW: 1 if any part failed, else 124 if one was cut off.
worst() {
  case $1,$2 in
  0,124 | 124,124 | 0,137 | 124,137) echo 124 ;;
  *) echo 1 ;;
  esac
}

# skipped REASON: ends a step that cannot run here. The last line of its output becomes a row of the report.
skipped() {
  echo "skipped: $1"
  return 77
}

# unbuilt TARGET FILE...: prints why a dry run cannot use these programs; fails if it can. It does not build them, which
# takes minutes, and refuses those of an earlier build, which may crash with other libraries.
unbuilt() {
  local target=$1 core=neuroevo/_lib/libneuroevo_core.so file
  shift
  [ -n "$GPU_DRY" ] || return 1
  for file in "$@"; do
    if [ ! -x "$file" ]; then
      echo "$file is not built: .venv/bin/cmake --build $build --target $target"
    elif [ "$file" -ot $core ]; then
      echo "$file is older than $core: .venv/bin/cmake --build $build --target $target"
    else
      continue
    fi
    return 0
  done
  return 1
}

build() {
  [ -z "$GPU_DRY" ] || { skipped "a dry run uses the programs of $build as they are"; return; }
  limited 300 make --no-print-directory gpu-build
}

tests() {
  local test reason began status=0
  reason=$(unbuilt native_tests "$build"/tests/gpu_*_test$emulated) && { skipped "$reason"; return; }
  for test in "$build"/tests/gpu_*_test$emulated; do
    [ -x "$test" ] || { echo "no tests are built"; return 1; }
    echo "-- ${test##*/}"
    began=$SECONDS
    NEUROEVO_ROMS=$roms NEUROEVO_GPU_TESTS=needed limited 100 "$test" || status=$(worst $status $?)
    echo "$((SECONDS - began)) s"
  done
  return $status
}

bench() {
  local reason program=$build/bench/gpu_bench$emulated
  reason=$(unbuilt gpu_benchmarks_emulated "$program") && { skipped "$reason"; return; }
  rm -f "$out/bench.jsonl"
  limited 150 "$program" ${GPU_DRY:+--small --seconds 0.02} --json "$out/bench.jsonl"
}

# The emulator of `make build`, which is optimized by a profile, where that was built or carried.
libraries=$PWD/$build/lib
[ -n "$GPU_DRY" ] || [ -f neuroevo/_lib/libneuroevo_cuda.so ] && libraries=$PWD/neuroevo/_lib

pipeline() {
  local cores=() n reason program=$build/bench/gpu_pipeline$emulated
  local sizes=(--layouts 3x64,1x64,2x64,16x8,32x8 --seconds 1 --rounds 3)
  reason=$(unbuilt gpu_benchmarks_emulated "$program") && { skipped "$reason"; return; }
  [ -n "$GPU_DRY" ] && sizes=(--layouts 1x2,2x2 --seconds 0.1 --rounds 1 --network
    "input uint8 84 84 4; conv 8 8 8 8 same 1.0; bias; relu; dense 18 0.1; bias")
  for n in 1 4 16 64; do [ "$n" -lt "$(nproc)" ] && cores+=("$n"); done
  cores+=("$(nproc)")
  rm -f "$out/pipeline.jsonl"
  LD_LIBRARY_PATH=$libraries limited 240 "$program" "$roms/frostbite.bin" \
    --threads "$(IFS=,; echo "${cores[*]}")" "${sizes[@]}" --json "$out/pipeline.jsonl"
}

train() {
  local sizes=()
  if [ -n "$GPU_DRY" ]; then
    [ -x .venv/bin/python ] || { skipped "there is no .venv: make setup"; return; }
    sizes=(--devices cpu --population 20 --steps 20) # `neuroevo train` does not know the emulated device
  elif ls build/gpu_carry/wheels/*.whl >/dev/null 2>&1; then
    "$GPU_PYTHON" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$build/site" \
      build/gpu_carry/wheels/*.whl || return 1
  fi
  rm -f "$out/train.jsonl"
  NEUROEVO_LIB_DIR=$libraries PYTHONPATH=$build/site limited 150 "$GPU_PYTHON" \
    experiments/benchmarks/gpu/generations.py "$runs" "${sizes[@]}" --json "$out/train.jsonl"
}

peers() {
  local way status=0
  [ -z "$GPU_DRY" ] || { skipped "PyTorch and JAX have no emulated device"; return; }
  rm -f "$out/peers.jsonl"
  for way in torch_unfold jax_vmap torch_vmap jax_vmap_patches torch_unfold_compiled; do # a process each: one may fail
    limited 75 "$GPU_PYTHON" experiments/benchmarks/peers/gpu_population.py --ways $way --seconds 1 \
      --json "$out/peers.jsonl" || status=$(worst $status $?)
  done
  return $status
}

# Runs one test under one tool, with a separate log, and adds its exit status to the file $statuses.
sanitize_one() {
  local log status
  log=$(mktemp)
  NEUROEVO_ROMS=$roms NEUROEVO_GPU_TESTS=small limited 120 compute-sanitizer --tool "$1" --error-exitcode 9 "$2" \
    >"$log" 2>&1
  status=$?
  echo $status >>"$statuses"
  echo "-- $1 ${2##*/}: exit status $status"
  tail -n 20 "$log"
  rm -f "$log"
}

sanitize() {
  local reason tool test end each status=0
  [ -z "$GPU_DRY" ] || { skipped "compute-sanitizer needs a GPU"; return; }
  if reason=$(NEUROEVO_GPU_TESTS=small limited 60 "$build/tests/gpu_rows_test" | grep -m1 SKIPPED); then
    skipped "$reason"
    return
  fi
  command -v compute-sanitizer >/dev/null || { echo "there is no compute-sanitizer"; return 1; }
  # The tools are slow: without this limit, the step would leave no time for the next. `make test-gpu-sanitize` has hours.
  end=$(($(date +%s) - began_at + 60 + reserve))
  [ "$GPU_SECONDS" -le 600 ] && [ "$end" -lt "$GPU_SECONDS" ] && GPU_SECONDS=$end
  statuses=$(mktemp)
  export -f limited sanitize_one
  export roms GPU_SECONDS began_at reserve statuses
  for tool in memcheck initcheck racecheck; do
    for test in "$build"/tests/gpu_*_test; do printf '%s\0%s\0' $tool "$test"; done
  done | xargs -0 -n 2 -P 6 bash -c 'sanitize_one "$@"' sanitize
  while read -r each; do [ "$each" = 0 ] || status=$(worst $status "$each"); done <"$statuses"
  echo "$(grep -cx 0 "$statuses") of $(wc -l <"$statuses") ran to the end without errors"
  rm -f "$statuses"
  return $status
}

report() {
  "$GPU_PYTHON" experiments/benchmarks/gpu/report.py "$out" "$@" || failed=1
}

[ "${1:-}" = build ] && rm -f "$out"/*.jsonl "$out"/report.md "$out"/gpu_bench.json "$out"/scaling.png

{
  date
  git describe --always --dirty 2>/dev/null
  nvidia-smi 2>/dev/null
  grep -m1 "model name" /proc/cpuinfo
  echo "$(nproc) cores"
} >>"$out/log.txt"
for step in "$@"; do
  case $step in
  build | bench | pipeline | train | sanitize | peers) function=$step ;;
  test) function=tests ;;
  *) echo "step '$step' is unknown, expected build, test, pipeline, train, bench, sanitize or peers" >&2; exit 2 ;;
  esac
  began=$SECONDS
  printf '\n== %s\n' "$step" | tee -a "$out/log.txt"
  $function 2>&1 | tee -a "$out/log.txt"
  status=${PIPESTATUS[0]}
  more=
  case $status in
  0) ;;
  77) more=", \"reason\": \"$(tail -n 1 "$out/log.txt" | sed 's/^skipped: //' | tr -d '"\\')\"" ;;
  *) failed=1 ;;
  esac
  [ -n "$GPU_DRY" ] && more="$more, \"dry\": true"
  echo "{\"figure\": \"step\", \"step\": \"$step\", \"status\": $status, \"seconds\": $((SECONDS - began))$more}" |
    tee -a "$out/steps.jsonl"
  report --quiet # a machine that is taken away leaves the report of the steps until then
done
report ${GPU_RESULTS:+--results "$GPU_RESULTS"}
exit $failed
