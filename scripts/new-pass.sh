#!/usr/bin/env bash
# Writes the boilerplate of a pass: scripts/new-pass.sh FOLDER NAME
#
#   scripts/new-pass.sh Schedule MergeRepeats
#
# gives passes/Schedule/MergeRepeats.cpp, an entry `pipeline-merge-repeats` in
# passes/Schedule/Passes.td, and test/passes/Schedule/merge-repeats.mlir. The pass
# does nothing yet and its test fails until it says what the pass is for.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "new-pass.sh: $*" >&2
  exit 1
}
(($# == 2)) || fail "usage: scripts/new-pass.sh FOLDER NAME, for example Schedule MergeRepeats"
folder=$1 name=$2
[[ $name =~ ^([A-Z][a-z0-9]*)+$ ]] || fail "NAME must be CamelCase, got '$name'"
table=passes/$folder/Passes.td
lists=passes/$folder/CMakeLists.txt
[[ -f $table && -f $lists ]] || fail "no pass folder passes/$folder (there are: $(cd passes && echo */))"

stem=$(sed -E 's/([A-Z])/-\L\1/g; s/^-//' <<<"$name")
flag=pipeline-$stem
source=passes/$folder/$name.cpp
test=test/passes/$folder/$stem.mlir
for file in "$source" "$test"; do
  [[ ! -e $file ]] || fail "$file exists"
done
! grep -q "\"$flag\"" "$table" || fail "$table has a pass $flag"

# The first line of a file fills 80 columns, as everywhere.
opening="//===- $name.cpp - TODO: what it does "
dashes=$((75 - ${#opening}))
opening+=$(printf -- '-%.0s' $(seq $((dashes > 1 ? dashes : 1))))===//

python3 - "$table" "$lists" "$name" "$flag" <<'PYTHON'
import re
import sys

table, lists, name, flag = sys.argv[1:]
entry = f'''
def Pipeline{name} : Pass<"{flag}", "::mlir::ModuleOp"> {{
  let summary = "TODO: one line, in the imperative";
  let description = [{{
    TODO: what it does and why, with the IR before and after.
  }}];
}}
'''
text = open(table).read()
end = text.rindex("\n#endif")
open(table, "w").write(text[:end] + entry + text[end:])

# Sources stand between the library's name and its first keyword.
text = open(lists).read()
call = re.search(r"penstock_library\((\w+)((?:\s+\w+\.cpp)*)", text)
sources = sorted(call.group(2).split() + [f"{name}.cpp"])
text = (text[:call.start(2)] + "".join(f"\n  {s}" for s in sources)
        + text[call.end(2):])
open(lists, "w").write(text)
PYTHON

cat >"$source" <<CODE
$opening
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TODO: what the pass does and why, in about three lines.
//===----------------------------------------------------------------------===//

#include "passes/$folder/Passes.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINE${name^^}
#include "passes/$folder/Passes.h.inc"
} // namespace penstock

namespace {

struct ${name}Pass : penstock::impl::Pipeline${name}Base<${name}Pass> {
  void runOnOperation() override {
    // 1. TODO: the body reads as numbered steps.
  }
};

} // namespace
CODE

mkdir -p "$(dirname "$test")"
cat >"$test" <<CODE
// RUN: penstock-opt %s --$flag | FileCheck %s

// TODO: what this case shows, and why it matters.
// CHECK-LABEL: func.func @example
// CHECK: TODO
func.func @example() {
  return
}
CODE

echo "wrote $source, $test, and an entry $flag in $table"
