#!/usr/bin/env bash
# Compiles a program under the thread sanitizer, its generated code included:
# scripts/tsan-program.sh OUT MODEL [options of penstockc]
# Takes the compiler of build/default and the runtime of build/tsan (or
# $TSAN_BUILD), of which the target penstock_start is enough. Vectors have 16 bytes: accesses of more are not checked. Those that
# oneDNN makes are never checked.
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
if (($# < 2)); then
  echo "usage: tsan-program.sh OUT MODEL [options of penstockc]" >&2
  exit 1
fi
out=$1
shift
runtime=${TSAN_BUILD:-$tree/build/tsan}/runtime
if [[ ! -f $runtime/libpenstock_start.a ]]; then
  echo "tsan-program.sh: $runtime is missing: run" \
    "scripts/build.sh tsan penstock_start" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$tree/build/default/bin/penstockc" "$@" --march=x86-64 --emit=llvm -o "$work/program.mlir"
/usr/lib/llvm-22/bin/mlir-translate --mlir-to-llvmir "$work/program.mlir" -o "$work/program.ll"
# The sanitizer looks at functions with this attribute only.
sed -i -E '/^define /s/ \{$/ sanitize_thread {/' "$work/program.ll"
clang++-22 -O1 -fsanitize=thread -Wno-override-module -c "$work/program.ll" -o "$work/program.o"
clang++-22 -fsanitize=thread "$work/program.o" "$runtime/libpenstock_start.a" \
  -Wl,-u,penstock_cpu "$runtime/libpenstock_cpu.a" "$runtime/libpenstock_runtime.a" \
  -ldl -lgomp -lpthread -lm -o "$out"
echo "run it with TSAN_OPTIONS=suppressions=$tree/test/tsan-suppressions.txt"
