#!/bin/sh
# gpu_configure.sh BUILD [CMAKE OPTION...]: configures a build for this machine's GPU, without TensorFlow. No network is
# needed if build/gpu_carry, created by `make pack-gpu` on another machine, was copied here. Missing dependencies of the
# Atari environments are reported, and the rest is built. Needs cmake, ninja and python3 on the PATH.
build=$1
shift
carry=build/gpu_carry
atari=ON

for tool in cmake ninja python3; do
  command -v $tool >/dev/null 2>&1 || {
    echo "make: $tool was not found on the PATH: python3 -m pip install cmake ninja, or set GPU_PYTHON=/path/to/python to a Python with both in its folder" >&2
    exit 1
  }
done
python=python3 # CMake looks for the ROMs in its ale_py
[ -x .venv/bin/python ] && python=.venv/bin/python

without_atari() {
  echo "make: building without Atari environments and rollouts: $1" >&2
  atari=OFF
}

if ! echo '#include <zlib.h>' | ${CXX:-c++} -x c++ -fsyntax-only - 2>/dev/null; then
  if [ -f $carry/zlib/zlib.h ]; then
    set -- "$@" -DZLIB_INCLUDE_DIR="$PWD/$carry/zlib" -DZLIB_LIBRARY="$PWD/$carry/zlib/libz.so.1"
  else
    without_atari "zlib.h is missing (apt-get install zlib1g-dev, or copy build/gpu_carry here)"
  fi
fi
mkdir -p build
for tarball in $carry/ale_py-*.tar.gz; do
  [ -f "$tarball" ] && [ ! -f "build/$(basename "$tarball")" ] && cp "$tarball" build/
done
if [ $atari = ON ] && ! PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=10 $python custom_ops/cmake/fetch_ale.py build; then
  without_atari "ALE's sources are missing (see the message above)"
fi
exec cmake -S custom_ops -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
  -DNEUROEVO_PYTHON="$(command -v $python)" -DNEUROEVO_TF=OFF -DNEUROEVO_ATARI=$atari "$@"
