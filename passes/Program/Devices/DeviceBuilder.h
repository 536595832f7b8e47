//===- DeviceBuilder.h - Emits the function of one device -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns one order of a schedule into loops, slots, transfers and calls of
// bufferized functions: loops in DeviceBuilder.cpp, what stands in them in
// DeviceEntries.cpp.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICEBUILDER_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICEBUILDER_H

#include "passes/Program/Devices/Numbering.h"
#include "passes/Program/Devices/Storage.h"

#include "mlir/IR/IRMapping.h"

namespace penstock {

/// Ends the names of bufferized functions until they replace the originals.
inline constexpr llvm::StringLiteral kKernelSuffix = ".kernel";

/// The name is printed with --mlir-use-nameloc-as-prefix.
void nameArgument(mlir::Value argument, llvm::StringRef name);

/// Emits the function of one device.
class DeviceBuilder {
public:
  DeviceBuilder(mlir::ModuleOp root, const Storage &storage,
                pipeline::ScheduleOp schedule,
                mlir::SymbolTableCollection &symbols)
      : builder(schedule.getContext()), root(root), symbols(symbols),
        storage(storage), schedule(schedule),
        microbatches(static_cast<int64_t>(schedule.getMicrobatches())),
        wave(static_cast<int64_t>(schedule.getWave())),
        distance(static_cast<int64_t>(schedule.getDistance())) {}

  mlir::LogicalResult run(pipeline::OrderOp order);

private:
  /// One loop around the entry that is being emitted. `body` is the loop of the
  /// schedule; `counter` the induction variable; `count` the iterations that
  /// each entry takes part in.
  struct Loop {
    mlir::Block *body;
    mlir::Value counter;
    mlir::Value count;
    LoopRange range;
  };

  mlir::LogicalResult emitOutermost(pipeline::RepeatOp repeat);
  mlir::LogicalResult emitBody(pipeline::RepeatOp repeat, const Loop &loop);
  mlir::LogicalResult emitEntry(mlir::Operation *entry, mlir::Value index,
                                bool outermost);
  mlir::LogicalResult emitRun(pipeline::RunOp run, mlir::Value local);
  mlir::LogicalResult emitSend(pipeline::SendOp send, mlir::Value local);
  mlir::LogicalResult emitRecv(pipeline::RecvOp recv, mlir::Value local);
  mlir::LogicalResult emitAllReduce(pipeline::AllReduceOp sum,
                                    mlir::Value number);
  mlir::Value emitStaleness(pipeline::StalenessOp op, mlir::Value number);
  /// Returns the version that a push or fold reads, or the version of the
  /// weight that a fold writes.
  mlir::Value getVersionOfWave(pipeline::VariableOp variable,
                               pipeline::TaskOp task, mlir::Value number,
                               std::optional<int64_t> lag);
  mlir::Value getWavesOfSegment();
  /// Before a task of the update uses what was summed.
  mlir::LogicalResult awaitSums(pipeline::TaskOp task, mlir::Value number);
  mlir::LogicalResult emitCall(mlir::func::CallOp call, mlir::Value local,
                               mlir::Value number, mlir::IRMapping &values);

  mlir::FailureOr<mlir::Value> getVersion(pipeline::VariableOp variable,
                                          pipeline::TaskOp task,
                                          mlir::Value number,
                                          std::optional<int64_t> lag);
  mlir::Value getNewest();
  mlir::Value getPart(pipeline::TaskOp task, mlir::Value number);
  /// Messages count on their device, versions over all.
  mlir::FailureOr<mlir::Value> getValueSlot(mlir::Value value,
                                            mlir::Value local,
                                            mlir::Value number,
                                            mlir::IRMapping &values);
  /// The number of an entry among those of its device.
  mlir::Value getNumber(mlir::Operation *entry);
  /// The number that `n` has among those of all replicas.
  mlir::Value toGlobal(mlir::Value n, pipeline::Share share);
  mlir::Value getSlot(const Buffer &buffer, mlir::Value number);
  /// Before message `local` fills the buffer, the former one must have left.
  void awaitSends(const Buffer &buffer, mlir::Value local);

  mlir::Value constant(int64_t value);
  /// Returns `value * factor`, computed where `value` is.
  mlir::Value scale(mlir::Value value, int64_t factor);
  mlir::Value add(mlir::Value value, int64_t constant);
  /// Emits index arithmetic, once in a block.
  template <typename OpTy> mlir::Value emit(mlir::Value a, mlir::Value b) {
    mlir::Value &known = sums[{mlir::TypeID::get<OpTy>(), a, b}];
    if (!known)
      known = OpTy::create(builder, loc, a, b);
    return known;
  }
  /// Forgets values that the current block alone may use.
  void enterBlock() {
    sums.clear();
    slots.clear();
  }

  mlir::OpBuilder builder;
  mlir::ModuleOp root;
  mlir::SymbolTableCollection &symbols; ///< Of kernels, which stay.
  const Storage &storage;
  pipeline::ScheduleOp schedule;
  int64_t microbatches;
  /// Updates per wave, which the function counts, and waves until the fold.
  int64_t wave, distance;
  /// The device, and how many microbatches of an update it handles.
  int64_t device = 0, ownMicrobatches = 0;

  mlir::Location loc = builder.getUnknownLoc();
  mlir::func::FuncOp function;
  /// The newest version, where a variable is read that has several and no
  /// update here.
  mlir::Value first, updates, newest;
  /// The first wave of the segment.
  mlir::Value firstWave;
  /// The length of the segment, as the iteration of the outermost loop knows
  /// it.
  mlir::Value length;
  llvm::MapVector<int64_t, mlir::Value> constants;
  llvm::MapVector<std::pair<mlir::Value, int64_t>, mlir::Value> products;

  /// State of the outermost loop: the numbers of its entries, the current
  /// update (in a loop over updates), the current round of microbatches (in one
  /// over these), and how many of them are an update.
  llvm::MapVector<mlir::Operation *, Number> numbers;
  mlir::Value update, turn;
  int64_t turnsPerUpdate = 1;
  llvm::SmallVector<mlir::Value, 2> indices;

  /// Values of the current block: of index arithmetic by operation and
  /// operands, slots by symbol, twice the field and whether it is staged, and
  /// number.
  llvm::DenseMap<std::tuple<mlir::TypeID, mlir::Value, mlir::Value>,
                 mlir::Value>
      sums;
  llvm::DenseMap<std::tuple<mlir::Operation *, int64_t, mlir::Value>,
                 mlir::Value>
      slots;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICEBUILDER_H
