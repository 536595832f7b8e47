#!/usr/bin/env bash
# Writes what is generated of the documentation: scripts/generate-docs.sh [PRESET]
#
# The reference of dialects and passes goes to build/PRESET/docs/reference; the
# table of operators into docs/operators.md, below its introduction, that of rules
# into docs/rules.md, and that of what methods cost into docs/methods.md. Tests
# compare the latter three with what the compiler says.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-default}
build=build/$preset

[[ -f $build/build.ninja ]] || cmake --preset "$preset"
ninja -C "$build" penstock-docs penstock-translate penstockc

table=docs/operators.md
introduction=$(sed '/^<!-- generated/q' "$table")
{
  echo "$introduction"
  "$build/bin/penstock-translate" --list-operators
} >"$table.new"
mv "$table.new" "$table"
scripts/check-reference.py "$build/docs/reference" --write
scripts/methods-table.py "$build/bin/penstockc" --write docs/methods.md
scripts/options-table.py "$build/bin/penstockc" --write docs/usage.md
echo "wrote $build/docs/reference/*.md, $table, docs/methods.md, docs/rules.md and docs/usage.md"
