//===- Method.h - What makes a training method ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A method says how old the weights are that a stage's forward and backward
// read, how versions are kept, and what adjusts what is read. One file each,
// and one line in Methods.def.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_METHODS_METHOD_H
#define PENSTOCK_METHODS_METHOD_H

#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/Optimizers.h"
#include "penstock/Optimizers/RateSchedule.h"
#include "penstock/Schedule/FromIR.h"

namespace penstock {

/// In microbatches: microbatch k reads the weights as they were after
/// max(0, floor((k - lag) / M)) updates of its segment.
struct Lags {
  int64_t forward = 0, backward = 0;
  /// In updates: by how many the version that an update reads beside the newest
  /// is older than the one that it makes; 0 if it reads none.
  int64_t update = 0;

  /// As a stage notes them: the last one only where it is not 0.
  llvm::SmallVector<int64_t, 3> toArray() const {
    llvm::SmallVector<int64_t, 3> array = {forward, backward};
    if (update > 0)
      array.push_back(update);
    return array;
  }
};

/// The exchange of a method of several workers, each of which updates weights
/// of its own with every microbatch.
struct Waves {
  int64_t workers = 1;
  /// Updates per wave; 0: as many as a line has stages.
  int64_t wave = 0;
  /// The number of waves that a worker may be ahead of what it knows of the
  /// others.
  int64_t distance = 0;
};

/// A stage as methods see it, read off the schedule.
struct StageFacts {
  /// Position in the module, and the number of stages.
  int64_t index = 0, stages = 1;
  /// Position of its device in the line of devices, and their number: i and p
  /// of the literature, where every stage has a device of its own.
  int64_t position = 0, depth = 1;
  /// r.
  int64_t replicas = 1;
  /// The lag with which a forward reads the newest weights: in 1F1B, the
  /// microbatches in flight between forward and backward, over all replicas. Of
  /// this stage, and of the stage where it is largest.
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

/// The storage of the versions that reads with a lag may need.
enum class VersionStorage {
  /// One version: every read is of the newest weights.
  InPlace,
  /// As many as the walk asks for: `weight_stash`.
  Stash,
  /// Two, of every parameter: `double_buffer`.
  DoubleBuffer
};

/// A method with the optimizer and learning-rate schedule of the program.
struct MethodUse {
  MethodSpec method;
  OptimizerSpec optimizer;
  RateSchedule rates;
};

/// A row of the table of methods: its name and keys, and its rules.
class Method : public SpecKind {
public:
  constexpr Method(llvm::StringLiteral name, llvm::ArrayRef<SpecKey> keys = {})
      : SpecKind{name, keys} {}

  /// Returns true if the pipeline is flushed at every update: the loop over
  /// microbatches is inside the one over updates.
  virtual bool flushes() const { return false; }
  /// The schedule that the method runs where none is named.
  virtual schedule::ScheduleSpec getSchedule(const MethodSpec &spec) const {
    return {};
  }
  /// Returns true if the method runs under a schedule of these parameters.
  /// Methods that do not flush run 1F1B without flushes, and what is such a
  /// loop by itself.
  virtual bool runsUnder(const MethodSpec &spec,
                         const schedule::ScheduleSpec &schedule) const {
    return flushes() ? schedule.flushes()
                     : !schedule.flushes() || schedule.name() == "1f1b";
  }
  /// None: all stages are of one line.
  virtual std::optional<Waves> getWaves(const MethodSpec &spec) const {
    return std::nullopt;
  }
  /// Returns true if workers fold waves into weights that are the same for all:
  /// these are averaged, not those of a worker.
  bool foldsWaves(const MethodSpec &spec) const {
    std::optional<Waves> waves = getWaves(spec);
    return waves && waves->workers > 1;
  }
  virtual VersionStorage getStorage() const { return VersionStorage::InPlace; }
  /// Returns true if a backward reads the weights that its forward read, so
  /// that it may run ops of the forward again.
  virtual bool keepsForwardWeights(const MethodSpec &spec) const {
    return flushes() || getStorage() != VersionStorage::InPlace;
  }
  virtual Lags getLags(const MethodSpec &spec,
                       const StageFacts &stage) const = 0;

  /// Describes why M microbatches, these numbers of replicas (none given: one
  /// each) and the optimizer do not fit, and what would; empty if they do.
  virtual std::string checkUse(const MethodSpec &spec, int64_t microbatches,
                               llvm::ArrayRef<int64_t> replicas,
                               const Optimizer &optimizer) const {
    return "";
  }
  /// The same for the number of replicas at each position of the line.
  virtual std::string checkDepth(llvm::ArrayRef<int64_t> replicas,
                                 int64_t microbatches) const {
    return "";
  }
  /// The same for what a schedule makes of a stage.
  virtual std::string checkStage(const StageFacts &stage) const { return ""; }
  /// Returns true if checkUse and checkDepth accept a stage of so many
  /// replicas, with so many devices behind it.
  virtual bool allowsStage(int64_t replicas, int64_t after,
                           int64_t microbatches) const {
    return true;
  }

  /// Returns true if it moves weights by the learning rate of their stage, so
  /// that all of them need the same one.
  virtual bool predictsWeights() const { return false; }

  /// Returns true if updates compute adjusted weights, each element from what
  /// the update has of that element.
  virtual bool extendsUpdates(const MethodSpec &spec) const {
    return predictsWeights();
  }

  /// The updates at the start of training that flush the pipeline each.
  virtual int64_t getFlushedUpdates(const MethodSpec &spec) const { return 0; }
  /// The factor of the learning rate with which a stage begins to train that is
  /// tau updates late.
  virtual double getRateFactor(const MethodSpec &spec, double tau) const {
    return 1;
  }

  /// Returns the kinds (`pipeline.kind`) of the variables that it keeps beside
  /// a parameter, which are their names in checkpoints, too (C39).
  virtual llvm::ArrayRef<llvm::StringRef> getStateKinds() const { return {}; }

  /// Inserts what adjusts the reads of a stage, with variables and functions
  /// that it needs. Tasks are those of the training schedule.
  virtual mlir::LogicalResult adjust(mlir::ModuleOp module,
                                     const StageTasks &stage,
                                     const MethodUse &use) const {
    return mlir::success();
  }

protected:
  ~Method() = default;
};

/// Adds a row to the table of methods, for a plug-in: before any command line
/// or program is parsed, and for as long as the process lives. The replay needs
/// a formula of it, too: addWeightAges.
void addMethod(const Method &method);

} // namespace penstock

#endif // PENSTOCK_METHODS_METHOD_H
