//===- StageNumbers.cpp - Numbers that kernels read in memory -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a stage function computes from its numbers is computed by its caller, on
// the host as before, so that no bit changes.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/StageNumbers.h"

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

/// Global memory, as NVPTX numbers address spaces.
static constexpr int64_t kGlobalMemory = 1;

static bool isNumber(Type type) { return type.isIntOrIndexOrFloat(); }

MemRefType penstock::getNumberInMemory(Type number) {
  Type index = IntegerType::get(number.getContext(), 64);
  return MemRefType::get({}, number, MemRefLayoutAttrInterface(),
                         IntegerAttr::get(index, kGlobalMemory));
}

//===----------------------------------------------------------------------===//
// Which numbers
//===----------------------------------------------------------------------===//

/// Returns true if an op only computes numbers from numbers.
static bool isArithmetic(Operation *op) {
  return isPure(op) && op->getNumRegions() == 0 && op->getNumResults() != 0 &&
         llvm::all_of(op->getOperandTypes(), isNumber) &&
         llvm::all_of(op->getResultTypes(), isNumber);
}

/// Returns true if a value follows from the arguments of its function alone.
static bool isComputed(Value value, func::FuncOp function) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &function.front();
  return isArithmetic(value.getDefiningOp()) &&
         llvm::all_of(value.getDefiningOp()->getOperands(), [&](Value operand) {
           return isComputed(operand, function);
         });
}

void StageNumbers::collectUses(Stage &stage) {
  llvm::SetVector<Value> values;
  for (BlockArgument argument : stage.function.getArguments())
    if (isNumber(argument.getType()))
      values.insert(argument);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      if (isArithmetic(user)) {
        values.insert(user->result_begin(), user->result_end());
        continue;
      }
      auto launch = dyn_cast<kernel::LaunchOp>(user);
      if (!launch)
        stage.reason = "the host needs a number of the run for more than a "
                       "kernel's parameter";
      else if (!isComputed(values[i], stage.function))
        stage.reason = "a kernel's parameter depends on a number of the run "
                       "and on a loop";
      if (!stage.reason.empty())
        return;
      stage.uses.push_back({launch, use.getOperandNumber(), values[i]});
      stage.numbers.insert(values[i]);
    }
}

StageNumbers::StageNumbers(ModuleOp module, SymbolTableCollection &symbols,
                           ArrayRef<func::CallOp> calls)
    : module(module), symbols(symbols) {
  // 1. What their numbers are for.
  for (func::CallOp call : calls) {
    auto [entry, isNew] = stages.insert({call.getCallee(), {}});
    if (!isNew)
      continue;
    Stage &stage = entry->second;
    stage.function = symbols.lookupSymbolIn<func::FuncOp>(
        module, call.getCalleeAttr().getAttr());
    collectUses(stage);
    if (!stage.reason.empty()) {
      stage.uses.clear();
      stage.numbers.clear();
      continue;
    }
    stage.arguments.resize(stage.function.getNumArguments());
    for (BlockArgument argument : stage.function.getArguments())
      if (isNumber(argument.getType()))
        stage.arguments.set(argument.getArgNumber());
  }

  // 2. Places instead, in functions and kernels. They stand before the first
  // number.
  convertKernels();
  for (auto &[name, stage] : stages) {
    llvm::DenseMap<Value, Value> places;
    int first = stage.arguments.find_first();
    for (auto [i, number] : llvm::enumerate(stage.numbers)) {
      unsigned at = static_cast<unsigned>(first) + static_cast<unsigned>(i);
      (void)stage.function.insertArgument(
          at, MemRefType::get({}, number.getType()), {}, number.getLoc());
      places[number] = stage.function.getArgument(at);
    }
    for (Use &use : stage.uses)
      use.launch->setOperand(use.parameter, places.lookup(use.number));
  }
}

StringRef StageNumbers::getReason(StringRef function) const {
  return stages.find(function)->second.reason;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Makes parameters of a kernel the places of what they were.
static void takePlaces(gpu::GPUFuncOp kernel, const llvm::BitVector &mask) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.front());
  SmallVector<Type> types(kernel.getArgumentTypes());
  for (unsigned i : mask.set_bits()) {
    BlockArgument argument = kernel.getArgument(i);
    types[i] = getNumberInMemory(argument.getType());
    argument.setType(types[i]);
    auto number = memref::LoadOp::create(builder, argument.getLoc(), argument);
    argument.replaceAllUsesExcept(number, number);
  }
  kernel.setFunctionType(builder.getFunctionType(types, {}));
}

void StageNumbers::convertKernels() {
  // 1. The parameters, by kernel and launch.
  llvm::DenseMap<Operation *, llvm::BitVector> masks;
  for (auto &[name, stage] : stages)
    for (Use &use : stage.uses) {
      llvm::BitVector &mask = masks[use.launch];
      mask.resize(use.launch.getParameters().size());
      mask.set(use.parameter);
    }
  llvm::MapVector<Attribute, SmallVector<kernel::LaunchOp>> launches;
  module.walk([&](kernel::LaunchOp launch) {
    launches[launch.getKernelAttr()].push_back(launch);
  });

  // 2. One kernel for all launches that agree.
  for (auto &[symbol, users] : launches) {
    auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
        users.front(), cast<SymbolRefAttr>(symbol));
    if (!kernel)
      continue;
    llvm::MapVector<Attribute, SmallVector<kernel::LaunchOp>> byMask;
    Builder builder(module.getContext());
    for (kernel::LaunchOp launch : users) {
      SmallVector<bool> bits(launch.getParameters().size());
      if (auto mask = masks.find(launch); mask != masks.end())
        for (unsigned i : mask->second.set_bits())
          bits[i] = true;
      byMask[builder.getDenseBoolArrayAttr(bits)].push_back(launch);
    }
    bool isTaken = llvm::any_of(users, [&](kernel::LaunchOp launch) {
      return !masks.contains(launch);
    });
    gpu::GPUFuncOp original = isTaken || byMask.size() > 1
                                  ? cast<gpu::GPUFuncOp>(kernel->clone())
                                  : gpu::GPUFuncOp();
    for (auto &[bits, group] : byMask) {
      auto mask = masks.find(group.front());
      if (mask == masks.end())
        continue;
      gpu::GPUFuncOp changed = kernel;
      if (isTaken) {
        changed = cast<gpu::GPUFuncOp>(original->clone());
        auto parent = kernel->getParentOfType<gpu::GPUModuleOp>();
        symbols.getSymbolTable(parent).insert(changed);
      }
      isTaken = true;
      takePlaces(changed, mask->second);
      for (kernel::LaunchOp launch : group)
        launch.setKernelAttr(
            SymbolRefAttr::get(cast<SymbolRefAttr>(symbol).getRootReference(),
                               FlatSymbolRefAttr::get(changed)));
    }
    if (original)
      original->erase();
  }
}

//===----------------------------------------------------------------------===//
// Callers
//===----------------------------------------------------------------------===//

/// Computes a value of a stage function for a caller. Numbers stand behind that
/// many places, which the caller does not pass yet.
static Value compute(OpBuilder &builder, Value value, unsigned places,
                     func::CallOp call, NumberCache &cache) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return call.getOperand(argument.getArgNumber() - places);
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(compute(builder, operand, places, call, cache));
  unsigned result = cast<OpResult>(value).getResultNumber();
  for (const NumberCache::Entry &entry : cache.entries)
    if (entry.op == op && entry.operands == operands)
      return entry.clone->getResult(result);
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  cache.entries.push_back({op, operands, clone});
  return clone->getResult(result);
}

SmallVector<Value> StageNumbers::computeNumbers(OpBuilder &builder,
                                                func::CallOp call,
                                                NumberCache &cache) const {
  const Stage &stage = stages.find(call.getCallee())->second;
  SmallVector<Value> numbers;
  for (Value number : stage.numbers)
    numbers.push_back(
        compute(builder, number, stage.numbers.size(), call, cache));
  return numbers;
}

void StageNumbers::passPlaces(func::CallOp call, ValueRange places) const {
  const Stage &stage = stages.find(call.getCallee())->second;
  if (stage.arguments.none())
    return;
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (static_cast<int>(i) == stage.arguments.find_first())
      llvm::append_range(operands, places);
    if (!stage.arguments[i])
      operands.push_back(operand);
  }
  call->setOperands(operands);
}

void StageNumbers::finish() {
  for (auto &[name, stage] : stages) {
    if (stage.arguments.none())
      continue;
    // What computed numbers is dead now, the last of it first.
    SmallVector<Operation *> arithmetic;
    stage.function.walk([&](Operation *op) {
      if (isArithmetic(op))
        arithmetic.push_back(op);
    });
    for (Operation *op : llvm::reverse(arithmetic))
      if (op->use_empty())
        op->erase();
    llvm::BitVector numbers(stage.function.getNumArguments());
    for (unsigned i : stage.arguments.set_bits())
      numbers.set(i + stage.numbers.size());
    (void)stage.function.eraseArguments(numbers);
  }
  // A replay declares what it calls.
  module.walk([&](func::FuncOp function) {
    auto *stage = stages.find(function.getSymName());
    if (!function.isDeclaration() || stage == stages.end() ||
        stage->second.arguments.none())
      return;
    function.setFunctionType(stage->second.function.getFunctionType());
    if (ArrayAttr attributes = stage->second.function.getArgAttrsAttr())
      function.setArgAttrsAttr(attributes);
    else
      function.removeArgAttrsAttr();
  });
}
