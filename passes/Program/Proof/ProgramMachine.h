//===- ProgramMachine.h - Executes functions of all devices -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules S8, S11 and S12: runs the functions of all devices of a schedule
// against each other and follows what every buffer holds. The execution model
// is that of the schedule level: a device's runs are in order, and so are its
// transfers with peers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PROOF_PROGRAMMACHINE_H
#define PENSTOCK_PASSES_PROGRAM_PROOF_PROGRAMMACHINE_H

#include "passes/Program/Devices/DeviceCode.h"
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
  void addDevice(int64_t number, const DeviceCode &code, const ArenaMap *map);
  /// Runs to the end; false after an error has been reported. With `explains`,
  /// first says who is in a wrong place (N2, N3) where S7 says who waits: all
  /// queues end only where these hold.
  mlir::LogicalResult run(bool explains);
  /// Has run() keep, for each operation that it executes, how many updates the
  /// segment has.
  void keepLengths(llvm::DenseMap<mlir::Operation *, int64_t> &lengths) {
    executed = &lengths;
  }
  /// After a run without an error: whether every shorter segment is right, too.
  /// Then all that an event depends on is there in every segment that has it,
  /// and a shorter segment is this one with events left out.
  bool coversShorter() const { return covers; }

private:
  /// Queued on a device.
  struct Transfer {
    TraceEvent::Kind kind;
    mlir::Operation *op;
    mlir::StringAttr symbol;
    int64_t number;
    llvm::SmallVector<CellRef, 1> cells;
    /// Its channel has a queue of its own.
    bool isAlone = false;
    bool done = false;
    /// The device knows that it is done.
    bool known = false;
  };
  /// Which transfers have been waited for, by the events of segments of a
  /// length: the last of them, as one wait covers those before (a tree of
  /// maxima over the lengths).
  class Cover {
  public:
    explicit Cover(int64_t longest) : last(longest + 1, -1) {}
    void add(int64_t from, int64_t transfer) {
      for (; from < int64_t(last.size()); from += from & -from)
        last[from] = std::max(last[from], transfer);
    }
    bool has(int64_t from, int64_t transfer) const {
      int64_t found = -1;
      for (from = std::min<int64_t>(from, last.size() - 1); from > 0;
           from -= from & -from)
        found = std::max(found, last[from]);
      return found >= transfer;
    }

  private:
    std::vector<int64_t> last;
  };
  /// The content of a buffer.
  struct Cell {
    std::optional<int64_t> content;
    /// A receive fills it that nothing has waited for.
    std::optional<size_t> filling;
    /// Sends from it that nothing has waited for.
    llvm::SmallVector<size_t, 2> leaving;
    /// True if the content was read or sent.
    bool used = true;
    /// The least segment that has what stored the content, and the transfers
    /// that it came and went by.
    int64_t storedFrom = 0;
    int64_t arrived = -1, left = -1;
    const Cover *arrivedCover = nullptr, *leftCover = nullptr;

    bool isArrived(int64_t from) const {
      return arrived < 0 || arrivedCover->has(from, arrived);
    }
    bool isFree(int64_t from) const {
      return isArrived(from) && (left < 0 || leftCover->has(from, left));
    }
    void store(int64_t from) {
      storedFrom = from;
      arrived = left = -1;
    }
  };
  struct Ring {
    int64_t size = 1;
    bool isVariable = false;
    std::vector<Cell> cells;
    /// The newest version.
    int64_t newest = 0;
  };
  struct Queue {
    int64_t first = 0;
    /// Their numbers among the device's transfers; those of the first `known`
    /// are known to be done.
    std::vector<size_t> transfers;
    int64_t known = 0;

    int64_t count() const { return static_cast<int64_t>(transfers.size()); }
  };
  struct Device {
    int64_t number = 0;
    const ArenaMap *map = nullptr;
    const DeviceCode *code = nullptr;
    std::unique_ptr<DeviceRun> run;
    /// The event that it is at.
    TraceEvent event;
    bool isAtEnd = false;
    /// In order of issue, from number `firstTransfer` on; `waiting` has those
    /// with peers that are not done.
    std::deque<Transfer> transfers;
    size_t firstTransfer = 0;
    std::deque<size_t> waiting;
    /// One for transfers with peers (null), and one per source and sink.
    std::map<const void *, Cover> covers;
    /// The transfers of each channel, received (0) and sent (1).
    llvm::DenseMap<std::pair<mlir::Attribute, int>, Queue> queued;
    llvm::DenseSet<mlir::Attribute> received;
    /// Rings by symbol and field.
    llvm::MapVector<std::pair<mlir::Attribute, int64_t>, Ring> rings;
    /// The number of runs that have begun, by task.
    llvm::MapVector<mlir::Attribute, int64_t> runs;
    /// The task that runs, its number, how many of its calls were made, and
    /// what it updates in place.
    pipeline::TaskOp running;
    int64_t runNumber = 0, runFrom = 0;
    mlir::Operation *mark = nullptr;
    size_t calls = 0;
    llvm::SmallVector<CellRef> updatedInPlace;
    llvm::DenseSet<mlir::Attribute> updatedVariables, writtenInRun;
    /// Those that pushes and folds write, too, and those that nobody else does.
    llvm::DenseSet<mlir::Attribute> foldedVariables, waveVariables;
    /// Queued transfers of channels with queues of their own that are not done,
    /// by channel and whether they send.
    std::map<std::pair<const void *, bool>, std::deque<size_t>> own;
  };
  /// The tasks of a stage; null where it has none.
  struct WaveTasks {
    pipeline::TaskOp update, push, fold;
  };
  /// The calls that a task states.
  struct Statement {
    struct Operand {
      mlir::Attribute term;
      pipeline::OperandAttr buffer;
    };
    struct Call {
      mlir::StringAttr callee;
      llvm::SmallVector<Operand> buffers, numbers;
    };
    std::vector<Call> calls;
  };

  mlir::FailureOr<bool> advance(Device &device);
  /// One event; false if the device must wait.
  mlir::FailureOr<bool> step(Device &device);
  mlir::LogicalResult startRun(Device &device, const TraceEvent &event);
  mlir::LogicalResult startTransfer(Device &device, const TraceEvent &event);
  mlir::LogicalResult startSum(Device &device, const TraceEvent &event);
  mlir::LogicalResult checkSummands(Device &device, const TraceEvent &event,
                                    pipeline::GroupOp group);
  /// Fails unless transfers of one name are numbered one after the other.
  mlir::LogicalResult checkNumber(Device &device, const TraceEvent &event);
  void queue(Device &device, const TraceEvent &event);
  Transfer &getTransfer(Device &device, size_t number) {
    return device.transfers[number - device.firstTransfer];
  }
  /// Returns the queue at the end of a channel that the event is at.
  Queue &getQueued(Device &device, const TraceEvent &event);
  /// Returns true if the event is at the sending end.
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
  /// Overwrites the contents of other slots in these bytes.
  mlir::LogicalResult overwrite(Device &device, const TraceEvent &event,
                                llvm::ArrayRef<SlotKey> slots);
  llvm::ArrayRef<SlotKey> getNeighbors(const Device &device,
                                       const CellRef &ref);
  // Pushes and folds (WaveMachine.cpp).
  WaveTasks getWaveTasks(llvm::StringRef stage);
  static int64_t countRuns(const Device &device, pipeline::TaskOp task);
  mlir::LogicalResult startWave(Device &device, const TraceEvent &event,
                                pipeline::TaskOp task, int64_t runs);
  mlir::LogicalResult checkWave(Device &device, const TraceEvent &event,
                                const CellRef &ref);
  /// The version of an updated variable when the segment begins.
  int64_t getFirstVersion(const Device &device, mlir::Attribute symbol) const {
    return device.waveVariables.contains(symbol) ? first / wave : first;
  }
  /// The version that a push or fold reads with a lag.
  int64_t getWaveVersion(const Device &device, const CellRef &ref,
                         int64_t lag) const;
  /// The first wave behind the segment.
  int64_t getWavesEnd() const { return (first + updates) / wave; }
  mlir::LogicalResult endRun(Device &device);
  mlir::FailureOr<bool> exchange();
  mlir::LogicalResult reportMessages(const Device &receiver,
                                     const Transfer &recv, const Device &sender,
                                     const Transfer &send);
  bool exchangeSums();
  /// The devices of a group's members.
  const llvm::SmallSetVector<int64_t, 4> &getDevices(mlir::StringAttr group);
  /// The device at the other end of a message, if any is.
  std::optional<int64_t> findPeer(TraceEvent::Kind kind,
                                  mlir::StringAttr channel,
                                  int64_t number) const;
  void endFirst(Device &device);
  void complete(Device &device, size_t number);
  // The order of transfers (TransferQueues.cpp).
  using Transfers = std::vector<TraceEvent>;
  mlir::LogicalResult checkOrder();
  /// Rule N2: two devices have the messages between them in one order.
  mlir::LogicalResult checkPairs(llvm::ArrayRef<Transfers> transfers);
  /// Rule N3: devices have the sums that they share in one order.
  mlir::LogicalResult checkSums(llvm::ArrayRef<Transfers> transfers);
  /// Who has to come before the first transfer of a device can end.
  std::string whomAwaits(Device &device);
  mlir::LogicalResult finish();
  mlir::LogicalResult reportDeadlock();
  mlir::FailureOr<Cell *> getCell(Device &device, const TraceEvent &event,
                                  const CellRef &ref);
  bool isExternal(mlir::StringAttr channel);
  bool hasOwnQueue(mlir::StringAttr channel);
  /// The first message of a channel in the segment; of waves, by their number.
  int64_t getFirstMessage(mlir::StringAttr channel);
  mlir::FailureOr<bool> exchangeOwn();
  /// Returns a device's share of a task.
  pipeline::Share getShare(const Device &device, pipeline::TaskOp task) const;
  /// Returns its share of the messages of a channel; all updates of a group.
  pipeline::Share getShare(const Device &device, const TraceEvent &event) const;
  /// A gradient that is kept in parts has one per replica.
  void splitParts(TraceEvent &event) const;
  mlir::InFlightDiagnostic report(const Device &device, const TraceEvent &event,
                                  int rule);

  //===--------------------------------------------------------------------===//
  // S11 and S12
  //===--------------------------------------------------------------------===//

  void collectStatements();
  mlir::LogicalResult checkCall(Device &device, const TraceEvent &event);
  mlir::LogicalResult checkBuffer(Device &device, const TraceEvent &event,
                                  size_t position, const Access &access,
                                  pipeline::OperandAttr stated);
  mlir::LogicalResult checkVersion(Device &device, const TraceEvent &event,
                                   const Access &access,
                                   pipeline::OperandAttr stated);
  mlir::LogicalResult checkPut(Device &device, const TraceEvent &event);
  mlir::LogicalResult checkSummed(Device &device, const TraceEvent &event);
  DeviceNumber evaluate(mlir::Attribute term, int64_t counter);
  int64_t getStatedField(const Device &device, mlir::FlatSymbolRefAttr symbol,
                         int64_t field) const;

  //===--------------------------------------------------------------------===//
  // Shorter segments
  //===--------------------------------------------------------------------===//

  /// The least number of updates with message or update `number`.
  int64_t getLeast(bool countsMicrobatches, int64_t number) const {
    return countsMicrobatches
               ? (number - first * microbatches) / microbatches + 1
               : number - first + 1;
  }
  bool countsMicrobatches(mlir::StringAttr channel);
  Cover &getCover(Device &device, const Transfer &transfer) {
    const void *key =
        transfer.isAlone ? transfer.symbol.getAsOpaquePointer() : nullptr;
    return device.covers.try_emplace(key, updates).first->second;
  }
  void require(bool holds) { covers &= holds; }

  mlir::SymbolTable symbols;
  mlir::ModuleOp module;
  pipeline::ScheduleOp schedule;
  int64_t first, updates, newest, microbatches, wave, distance;
  /// The arguments of device functions, which scale by waves themselves.
  int64_t arguments[3];
  llvm::StringMap<WaveTasks> waveTasks;
  /// True if the program that the schedule belongs to trains.
  bool trains;
  bool evaluates = false;
  bool covers = true;
  llvm::DenseMap<mlir::Operation *, int64_t> *executed = nullptr;
  bool hasParts = false, hasStatements = false;
  /// Returns true if the first replica of a stage has all microbatches.
  bool isOnFirst() const { return evaluates && trains; }
  std::vector<Device> devices;
  /// A device at an end of a channel, by channel and whether it is sent.
  llvm::DenseMap<std::pair<mlir::Attribute, int>, int64_t> ends;
  llvm::DenseMap<int64_t, size_t> deviceIds;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<size_t, 2>> receivers;
  llvm::DenseMap<mlir::Attribute, llvm::SmallSetVector<int64_t, 4>> groups;
  llvm::DenseMap<mlir::Attribute, bool> external, ofMicrobatches;
  llvm::DenseMap<mlir::Operation *, Statement> statements;
  llvm::DenseMap<mlir::Attribute,
                 std::pair<pipeline::TaskOp, pipeline::PutAttr>>
      puts;
  /// The group that sums each variable.
  llvm::DenseMap<mlir::Attribute, pipeline::GroupOp> groupOf;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<pipeline::TaskOp>> makers;
};

/// As messages of the proof name it: @x[3] field 1.
std::string nameOf(const CellRef &ref);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PROOF_PROGRAMMACHINE_H
