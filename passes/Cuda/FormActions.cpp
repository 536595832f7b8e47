//===- FormActions.cpp - Calls that a GPU runs as one graph ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph repeats what was recorded, address by address and number by number.
// Addresses follow from positions in rings, of which there are few: the key.
// Numbers, such as learning rates, change with every run, so that kernels read
// them from memory, where one kernel stores them before the action.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/StageNumbers.h"

#include "llvm/ADT/StringSet.h"

#include <numeric>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFORMACTIONS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// Graphs of one action, at most.
constexpr int64_t kMostKeys = 64;
/// Numbers that one kernel stores, at most: parameters have 4 KiB of room.
constexpr size_t kMostStores = 128;

/// Calls of stage functions with nothing between them that the host or another
/// device could notice.
struct CallSequence {
  SmallVector<func::CallOp> calls;
  /// Computations between the calls, which do not depend on them.
  SmallVector<Operation *> between;
  /// The task that is marked before them; null if there is none.
  MarkOp mark;
};

/// The digits of a key: what numbers of slots are counted from, and how many
/// residues of it tell all positions in rings apart.
using KeyDigits = llvm::MapVector<Value, int64_t>;

/// Returns what a number is counted from: all but the constants in it.
Value getBase(Value number) {
  while (Operation *op = number.getDefiningOp()) {
    if (!isa<arith::AddIOp, arith::SubIOp>(op) ||
        !getConstantIntValue(op->getOperand(1)))
      break;
    number = op->getOperand(0);
  }
  return number;
}

class ActionFormer {
public:
  ActionFormer(ModuleOp module, StringRef kind) : module(module), kind(kind) {}

  void run();

private:
  bool isStageCall(Operation *op);
  void collect(Block &block, SmallVectorImpl<CallSequence> &sequences);
  std::string createName(const CallSequence &sequence);
  std::string findKey(const CallSequence &sequence, KeyDigits &digits);
  void form(CallSequence &sequence);
  void store(OpBuilder &builder, Location loc, ArrayRef<Value> places,
             ArrayRef<Value> numbers);
  gpu::GPUFuncOp getStoreKernel(TypeRange types);

  ModuleOp module;
  StringRef kind;
  SymbolTableCollection symbols;
  std::optional<StageNumbers> stages;
  llvm::StringSet<> names;
  llvm::DenseMap<Type, gpu::GPUFuncOp> storeKernels; // by signature
};

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// A call that computes numbers from numbers.
bool isNumberCall(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  return call && call.getNumResults() != 0 &&
         llvm::none_of(call->getOperandTypes(), llvm::IsaPred<MemRefType>);
}

bool ActionFormer::isStageCall(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call || call.getNumResults() != 0)
    return false;
  auto callee =
      module.lookupSymbol<func::FuncOp>(call.getCalleeAttr().getAttr());
  return callee && isStageFunction(callee, kind);
}

void ActionFormer::collect(Block &block,
                           SmallVectorImpl<CallSequence> &sequences) {
  CallSequence sequence;
  SmallVector<Operation *> between;
  MarkOp mark;
  auto finish = [&] {
    if (!sequence.calls.empty())
      sequences.push_back(std::move(sequence));
    sequence = {};
    between.clear();
  };
  for (Operation &op : block) {
    if (isStageCall(&op)) {
      if (sequence.calls.empty())
        sequence.mark = mark;
      else
        sequence.between.append(between);
      between.clear();
      sequence.calls.push_back(cast<func::CallOp>(op));
    } else if ((isPure(&op) && op.getNumRegions() == 0) || isNumberCall(&op)) {
      if (!sequence.calls.empty())
        between.push_back(&op);
    } else {
      finish();
      mark = dyn_cast<MarkOp>(op);
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          collect(inner, sequences);
    }
  }
  finish();
}

/// Names an action after its task or, without one, its first function.
std::string ActionFormer::createName(const CallSequence &sequence) {
  func::CallOp first = sequence.calls.front();
  bool isReplay = first->getParentOfType<ModuleOp>() != module;
  MarkOp mark = sequence.mark;
  std::string base = (isReplay ? "replay." : "");
  base += mark ? mark.getTask() : first.getCallee();
  std::string name = base;
  for (unsigned i = 1; !names.insert(name).second; ++i)
    name = base + "." + std::to_string(i);
  return name;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Finds what the addresses of all operands depend on. Returns why they have no
/// key, or an empty string.
std::string ActionFormer::findKey(const CallSequence &sequence,
                                  KeyDigits &digits) {
  for (func::CallOp call : sequence.calls)
    for (Value operand : call.getOperands()) {
      if (!isa<MemRefType>(operand.getType()) ||
          operand.getDefiningOp<ScratchOp>())
        continue;
      auto slot = operand.getDefiningOp<SlotOp>();
      if (!slot)
        return "an operand is no slot of the device's memory";
      auto ring = static_cast<int64_t>(slot.getRing().value_or(1));
      Value base = getBase(slot.getNumber());
      if (ring == 1 || getConstantIntValue(base))
        continue;
      int64_t &residues = digits.insert({base, 1}).first->second;
      residues = std::lcm(residues, ring);
      if (residues > kMostKeys)
        break;
    }
  int64_t keys = 1;
  for (auto &[base, residues] : digits)
    if ((keys *= residues) > kMostKeys)
      return "its rings stand in more than " + std::to_string(kMostKeys) +
             " ways";
  return "";
}

/// The number of the way in which the rings stand.
Value createKey(OpBuilder &builder, Location loc, const KeyDigits &digits) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value key;
  for (auto &[base, residues] : digits) {
    // A number that slots are counted from may itself be negative.
    Value size = constant(residues);
    Value digit = arith::RemSIOp::create(builder, loc, base, size);
    digit = arith::RemSIOp::create(
        builder, loc, arith::AddIOp::create(builder, loc, digit, size), size);
    key = !key ? digit
               : arith::AddIOp::create(
                     builder, loc,
                     arith::MulIOp::create(builder, loc, key, size), digit)
                     .getResult();
  }
  return key ? key : constant(0);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

gpu::GPUFuncOp ActionFormer::getStoreKernel(TypeRange types) {
  OpBuilder builder(module.getContext());
  // The store of the i-th number: first all places, then all numbers.
  SmallVector<Type> parameters;
  for (Type type : types)
    parameters.push_back(getNumberInMemory(type));
  llvm::append_range(parameters, types);
  auto signature = builder.getFunctionType(parameters, {});
  gpu::GPUFuncOp &kernel = storeKernels[signature];
  if (kernel)
    return kernel;
  auto kernels = module.lookupSymbol<gpu::GPUModuleOp>(cuda::kKernelsModule);
  Location loc = kernels.getLoc();
  kernel = gpu::GPUFuncOp::create(builder, loc, "store_numbers", signature);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  builder.getUnitAttr());
  builder.setInsertionPointToStart(&kernel.front());
  for (size_t i : llvm::seq(types.size()))
    memref::StoreOp::create(builder, loc, kernel.getArgument(types.size() + i),
                            kernel.getArgument(i));
  gpu::ReturnOp::create(builder, loc);
  (void)setLaunchSizes(kernel, 1, 1);
  symbols.getSymbolTable(kernels).insert(kernel);
  return kernel;
}

void ActionFormer::store(OpBuilder &builder, Location loc,
                         ArrayRef<Value> places, ArrayRef<Value> numbers) {
  for (size_t i = 0; i < numbers.size(); i += kMostStores) {
    size_t count = std::min(kMostStores, numbers.size() - i);
    SmallVector<Value> parameters(places.slice(i, count));
    llvm::append_range(parameters, numbers.slice(i, count));
    gpu::GPUFuncOp kernel =
        getStoreKernel(ValueRange(numbers.slice(i, count)).getTypes());
    auto symbol =
        SymbolRefAttr::get(builder.getStringAttr(cuda::kKernelsModule),
                           FlatSymbolRefAttr::get(kernel));
    DenseI64ArrayAttr one = builder.getDenseI64ArrayAttr({1, 1, 1});
    kernel::LaunchOp::create(builder, loc, symbol, one, one, parameters);
  }
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

void ActionFormer::form(CallSequence &sequence) {
  // 1. What can be recorded, and why not.
  func::CallOp first = sequence.calls.front();
  KeyDigits digits;
  std::string reason = findKey(sequence, digits);
  for (func::CallOp call : sequence.calls)
    if (reason.empty())
      reason = stages->getReason(call.getCallee()).str();
  int64_t keys = 0;
  if (reason.empty()) {
    keys = 1;
    for (auto &[base, residues] : digits)
      keys *= residues;
  } else {
    first.emitRemark("runs call by call and not as a graph: ") << reason;
  }

  // 2. What the calls need comes before all of them.
  for (Operation *op : sequence.between)
    op->moveBefore(first);
  OpBuilder builder(first);
  Location loc = first.getLoc();
  std::string name = createName(sequence);
  llvm::MapVector<Value, Value> places; // by number
  NumberCache cache;
  for (func::CallOp call : sequence.calls) {
    SmallVector<Value> passed;
    for (Value number : stages->computeNumbers(builder, call, cache)) {
      Value &place = places[number];
      if (!place)
        place = kernel::ScalarOp::create(builder, loc,
                                         MemRefType::get({}, number.getType()),
                                         name, places.size() - 1);
      passed.push_back(place);
    }
    stages->passPlaces(call, passed);
  }
  if (keys == 0 && places.empty())
    return;

  // 3. The action.
  store(builder, loc, llvm::to_vector(llvm::make_second_range(places)),
        llvm::to_vector(llvm::make_first_range(places)));
  Value key = keys ? createKey(builder, loc, digits)
                   : arith::ConstantIndexOp::create(builder, loc, 0);
  auto action =
      kernel::ActionOp::create(builder, loc, name, key, keys, places.size());
  Block &body = action.getBody().emplaceBlock();
  for (func::CallOp call : sequence.calls)
    call->moveBefore(&body, body.end());
}

void ActionFormer::run() {
  SmallVector<CallSequence> sequences;
  module.walk([&](func::FuncOp function) {
    if (function->hasAttr(kDeviceAttr) && !function.isDeclaration())
      for (Block &block : function.getBody())
        collect(block, sequences);
  });
  SmallVector<func::CallOp> calls;
  for (CallSequence &sequence : sequences)
    llvm::append_range(calls, sequence.calls);
  stages.emplace(module, symbols, calls);
  for (CallSequence &sequence : sequences)
    form(sequence);
  stages->finish();
}

struct FormActionsPass
    : penstock::impl::PipelineFormActionsBase<FormActionsPass> {
  using PipelineFormActionsBase::PipelineFormActionsBase;

  void runOnOperation() override { ActionFormer(getOperation(), kind).run(); }
};

} // namespace
