#!/usr/bin/env bash
# Configures and builds: scripts/build.sh [preset] [target...]
# Presets: default, debug, asan-ubsan, tsan. JOBS=n limits parallel jobs.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-default}
shift || true

# CMake runs again when its files change; the first configuration is ours.
if [[ ! -f build/$preset/build.ninja ]]; then
  cmake --preset "$preset" ${CMAKE_ARGS:-}
fi
exec cmake --build "build/$preset" ${JOBS:+-j "$JOBS"} ${1:+--target "$@"}
