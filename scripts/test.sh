#!/usr/bin/env bash
# Installs, builds and runs every test: scripts/test.sh [preset]
# The last line is "N passed, N failed"; the exit status is 0 when none failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
preset=${1:-default}
build=build/$preset
started=$SECONDS
# From nothing, the compiler's files take half as long in batches.
export CMAKE_ARGS="-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 ${CMAKE_ARGS:-}"

scripts/install-dependencies.sh || exit 1
scripts/build.sh "$preset" || exit 1
built=$SECONDS
jobs=${JOBS:-$(nproc)}

# ctest's own report goes to the terminal; the counts come from its summary
# "98% tests passed, 1 tests failed out of 57".
echo "== unit tests"
ctest --test-dir "$build" --output-on-failure -j "$jobs" 2>&1 |
  tee "$build/unit-tests.log" | grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ .* Passed )'
unit_status=${PIPESTATUS[0]}
read -r unit_failed unit_total < <(
  sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' \
    "$build/unit-tests.log"
)
unit_failed=${unit_failed:-0} unit_total=${unit_total:-0}

# What tests of many cases counted.
counts=$(awk '
  /^\[ gradient \]/ && !/ in all / {
    ++rules
    for (i = 4; i <= NF; ++i) {
      if ($i == "cases,") cases += $(i - 1)
      if ($i ~ /^[0-9.]+e[-+][0-9]+$/ && $i + 0 > largest) largest = $i + 0
    }
  }
  /^\[ node tests \] (in all|with floats)/ {
    sub(/^\[ node tests \] /, "node tests: "); gsub(/  +/, " "); print
  }
  END {
    if (rules)
      printf "gradients:  %d rules, %d cases, largest error %.1e\n", rules, cases, largest
  }' "$build/Testing/Temporary/LastTest.log" 2>/dev/null)

echo "== lit tests"
lit=$(llvm-config-22 --bindir 2>/dev/null || echo /usr/lib/llvm-22/bin)/lit
"$lit" -sv --no-progress-bar -j "$jobs" ${LIT_ARGS:-} --output "$build/lit-tests.json" "$build/test"
lit_status=$?
read -r lit_passed lit_failed lit_skipped < <(python3 - "$build/lit-tests.json" <<'PYTHON'
import collections
import json
import sys

try:
    with open(sys.argv[1]) as file:
        codes = collections.Counter(
            test["code"] for test in json.load(file)["tests"])
except (OSError, ValueError):
    codes = collections.Counter(UNRESOLVED=1)
passed = sum(codes[code] for code in ("PASS", "FLAKYPASS", "XFAIL"))
skipped = sum(codes[code] for code in ("UNSUPPORTED", "EXCLUDED", "SKIPPED"))
print(passed, sum(codes.values()) - passed - skipped, skipped)
PYTHON
)

# No test at all, or a runner that died, is a failure too.
unit_passed=$((unit_total - unit_failed))
failed=$((unit_failed + lit_failed))
if ((failed == 0)) && ((unit_status != 0 || lit_status != 0 || unit_total == 0 || lit_passed == 0)); then
  echo "test.sh: a test runner failed without naming a test (ctest: $unit_status, lit: $lit_status)" >&2
  failed=1
fi
if [[ ! -x $build/bin/penstockc ]]; then
  echo "test.sh: there is no penstockc, so the end-to-end tests did not run" >&2
  failed=$((failed + 1))
fi

echo
[[ -n $counts ]] && echo "$counts"
echo "unit tests: $unit_passed of $unit_total passed"
echo "lit tests:  $lit_passed of $((lit_passed + lit_failed)) passed, $lit_skipped do not apply to this build"
echo "time:       $((built - started)) s to build, $((SECONDS - built)) s to test, $((SECONDS - started)) s in all"
echo "$((unit_passed + lit_passed)) passed, $failed failed"
((failed == 0))
