//===- Report.h - The plan, for people and programs -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the compiler decided: the stages, their parameters, staleness and
// memory. Collected from the IR as it passes the levels that know each part.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_REPORT_H
#define PENSTOCK_DRIVER_REPORT_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Methods/MethodSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Bytes of one stage. `arena` is that of its device, and the sum of those
/// before it over the stages of that device.
struct StageBytes {
  int64_t weights = 0;  ///< One version of each parameter.
  int64_t versions = 0; ///< Further versions.
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t residuals = 0;   ///< Messages that stay on the stage.
  int64_t temporaries = 0; ///< Scratch of kernels and of library calls.
  int64_t channels = 0;    ///< Buffers of transfers, both directions.
  /// The part of those before that copies of other stages' parameters take, and
  /// the gradients that go back to these.
  int64_t tied = 0;
  int64_t padding = 0; ///< What alignment takes.
  int64_t arena = 0;
  /// The most bytes that are alive at once on its device: no arena is smaller.
  int64_t lowerBound = 0;
};

struct StageReport {
  std::vector<int64_t> devices;
  /// Bytes of each of them. Replicas have the same variables, but may have
  /// other transfers.
  std::vector<int64_t> arenas;
  std::vector<std::string> parameters; ///< Trained ones.
  int64_t nodes = 0;                   ///< ONNX nodes that it computes.
  double flops = 0;                    ///< Of the forward of one microbatch.
  int64_t lagForward = 0, lagBackward = 0; ///< In microbatches.
  double tau = 0; ///< (lagForward - lagBackward) / M, in updates.
  /// How many versions the method distinguishes here, from the newest to the
  /// one that a backward reads; and how many are held of any parameter: fewer
  /// where no backward reads one.
  int64_t versions = 1, versionsHeld = 1;
  /// From the forward to the backward of one microbatch.
  int64_t residualsPerMicrobatch = 0;
  int64_t residualSlots = 1; ///< For how many microbatches at a time.
  /// Known once it is scheduled: variables, and with one channel of residuals
  /// when it is full. Its device needs no less.
  int64_t variableBytes = 0, leastBytes = 0;
  /// Measured: a microbatch's forward and backward, an update. 0: not measured.
  double forwardSeconds = 0, backwardSeconds = 0, updateSeconds = 0;
  StageBytes bytes;

  /// Returns the bytes of the device that takes most.
  int64_t getLargestArena() const {
    return arenas.empty() ? bytes.arena : *llvm::max_element(arenas);
  }
};

/// Numbers of lines of stages that exchange waves.
struct WaveReport {
  int64_t workers = 0; ///< 0: there is one line, which has no waves.
  int64_t wave = 1, distance = 0;
  /// That a worker sends to each other one per wave, and keeps besides its
  /// weights: the global ones, and waves.
  int64_t bytes = 0, keptBytes = 0;
  /// As simulated, by worker: seconds of a wave alone, and the shares of the
  /// time in which it waits for others and within its line.
  struct Waits {
    double waveSeconds = 0, others = 0, line = 0;
  };
  std::vector<Waits> waits;
};

struct Report {
  std::string model, schedule, optimizer, recompute = "none";
  MethodSpec method;
  bool infer = false; ///< No training: no method, no updates.
  int64_t microbatchSize = 0, microbatches = 1;
  /// Speeds of the devices of all stages; empty: they are equal.
  std::vector<double> speeds;
  double predictedBubble = 0;
  /// The same for one of many updates, where no device waits for another's.
  double steadyBubble = 0;
  /// The seconds of one update from measured costs; 0 without them.
  double predictedSeconds = 0;
  /// The same from measured costs or, without them, from those that the cuts
  /// are planned by: plans of one model are compared by it.
  double simulatedSeconds = 0;
  /// The part of that which all devices together spend in forwards and
  /// backwards.
  double workSeconds = 0;
  int64_t simulatedDevices = 0;
  /// The seconds that a flush costs a pipeline that is otherwise continuous,
  /// from measured costs.
  double drainSeconds = 0;
  /// Bytes of host memory that hold the values of a checkpoint while it is
  /// written.
  int64_t checkpointBytes = 0;
  /// Bytes that sums between processes need besides arenas, by process, where
  /// the program runs as so many.
  std::vector<std::vector<int64_t>> transport;
  /// Updates per second of a flush-free pipeline over those of one that flushes
  /// at every update, if every stage takes as long: (M + p - 1) / M.
  /// Synchronous: 1.
  double speedupOverFlush = 1;
  /// Bound of the norm of the gradients; 0: none.
  double clipGradNorm = 0;
  /// All that does not train is frozen. Of those, some are statistics that the
  /// forward moves, and some no gradient reaches from the loss.
  std::vector<std::string> trained, frozen, statistics, unreached;
  std::vector<StageReport> stages;
  WaveReport waves;
  /// One update of the training schedule, or some of one that does not drain, a
  /// line per device; F forward, B backward (two units of time), U update.
  std::vector<std::string> timeline;
  int64_t timelineUpdates = 1;

  /// Returns the bytes of the device that takes most.
  int64_t getLargestArena() const {
    int64_t most = 0;
    for (const StageReport &stage : stages)
      most = std::max(most, stage.getLargestArena());
    return most;
  }
  /// Before it is a program.
  int64_t getLeastBytes() const {
    int64_t least = 0;
    for (const StageReport &stage : stages)
      least = std::max(least, stage.leastBytes);
    return least;
  }

  /// Each takes what its level knows; a level that was skipped leaves zeros.
  void collectStages(mlir::ModuleOp module);
  void collectSchedule(mlir::ModuleOp module);
  void collectProgram(mlir::ModuleOp module);
  void collectTransport(mlir::ModuleOp module);

  /// From level training on: the parameters that would train if a gradient
  /// reached them from the loss.
  static std::vector<std::string> findUnreached(mlir::ModuleOp module);

  llvm::json::Value toJson() const;
  void print(llvm::raw_ostream &stream) const;

private:
  /// The number of each stage, in the order of the module.
  using StageNumbers = llvm::MapVector<mlir::StringAttr, unsigned>;
  static StageNumbers numberStages(mlir::ModuleOp module);
  void collectSimulation(mlir::ModuleOp module);
  void collectWaves(mlir::ModuleOp module);
  void collectWaits(mlir::ModuleOp module);
  void collectSeconds(pipeline::ScheduleOp schedule);
  void collectAges(mlir::ModuleOp module, const StageNumbers &numbers);
  void collectEnds(mlir::ModuleOp module, const StageNumbers &numbers);
  void collectResiduals(mlir::ModuleOp module, const StageNumbers &numbers);
  void collectLeastBytes(mlir::ModuleOp module, const StageNumbers &numbers);
  /// Parameters, versions, and the bytes of both.
  void collectVariables(mlir::ModuleOp module);
  /// The factor of the learning rate with which a stage begins.
  double rateFactor(const StageReport &stage) const;
  std::string describe() const;
  void printStages(llvm::raw_ostream &stream) const;
  void printVersions(llvm::raw_ostream &stream) const;
  void printWaves(llvm::raw_ostream &stream) const;
  /// Where replicas allocate other than the first of their stage.
  void printReplicaArenas(llvm::raw_ostream &stream) const;

  llvm::StringSet<> updated; ///< Variables that update tasks write.
  /// The stages that put and take, by channel; -1 for none.
  llvm::StringMap<std::pair<int64_t, int64_t>> ends;
};

/// As "1.5 MiB".
std::string formatBytes(int64_t bytes);

/// Describes a need that is above a limit: "126.1 KiB (129088 bytes), 26.1 KiB
/// more".
std::string formatNeed(int64_t bytes, int64_t limit);

/// Returns a size for --device-memory that is at least `bytes`, and at most a
/// hundredth of its unit more: "126.07KiB".
std::string formatEnough(int64_t bytes);

} // namespace penstock

#endif // PENSTOCK_DRIVER_REPORT_H
