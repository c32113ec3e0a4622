#!/bin/sh
# Runs a command, of Python, with libraries built with -fsanitize=address,undefined, which are in NEUROEVO_LIB_DIR.
set -eu
if ! grep -q '"sanitize": "address,undefined"' "$NEUROEVO_LIB_DIR/build_info.json"; then
  echo "tests/support/sanitized.sh: $NEUROEVO_LIB_DIR is not built with SANITIZE=address,undefined" >&2
  exit 2
fi
# Python and TensorFlow are not instrumented, so that only this loads the runtime before what it watches; and libstdc++,
# in which the runtime looks for __cxa_throw when it starts.
for library in libasan.so libubsan.so libstdc++.so.6; do
  LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$(${CXX:-g++} -print-file-name=$library)"
done
# Python's own allocator would put small objects so close together that nothing is seen of what is written past one.
export LD_PRELOAD PYTHONMALLOC=malloc
# Sizes that no machine has are among what tests ask for, and then an error is expected. Python and TensorFlow end without
# freeing what they have, so that nothing is looked for then; tests/support/fuzz_ops/leaks.py asks for it while they run.
export ASAN_OPTIONS="allocator_may_return_null=1:leak_check_at_exit=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
exec "$@"
