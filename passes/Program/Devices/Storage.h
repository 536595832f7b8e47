//===- Storage.h - Where the values of tasks live ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every tensor of a task is stored exactly once: in a slot of a variable or of
// a channel. This decides in which, for the tasks that one schedule runs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_STORAGE_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_STORAGE_H

#include "dialects/Pipeline/Replicas.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace penstock {

/// A ring of buffers of a variable, or of one field of a channel.
struct Buffer {
  mlir::Operation *symbol = nullptr;
  int64_t field = 0;
  int64_t ring = 1;
  /// True for messages of a channel that wait to be sent.
  bool staging = false;

  explicit operator bool() const { return symbol; }
  bool isVariable() const {
    return symbol && llvm::isa<pipeline::VariableOp>(symbol);
  }
  /// Returns what tells its ring from others.
  std::pair<mlir::Operation *, int64_t> getRing() const {
    return {symbol, 2 * field + staging};
  }
};

/// Storage of the tasks of one schedule. Every failure has been reported.
class Storage {
public:
  static mlir::FailureOr<Storage> get(pipeline::ScheduleOp schedule);

  /// Returns a device's share of a task that this schedule runs.
  pipeline::Share getShare(pipeline::TaskOp task, int64_t device) const;
  /// Returns a device's share of the messages of a channel, at one end.
  pipeline::Share getSendShare(pipeline::ChannelOp channel,
                               int64_t device) const;
  pipeline::Share getReceiveShare(pipeline::ChannelOp channel,
                                  int64_t device) const;
  /// Returns true if the device sends some messages and receives others.
  bool hasBothEnds(pipeline::ChannelOp channel, int64_t device) const;
  /// Says on the channels that join replicas where these are.
  void markEnds() const;
  bool isReceived(pipeline::ChannelOp channel) const {
    return received.contains(channel);
  }
  bool isSent(pipeline::ChannelOp channel) const {
    return sent.contains(channel);
  }
  /// The tasks that the schedule runs.
  llvm::ArrayRef<mlir::Operation *> getTasks() const {
    return tasks.getArrayRef();
  }
  /// Returns true if an update task of this schedule writes the variable.
  bool isUpdated(pipeline::VariableOp variable) const {
    return updated.contains(variable);
  }
  /// Returns true if a fold task writes the variable, which updates write.
  bool isFoldedInto(pipeline::VariableOp variable) const {
    return folded.contains(variable);
  }
  /// Returns true if a norm task of this schedule writes it, for the same
  /// update.
  bool isOfNorm(pipeline::VariableOp variable) const {
    return ofNorms.contains(variable);
  }
  int64_t getVersions(pipeline::VariableOp variable) const {
    auto it = versions.find(variable);
    return it == versions.end() ? 1 : it->second;
  }

  /// Where a tensor lives; a value of a task that this schedule runs.
  mlir::FailureOr<Buffer> getBuffer(mlir::Value value) const;
  /// Where messages are received, or are sent from.
  mlir::FailureOr<Buffer> getReceiveBuffer(pipeline::ChannelOp channel) const;
  mlir::FailureOr<Buffer> getSendBuffer(pipeline::ChannelOp channel) const;
  /// The channels that send from this buffer.
  llvm::SmallVector<pipeline::ChannelOp> getSends(const Buffer &buffer) const;

  /// The symbol that an op of a task or schedule names.
  template <typename OpTy>
  OpTy lookup(mlir::Operation *user, mlir::FlatSymbolRefAttr name) const {
    auto op = symbols->lookupSymbolIn<OpTy>(module, name);
    if (!op)
      user->emitError() << "names " << name << ", which is no "
                        << OpTy::getOperationName();
    return op;
  }

private:
  mlir::LogicalResult collect(pipeline::ScheduleOp schedule);
  mlir::LogicalResult collectTasks(pipeline::ScheduleOp schedule);
  mlir::LogicalResult collectUses(pipeline::ScheduleOp schedule,
                                  pipeline::TaskOp task);
  mlir::LogicalResult collectReceived(pipeline::ScheduleOp schedule);
  mlir::LogicalResult collectSent(pipeline::ScheduleOp schedule);
  mlir::LogicalResult checkOrigins();
  /// The devices that run the task of this op.
  llvm::ArrayRef<int64_t> getPlaces(mlir::Operation *op) const;
  /// Returns true if a task runs on the first replica only.
  bool isOnFirst(pipeline::TaskOp task) const {
    return trains && task.getKind() == pipeline::TaskKind::Evaluate;
  }
  mlir::FailureOr<Buffer> getHome(mlir::Value value) const;

  mlir::ModuleOp module;
  std::unique_ptr<mlir::SymbolTableCollection> symbols =
      std::make_unique<mlir::SymbolTableCollection>();
  bool trains = true;
  llvm::SetVector<mlir::Operation *> tasks;
  llvm::MapVector<mlir::Operation *, pipeline::PutOp> puts;
  llvm::MapVector<mlir::Operation *, pipeline::TakeOp> takes;
  llvm::SetVector<mlir::Operation *> received;
  llvm::SetVector<mlir::Operation *> sent;
  llvm::SetVector<mlir::Operation *> updated, ofNorms, folded;
  llvm::SetVector<mlir::Operation *> byUpdates, byWaves;
  llvm::MapVector<mlir::Operation *, int64_t> versions;
  llvm::MapVector<mlir::Operation *, Buffer> sendBuffers;
};

/// The memref that holds a tensor.
mlir::MemRefType getMemRefType(mlir::RankedTensorType type);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_STORAGE_H
