#!/usr/bin/env bash
# Runs clang-tidy as .clang-tidy says: scripts/tidy.sh [--all | FILE...]
# Files: those given, or the sources that differ from main, or every one. Needs
# build/default. Takes 5 to 20 s per file, most of it for reading the headers of
# MLIR and for clang-analyzer. JOBS=n limits parallel jobs.
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=$(command -v clang-tidy-22 || echo /usr/lib/llvm-22/bin/clang-tidy)
if [[ ! -x $tidy ]]; then
  echo "tidy.sh: clang-tidy 22 is missing: apt-get install clang-tidy-22" >&2
  exit 1
fi
if [[ ! -f build/default/compile_commands.json ]]; then
  echo "tidy.sh: build/default is missing: run scripts/build.sh" >&2
  exit 1
fi
if grep -q CMAKE_UNITY_BUILD:.*=ON build/default/CMakeCache.txt; then
  echo "tidy.sh: build/default compiles several files as one: run cmake -DCMAKE_UNITY_BUILD=OFF build/default" >&2
  exit 1
fi

# Tests and benchmarks are left out: macros of GoogleTest are not ours.
patterns=('dialects/*.cpp' 'lib/*.cpp' 'passes/*.cpp' 'runtime/*.cpp' 'tools/*.cpp')
if (($#)) && [[ $1 != --all ]]; then
  files=("$@")
else
  mapfile -t files < <(scripts/changed-files.sh "$@" "${patterns[@]}")
fi
((${#files[@]})) || exit 0
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$tidy" -p build/default --quiet
