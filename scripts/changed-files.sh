#!/usr/bin/env bash
# Prints the files of some patterns that differ from main and are still there:
# scripts/changed-files.sh [--all] PATTERN... With --all every tracked one.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} == --all ]]; then
  exec git ls-files -- "${@:2}"
fi
base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
{ git diff --name-only --diff-filter=d "$base" -- "$@"
  git ls-files --others --exclude-standard -- "$@"; } | sort -u
