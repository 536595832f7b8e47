//===- ProgramTable.h - What a program refers to ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime knows about a program: the numbers that compiled code uses
// for channels, tasks, library products and hyperparameters, and the tables
// that they index.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_PROGRAMTABLE_H
#define PENSTOCK_PASSES_RUNTIME_PROGRAMTABLE_H

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Runtime/ActionTable.h"
#include "passes/Runtime/CallTable.h"
#include "passes/Runtime/FileTable.h"
#include "passes/Runtime/LaunchTable.h"
#include "penstock/Target/Target.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace penstock {

/// The function that the runtime calls to know the learning rate.
inline constexpr llvm::StringLiteral kRateFunction = "penstock.rate";

/// Texts that tables of the program and of its replay have in common.
struct ProgramTexts {
  std::string method, optimizer, schedule, plan;
  pipeline::Precision precision = pipeline::Precision::F32;
  /// The updates at the start of training that flush the pipeline each.
  int64_t flushedUpdates = 0;
};

/// The tables of one program: the top-level module or the replay.
class ProgramTable {
public:
  /// From the device functions, before they are converted.
  mlir::LogicalResult collect(mlir::ModuleOp module);

  /// The number of a channel, or of a group: these come after all channels.
  uint32_t getEndpoint(llvm::StringRef name) const;
  /// Into how many channels of the runtime the channel parts, where its ends
  /// have replicas; 1 for a group. In a program that trains, one more serves
  /// evaluation.
  int64_t getWays(llvm::StringRef name) const;
  /// The number of the channel that serves evaluation.
  uint32_t getEvaluationEndpoint(llvm::StringRef name) const;
  uint32_t getGroup(llvm::StringRef name) const;
  uint32_t getTask(llvm::StringRef name) const;
  uint32_t getHyperparameter(llvm::StringRef name) const;
  /// The function that gives the learning rate, or empty.
  llvm::StringRef getRate() const { return rate; }

  /// Adds the global `name`. `prefix` tells tables and functions of the replay
  /// apart; `replay` is the symbol of its program, if there is one.
  mlir::LogicalResult emit(ConstantBuilder &constants, llvm::StringRef name,
                           llvm::StringRef prefix, const FileTable &files,
                           const CallTable &gemms, const CallTable &convs,
                           const LaunchTable &launches,
                           const ActionTable &actions,
                           const ProgramTexts &texts, llvm::StringRef replay);

private:
  struct Placement {
    uint64_t at = 0, stride = 0, versions = 1;
  };
  struct Ends {
    int64_t sender = -1, receiver = -1;
    int64_t ways = 1;
    /// The worker of a shared source or sink, and the number of workers.
    int64_t turn = 0, turns = 1;
    bool isSink = false;
    /// True if the channel that serves evaluation comes next.
    bool isBeforeEvaluation() const {
      return ways > 1 || (turns > 1 && turn == (isSink ? turns - 1 : 0));
    }
  };
  /// How many channels of the runtime there are before the next one.
  int64_t count(const Ends &ends) const;

  // Parts of the descriptor (Descriptor.cpp).
  struct Symbols;
  int64_t getDeviceCount() const;
  int64_t countWorkers();
  int64_t countWave();
  mlir::FailureOr<Constant> getSummands(ConstantBuilder &constants,
                                        const Symbols &symbol,
                                        pipeline::GroupOp group);
  std::vector<Constant> getDevices(ConstantBuilder &constants);
  mlir::FailureOr<std::vector<Constant>>
  getVariables(ConstantBuilder &constants, const Symbols &symbol,
               const FileTable &files, const CallTable &gemms,
               const CallTable &convs);
  mlir::FailureOr<std::vector<Constant>>
  getChannels(ConstantBuilder &constants);
  std::vector<Constant> getTasks(ConstantBuilder &constants);
  std::vector<Constant> getHyperparameters(ConstantBuilder &constants) const;
  mlir::FailureOr<std::vector<Constant>>
  getSchedules(ConstantBuilder &constants, const Symbols &symbol);
  std::vector<Constant> getRanges(ConstantBuilder &constants);
  std::vector<Constant> getReplicas();
  int64_t getMicrobatchSize();

  mlir::LogicalResult sortTurns();
  mlir::LogicalResult setEnd(mlir::Operation *op,
                             mlir::FlatSymbolRefAttr channel, int64_t &end,
                             int64_t device);
  int64_t getStage(llvm::StringRef name) const;
  mlir::LogicalResult addDevice(mlir::func::FuncOp function, int64_t number);

  mlir::ModuleOp module;
  bool trains = true;
  std::map<int64_t, pipeline::ArenaOp> arenas;
  /// Descriptions of the devices that have functions.
  std::map<int64_t, DeviceDescription> descriptions;
  llvm::MapVector<llvm::StringRef, std::map<int64_t, Placement>> placements;
  llvm::MapVector<llvm::StringRef, Ends> channels;
  llvm::SetVector<llvm::StringRef> groups;
  llvm::MapVector<llvm::StringRef, pipeline::TaskOp> tasks;
  llvm::MapVector<llvm::StringRef, double> hyperparameters;
  llvm::SetVector<llvm::StringRef> stages;
  std::string rate;
  /// Functions by schedule and device.
  llvm::MapVector<llvm::StringRef, std::map<int64_t, std::string>> functions;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_PROGRAMTABLE_H
