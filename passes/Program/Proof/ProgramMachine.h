//===- ProgramMachine.h - Executes traces of all devices --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule S8: runs the traces of all devices of a schedule against each other and
// follows what every buffer holds. The execution model is that of the schedule
// level: a device's runs are in order, and so are its transfers with peers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PROOF_PROGRAMMACHINE_H
#define PENSTOCK_PASSES_PROGRAM_PROOF_PROGRAMMACHINE_H

#include "passes/Program/Devices/DeviceTrace.h"
#include "passes/Program/Proof/ArenaMap.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <deque>
#include <map>

namespace penstock {

class ProgramMachine {
public:
  ProgramMachine(mlir::ModuleOp module, pipeline::ScheduleOp schedule,
                 int64_t first, int64_t updates, int64_t newest);

  /// `map`, if given, says which slots have bytes of each other.
  void addDevice(int64_t number, std::vector<TraceEvent> trace,
                 const ArenaMap *map);
  /// Runs to the end; false after an error has been reported.
  mlir::LogicalResult run();

private:
  /// Queued on a device; `event` is its index in the trace.
  struct Transfer {
    size_t event;
    bool done = false;
  };
  /// What a buffer holds.
  struct Cell {
    std::optional<int64_t> content;
    /// A receive fills it that nothing has waited for.
    std::optional<size_t> filling;
    /// Sends from it that nothing has waited for.
    llvm::SmallVector<size_t, 2> leaving;
    /// Whether the content was read or sent.
    bool used = true;
  };
  struct Ring {
    int64_t size = 1;
    bool isVariable = false;
    std::map<int64_t, Cell> cells;
  };
  struct Device {
    int64_t number = 0;
    std::vector<TraceEvent> trace;
    const ArenaMap *map = nullptr;
    size_t position = 0;
    /// By event, in order of issue; `waiting` has those with peers not done.
    std::map<size_t, Transfer> transfers;
    std::deque<size_t> waiting;
    /// By channel, and whether it is sent: the event that queued each message.
    llvm::DenseMap<std::pair<mlir::Attribute, int>, std::vector<size_t>> queued;
    /// By symbol and field.
    llvm::MapVector<std::pair<mlir::Attribute, int64_t>, Ring> rings;
    /// By task: how many runs have begun.
    llvm::MapVector<mlir::Attribute, int64_t> runs;
    /// The task that runs, and what it updates in place.
    pipeline::TaskOp running;
    llvm::SmallVector<CellRef> updatedInPlace;
    llvm::DenseSet<mlir::Attribute> updatedVariables;
    /// Those that pushes and folds write, too, and those that nobody else does.
    llvm::DenseSet<mlir::Attribute> foldedVariables, waveVariables;
    /// Queued transfers of channels with queues of their own that are not done,
    /// by channel and whether they send.
    std::map<std::pair<const void *, bool>, std::deque<size_t>> own;
  };
  /// Of a stage; null where it has none.
  struct WaveTasks {
    pipeline::TaskOp update, push, fold;
  };

  /// One event; none if the device must wait.
  mlir::FailureOr<bool> step(Device &device);
  mlir::LogicalResult startRun(Device &device, const TraceEvent &event);
  mlir::LogicalResult startTransfer(Device &device, const TraceEvent &event);
  mlir::LogicalResult startSum(Device &device, const TraceEvent &event);
  mlir::LogicalResult checkSummands(Device &device, const TraceEvent &event,
                                    pipeline::GroupOp group);
  /// Fails unless transfers of one name are numbered one after the other.
  mlir::LogicalResult checkNumber(Device &device, const TraceEvent &event);
  void queue(Device &device, const TraceEvent &event);
  /// What was queued at the end of a channel that the event is at.
  std::vector<size_t> &getQueued(Device &device, const TraceEvent &event);
  /// Whether the event is at the sending end.
  bool isSending(const Device &device, const TraceEvent &event) const;
  mlir::FailureOr<bool> await(Device &device, const TraceEvent &event);
  mlir::LogicalResult call(Device &device, const TraceEvent &event);
  mlir::LogicalResult read(Device &device, const TraceEvent &event,
                           const CellRef &ref);
  /// Fails if a method asks for another version.
  mlir::LogicalResult checkAge(Device &device, const TraceEvent &event,
                               const CellRef &ref);
  mlir::LogicalResult checkUpdateAge(Device &device, const TraceEvent &event,
                                     const CellRef &ref, int64_t lag);
  mlir::LogicalResult write(Device &device, const TraceEvent &event,
                            const CellRef &ref, bool inPlace);
  /// Fails if the cell may not be filled now.
  mlir::LogicalResult checkFree(Device &device, const TraceEvent &event,
                                const CellRef &ref, const Cell &cell);
  /// What other slots hold in these bytes is gone.
  mlir::LogicalResult overwrite(Device &device, const TraceEvent &event,
                                llvm::ArrayRef<SlotKey> slots);
  llvm::ArrayRef<SlotKey> getNeighbours(const Device &device,
                                        const CellRef &ref);
  // Pushes and folds (WaveMachine.cpp).
  WaveTasks getWaveTasks(llvm::StringRef stage);
  static int64_t countRuns(const Device &device, pipeline::TaskOp task);
  mlir::LogicalResult startWave(Device &device, const TraceEvent &event,
                                pipeline::TaskOp task, int64_t runs);
  mlir::LogicalResult checkWave(Device &device, const TraceEvent &event,
                                const CellRef &ref);
  void endRun(Device &device);
  mlir::FailureOr<bool> exchange();
  bool exchangeSums();
  /// The devices of a group's members.
  llvm::SmallSetVector<int64_t, 4> getDevices(mlir::StringAttr group);
  /// The device at the other end of a message, if any is.
  std::optional<int64_t> findPeer(const TraceEvent &event) const;
  static void endFirst(Device &device);
  void complete(Device &device, size_t event);
  /// Rule N2: two devices have the messages between them in one order.
  mlir::LogicalResult checkPairs();
  /// Rule N3: devices have the sums that they share in one order.
  mlir::LogicalResult checkSums();
  /// Who has to come before the first transfer of a device can end.
  std::string whomAwaits(const Device &device);
  mlir::LogicalResult finish();
  mlir::LogicalResult reportDeadlock();
  mlir::FailureOr<Cell *> getCell(Device &device, const TraceEvent &event,
                                  const CellRef &ref);
  bool isExternal(mlir::StringAttr channel);
  bool hasOwnQueue(mlir::StringAttr channel);
  /// The first message of a channel in the segment; of waves, by their number.
  int64_t getFirstMessage(mlir::StringAttr channel);
  mlir::FailureOr<bool> exchangeOwn();
  /// What a device does of a task.
  pipeline::Share getShare(const Device &device, pipeline::TaskOp task) const;
  /// What it has of the messages of a channel; all updates of a group.
  pipeline::Share getShare(const Device &device, const TraceEvent &event) const;
  /// A gradient that is kept in parts has one per replica.
  void splitParts(TraceEvent &event) const;
  mlir::InFlightDiagnostic report(const Device &device, const TraceEvent &event,
                                  int rule);

  mlir::SymbolTable symbols;
  mlir::ModuleOp module;
  pipeline::ScheduleOp schedule;
  int64_t first, updates, newest, microbatches, wave, distance;
  llvm::StringMap<WaveTasks> waveTasks;
  /// Of the program that the schedule belongs to.
  bool trains;
  bool evaluates = false;
  /// Whether the first replica of a stage has all microbatches.
  bool isOnFirst() const { return evaluates && trains; }
  std::vector<Device> devices;
  /// By channel, and whether it is sent: a device that is at that end.
  llvm::DenseMap<std::pair<mlir::Attribute, int>, int64_t> ends;
};

/// As messages of the proof name it: @x[3] field 1.
std::string nameOf(const CellRef &ref);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PROOF_PROGRAMMACHINE_H
