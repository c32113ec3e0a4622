#!/bin/sh
# gpu_pack.sh PYTHON [VERSION]: collects in build/gpu_carry the files that a machine without network needs for
# `make gpu-report` in addition to this repository: the emulator's sources, ROMs, zlib's headers and library, and wheels
# of the packages that `neuroevo train` imports, for that version of Python (default: 3.12).
set -e
python=$1 version=${2:-3.12}
carry=build/gpu_carry
games="frostbite breakout pong seaquest asteroids gravitar kangaroo montezuma_revenge ms_pacman space_invaders"

"$python" custom_ops/cmake/fetch_ale.py build
rm -rf $carry
mkdir -p $carry/roms $carry/zlib
cp build/ale_py-*.tar.gz $carry/ || {
  echo "make: build/ contains the emulator's sources but not their tarball; delete build/ale_py-* and run this again" >&2
  exit 1
}
roms=$("$python" -c "from importlib.util import find_spec as f; print(f('ale_py').submodule_search_locations[0] + '/roms')")
for game in $games; do cp "$roms/$game.bin" $carry/roms/; done
wheels=$("$python" - <<END
from neuroevo.system.reading import tomllib
wanted = "ale-py gymnasium numpy platformdirs pydantic rich tensorboardX tomli-w typer".split()
for each in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]:
    if each.split("=")[0] in wanted: print(each)
END
)
"$python" -m pip download -q --only-binary=:all: --python-version "$version" --implementation cp --platform any \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
  --platform manylinux2014_x86_64 -d $carry/wheels $wheels
# zlib of this machine's compiler; the other machine only uses it if it has none.
include=$(echo '#include <zlib.h>' | ${CXX:-c++} -x c++ -M - | tr ' ' '\n' | grep '/z\(lib\|conf\)\.h$')
cp $include $carry/zlib/
cp -L "$(${CXX:-c++} -print-file-name=libz.so)" $carry/zlib/libz.so.1
git describe --always --dirty >$carry/commit 2>/dev/null || true # for reports, since the other machine may have no .git
size=$(du -sm $carry | cut -f 1) limit=60
[ "$size" -le $limit ] || {
  echo "make: $carry is too large to be copied to a GPU machine: $size MB, expected at most $limit" >&2
  exit 1
}
du -sh $carry
