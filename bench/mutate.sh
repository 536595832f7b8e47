#!/usr/bin/env bash
# Changes programs at random, one change each, and finds out what becomes of
# them: bench/mutate.sh [COUNT [SEED [BUILD]]]. 20,000 take hours; the suite has
# 500. Prints the table of docs/ir.md, and ends with 1 where the proof has a hole.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${3:-build/default}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 test/mutate/run_mutants.py "$build/bin" "$folder" --count "${1:-20000}" \
  --seed "${2:-1}" --jobs "$(nproc)" --table
