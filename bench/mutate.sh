#!/usr/bin/env bash
# Changes programs at random, one change each, and finds out what becomes of
# them: bench/mutate.sh [COUNT [SEED [FOLDER [BUILD]]]]. 20,000 take hours; the
# suite has 500. Prints a line for every thousand and, at the end, the table of
# docs/proofs.md; ends with 1 where the proof has a hole. FOLDER keeps what was
# found so far: the same command goes on from there.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${4:-build/default}
folder=${3:-$build/mutants}
python3 test/mutate/run_mutants.py "$build/bin" "$folder" --count 1000 \
  --batches $(((${1:-20000} + 999) / 1000)) --seed "${2:-1}" --jobs "${JOBS:-$(nproc)}" --table
