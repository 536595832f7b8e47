//===- SplitBackward.cpp - Input and weight gradients apart ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slices each backward function on the input cotangents, so that a schedule may
// run the weight gradients later.
//===----------------------------------------------------------------------===//

#include "passes/Training/Passes.h"

#include "dialects/Pipeline/Pipeline.h"

namespace penstock {
#define GEN_PASS_DEF_SPLITBACKWARD
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
class SplitBackwardPass
    : public penstock::impl::SplitBackwardBase<SplitBackwardPass> {
  using SplitBackwardBase::SplitBackwardBase;
  void runOnOperation() override {
    getOperation().emitError() << "not yet";
    signalPassFailure();
  }
};
} // namespace
