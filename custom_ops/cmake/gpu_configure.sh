#!/bin/sh
# gpu_configure.sh BUILD [CMAKE OPTION...]: configures a build for this machine's GPU, without TensorFlow, on machines
# that need not have a network: `make pack-gpu` on one that has makes build/gpu_carry to carry there. What is missing
# for the Atari environments is named, and the rest is built without them. Needs cmake, ninja and python3 on the PATH.
build=$1
shift
carry=build/gpu_carry
atari=ON

for tool in cmake ninja python3; do
  command -v $tool >/dev/null 2>&1 || {
    echo "make: there is no $tool on the PATH: python3 -m pip install cmake ninja, or name a Python that has them beside it with GPU_PYTHON=/path/to/python" >&2
    exit 1
  }
done
python=python3 # that CMake asks for the ROMs of its ale_py
[ -x .venv/bin/python ] && python=.venv/bin/python

without_atari() {
  echo "make: no Atari environments, and no rollouts: $1" >&2
  atari=OFF
}

if ! echo '#include <zlib.h>' | ${CXX:-c++} -x c++ -fsyntax-only - 2>/dev/null; then
  if [ -f $carry/zlib/zlib.h ]; then
    set -- "$@" -DZLIB_INCLUDE_DIR="$PWD/$carry/zlib" -DZLIB_LIBRARY="$PWD/$carry/zlib/libz.so.1"
  else
    without_atari "zlib.h is missing (apt-get install zlib1g-dev, or carry build/gpu_carry)"
  fi
fi
mkdir -p build
for tarball in $carry/ale_py-*.tar.gz; do
  [ -f "$tarball" ] && [ ! -f "build/$(basename "$tarball")" ] && cp "$tarball" build/
done
if [ $atari = ON ] && ! PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=10 $python custom_ops/cmake/fetch_ale.py build; then
  without_atari "its sources are not here (the message is above)"
fi
exec cmake -S custom_ops -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
  -DNEUROEVO_PYTHON="$(command -v $python)" -DNEUROEVO_TF=OFF -DNEUROEVO_ATARI=$atari "$@"
