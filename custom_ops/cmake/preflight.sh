#!/bin/sh
# preflight.sh PYTHON CXX: reports missing dependencies, one line each with the command that installs it.
python=$1
cxx=$2
missing=0

lacks() {
  echo "make: $1" >&2
  missing=1
}

if ! command -v "$python" >/dev/null 2>&1; then
  lacks "'$python' was not found: apt-get install -y python3 python3-venv (or: make setup PYTHON=/path/to/python3)"
else
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  case $version in
  3.11 | 3.12 | 3.13)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
      lacks "'$python' ($version) cannot make virtual environments: apt-get install -y python$version-venv"
    ;;
  *) lacks "'$python' is Python $version, expected 3.11 to 3.13: apt-get install -y python3.12-venv && make setup PYTHON=python3.12" ;;
  esac
fi

if ! echo 'int main() {}' | $cxx -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
  lacks "the C++17 compiler '$cxx' does not run: apt-get install -y g++"
elif ! echo '#include <zlib.h>' | $cxx -x c++ -fsyntax-only - 2>/dev/null; then
  lacks "zlib.h is missing: apt-get install -y zlib1g-dev"
fi

exit $missing
