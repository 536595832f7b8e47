//===- SpecTrain.cpp - Forward and backward at predicted weights ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chen et al. 2018. Everything that one microbatch reads is moved along the
// momentum to the moment when its backward leaves the first stage: p - 1 - i
// updates of stage i between its forward and its backward there, and floor(i/2)
// more until then.
//===----------------------------------------------------------------------===//

#include "MethodTable.h"
#include "Predicting.h"

using namespace mlir;
using namespace penstock;

namespace {

class SpecTrain : public PredictingMethod {
public:
  constexpr SpecTrain() : PredictingMethod("spectrain") {}

  std::string checkUse(const MethodSpec &spec, int64_t microbatches,
                       ArrayRef<int64_t> replicas,
                       const Optimizer &optimizer) const override;
  /// How far it predicts is counted along 1F1B.
  bool runsUnder(const MethodSpec &,
                 const schedule::ScheduleSpec &schedule) const override {
    return schedule.name() == "1f1b";
  }
  bool allowsStage(int64_t replicas, int64_t after,
                   int64_t microbatches) const override {
    return replicas == microbatches;
  }

  Horizon getHorizon(const StageFacts &stage) const override {
    auto further = static_cast<double>(stage.position / 2);
    return {further + static_cast<double>(stage.depth - 1 - stage.position),
            further};
  }
};

} // namespace

std::string SpecTrain::checkUse(const MethodSpec &, int64_t microbatches,
                                ArrayRef<int64_t> replicas,
                                const Optimizer &optimizer) const {
  // An update is of as many microbatches on every stage.
  if (!llvm::all_equal(replicas))
    return "spectrain updates after every microbatch of a replica, which "
           "stages of different width cannot all do: use stages of equal "
           "width, or --method=pipeoptim";
  int64_t width = replicas.empty() ? 1 : replicas.front();
  if (microbatches != width)
    return "spectrain updates after every microbatch" +
           std::string(width > 1 ? " of a replica" : "") + ", not after " +
           std::to_string(microbatches) +
           ": use --microbatches=" + std::to_string(width) +
           ", or --method=pipeoptim";
  if (!optimizer.hasDirection())
    return "spectrain predicts along SGD's momentum, and there is none: use "
           "--optimizer=sgd:momentum=0.9";
  // Its formula takes a buffer as it is.
  if (!optimizer.getDirectionState())
    return "spectrain predicts along SGD's momentum, which " +
           optimizer.getSpec().getName().str() +
           " does not have: use --optimizer=sgd:momentum=0.9, or "
           "--method=pipeoptim";
  return "";
}

const Method &penstock::getSpecTrain() {
  static constexpr SpecTrain kMethod;
  return kMethod;
}
