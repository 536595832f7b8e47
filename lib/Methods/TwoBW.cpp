//===- TwoBW.cpp - Double-buffered weights ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Narayanan et al. 2021: the microbatches of an update read the version before
// the newest that they could all read, on every stage. So the delay is one
// update everywhere, and two versions suffice if M is at least the depth.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace penstock;

namespace {

/// As many microbatches are in flight as there are devices from the stage on,
/// rounded up to as many for each of its replicas.
int64_t countInFlight(int64_t replicas, int64_t after) {
  return static_cast<int64_t>(llvm::alignTo(replicas + after, replicas));
}

class TwoBW : public Method {
public:
  constexpr TwoBW() : Method("2bw") {}

  VersionStorage getStorage() const override {
    return VersionStorage::DoubleBuffer;
  }
  /// Two versions suffice for what 1F1B has in flight.
  bool runsUnder(const MethodSpec &,
                 const schedule::ScheduleSpec &schedule) const override {
    return schedule.name() == "1f1b";
  }
  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    return {stage.microbatches, stage.microbatches};
  }
  std::string checkDepth(ArrayRef<int64_t> replicas,
                         int64_t microbatches) const override;
  bool allowsStage(int64_t replicas, int64_t after,
                   int64_t microbatches) const override {
    return countInFlight(replicas, after) <= microbatches;
  }
};

} // namespace

std::string TwoBW::checkDepth(ArrayRef<int64_t> replicas,
                              int64_t microbatches) const {
  int64_t needed = 0, devices = 0, turn = 1;
  for (int64_t width : llvm::reverse(replicas)) {
    needed = std::max(needed, countInFlight(width, devices));
    devices += width;
    turn = std::lcm(turn, width);
  }
  if (microbatches >= needed)
    return "";
  std::string error = "2bw needs at least as many microbatches per update as "
                      "the pipeline is deep";
  int64_t depth = replicas.size();
  if (devices > depth)
    return error + ", for every replica: use --microbatches=" +
           std::to_string(llvm::alignTo(needed, turn)) +
           " or more, or fewer replicas";
  return error + ": use --microbatches=" + std::to_string(needed) +
         " or more, or a depth of " + std::to_string(microbatches) +
         " instead of " + std::to_string(depth);
}

const Method &penstock::getTwoBW() {
  static constexpr TwoBW kMethod;
  return kMethod;
}
