//===- DeviceCode.h - Interprets a device function --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The index code of a device function, data left out, event by event. It also
// finds from how many updates on each event is there: where the function tests
// nothing else of the length of a segment, shorter segments leave out events,
// and all that one of them does is seen in the longest.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICECODE_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICECODE_H

#include "dialects/Pipeline/Replicas.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {

/// A buffer of a ring: message or version `number` of a field of a symbol.
struct CellRef {
  // Traces of many microbatches are long: small numbers are kept small.
  mlir::StringAttr symbol;
  int64_t number = 0;
  int64_t ring = 1;
  int32_t field = 0;

  /// The part, if a gradient is kept in parts; then `number` is the update's.
  std::optional<int32_t> part = {};

  int64_t getIndex() const { return part ? *part : number % ring; }
};

/// A buffer in a call.
struct Access {
  CellRef cell;
  bool reads = false, writes = false;
};

struct TraceEvent {
  enum Kind { Mark, Call, Recv, Send, Await, Sum };
  Kind kind;
  mlir::Operation *op;
  /// The task, channel or group, and its run, message or update.
  mlir::StringAttr symbol;
  int64_t number = 0;
  /// One for a transfer, any for a call or a sum.
  llvm::SmallVector<Access, 1> accesses;
  /// Segments of fewer updates do not have it.
  int64_t from = 0;
};

/// A segment that becomes shorter while it runs: the device learns of it at the
/// head of the iteration whose `least` (of pipeline.bound) reaches `reached`.
struct Shortening {
  int64_t updates, reached;
};

/// A number of a device function: an index or truth value, which is computed,
/// or data, of which is known how it is computed.
struct DeviceNumber {
  /// The value, or a hash of how it is computed.
  int64_t value = 0;
  /// The growth of an index if a segment is one update longer.
  int64_t slope = 0;
  /// The fewest updates of segments in which a truth value is true.
  int64_t from = 0;
  bool isKnown = false, isData = false;

  bool isPlain() const { return isKnown && !slope && !from; }
};

/// Ops that compute indices from indices.
enum class IndexOp {
  None,
  Add,
  Sub,
  Mul,
  DivU,
  RemU,
  DivS,
  RemS,
  MaxS,
  MinS,
  MaxU,
  MinU,
  And,
  Or,
  Xor,
  Cast,
  Select
};

/// Return the sum and the product of indices, which wrap.
inline int64_t addIndices(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}
inline int64_t multiplyIndices(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

/// Returns nothing if it divides by zero, or is no arithmetic of indices.
std::optional<int64_t> computeIndex(IndexOp op, llvm::ArrayRef<int64_t> in);

/// Computes a number from others, by an op. Returns false for an index that
/// cannot be computed (a division by zero).
bool computeNumber(mlir::OperationName op, mlir::DictionaryAttr attributes,
                   mlir::Type type, llvm::ArrayRef<DeviceNumber> operands,
                   DeviceNumber &result);
DeviceNumber callNumber(mlir::StringRef callee, unsigned result,
                        llvm::ArrayRef<DeviceNumber> operands);
DeviceNumber hyperparameterNumber(mlir::StringRef name);
DeviceNumber constantNumber(mlir::Attribute value);

/// A function made ready for interpretation, once for many lengths.
class DeviceCode {
public:
  /// Fails, with a diagnostic, on what is no function of a device.
  static mlir::FailureOr<DeviceCode> get(mlir::func::FuncOp function,
                                         mlir::SymbolTableCollection &symbols);

  mlir::func::FuncOp getFunction() const { return function; }
  mlir::SymbolTableCollection &getSymbols() const { return *symbols; }
  /// Returns true if it takes the newest version besides.
  bool takesNewest() const { return arguments.size() > 2; }
  /// Returns true if it can learn that its segment becomes shorter.
  bool asksForBound() const { return hasBound; }

private:
  friend class DeviceRun;
  friend class Repetition;
  struct BufferUse {
    int slot;
    bool reads, writes;
  };
  struct Instruction {
    enum Kind {
      Constant,
      Arith,
      Hyperparameter,
      Bound,
      Slot,
      Event,
      Call,
      Loop,
      Test,
      Error
    };
    Kind kind = Error;
    mlir::Operation *op = nullptr;
    TraceEvent::Kind event = TraceEvent::Mark;
    mlir::StringAttr symbol;
    int result = -1;
    llvm::SmallVector<int, 3> operands;
    llvm::SmallVector<BufferUse, 2> buffers;
    DeviceNumber constant;
    /// The op of arithmetic on indices, and its attributes.
    IndexOp arithmetic = IndexOp::None;
    mlir::DictionaryAttr attributes;
    /// The blocks in a loop or test.
    int body = -1, otherwise = -1;
    const char *error = nullptr;
  };
  struct SlotUse {
    mlir::StringAttr symbol;
    int32_t field;
    int64_t ring;
  };

  int getRegister(mlir::Value value);
  int addBlock(mlir::Block &block);
  void addOp(mlir::Operation *op, std::vector<Instruction> &block);
  void addEvent(Instruction &instruction, TraceEvent::Kind kind,
                mlir::FlatSymbolRefAttr symbol, mlir::Value number,
                mlir::ValueRange buffers);
  void addCall(mlir::func::CallOp call, Instruction &instruction);

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, int> registers;
  llvm::DenseMap<mlir::Value, int> slotNumbers;
  std::vector<SlotUse> slots;
  std::vector<std::vector<Instruction>> blocks;
  llvm::SmallVector<int, 3> arguments;
  bool hasBound = false;
  mlir::SymbolTableCollection *symbols = nullptr;
};

/// One execution of a device function.
class DeviceRun {
public:
  /// With `shortening`, the segment becomes shorter while it runs.
  DeviceRun(const DeviceCode &code, int64_t first, int64_t updates,
            int64_t newest,
            std::optional<Shortening> shortening = std::nullopt);

  /// Goes to the next event; false at the end; fails with a diagnostic.
  mlir::FailureOr<bool> next(TraceEvent &event);
  /// Visits all events that are left; fails with a diagnostic.
  mlir::LogicalResult
  forEachEvent(llvm::function_ref<void(TraceEvent &)> visit);
  /// The numbers among the operands of the call that was the last event, in
  /// their order.
  void getNumbers(llvm::SmallVectorImpl<DeviceNumber> &numbers) const;
  /// Returns true if shorter segments only leave out events of this one.
  bool isMonotone() const { return monotone; }

private:
  struct Frame {
    const std::vector<DeviceCode::Instruction> *block;
    size_t position = 0;
    int64_t from = 0;
    /// The loop that this is the body of, or null.
    const DeviceCode::Instruction *loop = nullptr;
    int64_t counter = 0, step = 1;
    DeviceNumber upper;
    bool hasBegun = false;
  };

  mlir::FailureOr<int64_t> get(mlir::Operation *user, int number);
  mlir::LogicalResult enterLoop(const DeviceCode::Instruction &loop);
  mlir::LogicalResult enterTest(const DeviceCode::Instruction &test);
  mlir::FailureOr<bool> addAccesses(const DeviceCode::Instruction &instruction,
                                    TraceEvent &event);
  mlir::LogicalResult step(const DeviceCode::Instruction &instruction);
  mlir::LogicalResult askForBound(const DeviceCode::Instruction &bound);
  mlir::FailureOr<DeviceNumber>
  getShortenedEnd(const DeviceCode::Instruction &loop);
  /// From how many updates on `value < upper`.
  int64_t getFrom(int64_t value, const DeviceNumber &upper, bool inclusive);

  const DeviceCode &code;
  int64_t updates;
  std::optional<Shortening> shortening;
  /// The device has learned that the segment is shorter.
  bool isShortened = false;
  bool monotone = true;
  std::vector<DeviceNumber> registers;
  std::vector<DeviceNumber> slotNumbers;
  llvm::SmallVector<Frame, 6> frames;
  const DeviceCode::Instruction *lastCall = nullptr;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICECODE_H
