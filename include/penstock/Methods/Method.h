//===- Method.h - What makes a training method ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A method says how old the weights are that a stage's forward and backward
// read, how versions are kept, and what adjusts what is read. One file each.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_METHODS_METHOD_H
#define PENSTOCK_METHODS_METHOD_H

#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/RateSchedule.h"
#include "penstock/Schedule/FromIR.h"

#include <memory>

namespace penstock {

/// In microbatches: microbatch k reads the weights as they were after
/// max(0, floor((k - lag) / M)) updates of its segment.
struct Lags {
  int64_t forward = 0, backward = 0;
};

/// What a method may know of a stage, from the schedule.
struct StageFacts {
  /// Position in the module, and the number of stages.
  int64_t index = 0, stages = 1;
  /// Position of its device in the line of devices, and their number: i and p
  /// of the literature, where every stage has a device of its own.
  int64_t position = 0, depth = 1;
  /// r.
  int64_t replicas = 1;
  /// By how many microbatches the forward runs ahead of the backward, over all
  /// replicas; here, and where it is most.
  int64_t ahead = 0, mostAhead = 0;
  /// M.
  int64_t microbatches = 1;
};

/// All stages of a schedule, read off its orders.
std::vector<StageFacts> describeStages(const schedule::Imported &imported);

/// A stage whose reads have their lags, for methods that adjust them.
struct StageTasks {
  StageFacts facts;
  Lags lags;
  pipeline::StageOp stage;
  /// Empty where the stage has none: nothing is trained there.
  pipeline::TaskOp forward, update;
  /// B, or I and W.
  llvm::SmallVector<pipeline::TaskOp, 2> backward;
};

/// How the versions are kept that reads with a lag may need.
enum class VersionStorage {
  /// One version: every read is of the newest weights.
  InPlace,
  /// As many as the walk asks for: `weight_stash`.
  Stash,
  /// Two, of every parameter: `double_buffer`.
  DoubleBuffer
};

class Method {
public:
  virtual ~Method();

  /// The loop over microbatches is inside the one over updates.
  virtual bool drains() const { return false; }
  virtual VersionStorage storage() const { return VersionStorage::InPlace; }
  virtual Lags lagsOf(const StageFacts &stage) const = 0;
  /// Inserts what adjusts the reads of a stage, with variables and functions
  /// that it needs. Tasks are those of the training schedule.
  virtual mlir::LogicalResult adjust(mlir::ModuleOp module,
                                     const StageTasks &stage) const {
    return mlir::success();
  }
};

/// Some methods predict weights, and so need to know where they go.
std::unique_ptr<Method> createMethod(const MethodSpec &spec,
                                     const OptimizerSpec &optimizer,
                                     const RateSchedule &rates);

std::unique_ptr<Method> createSync();
std::unique_ptr<Method> createNaive();
std::unique_ptr<Method> createPipeDream(bool verticalSync);
std::unique_ptr<Method> createTwoBW();
std::unique_ptr<Method> createPipeMare(const MethodSpec &spec);
std::unique_ptr<Method> createSpecTrain(const OptimizerSpec &optimizer,
                                        const RateSchedule &rates);
std::unique_ptr<Method> createXPipe(const OptimizerSpec &optimizer,
                                    const RateSchedule &rates);
std::unique_ptr<Method> createPipeOptim(const OptimizerSpec &optimizer,
                                        const RateSchedule &rates);

} // namespace penstock

#endif // PENSTOCK_METHODS_METHOD_H
