//===- TaskRuns.cpp - Runs of tasks that are one function -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See TaskRuns.h.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/TaskRuns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Returns true for what may be computed again anywhere.
static bool isPlace(Operation *op) {
  return isa<SlotOp, ScratchOp, arith::ConstantOp>(op);
}

static bool isArithmetic(Operation *op) {
  return isa<arith::ArithDialect>(op->getDialect());
}

/// Returns true for the device, which calls in the replay do not take yet.
static bool isDevice(Value value) {
  return isa<BlockArgument>(value) &&
         isa<LLVM::LLVMPointerType>(value.getType());
}

std::optional<TaskRun> TaskRun::find(MarkOp mark) {
  // 1. What the run does, up to the first op that is of no run.
  TaskRun run;
  llvm::DenseSet<Operation *> within;
  bool calls = false;
  for (Operation *op = mark; op; op = op->getNextNode()) {
    bool isCall = isa<func::CallOp>(op);
    if (isCall || isa<HyperparameterOp>(op) || op == mark)
      run.effects.push_back(op);
    else if (!isPlace(op) && !isArithmetic(op))
      break;
    calls |= isCall;
    within.insert(op);
  }
  if (!calls)
    return std::nullopt;

  // 2. What that needs.
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> inputs;
  bool isComplete = true;
  auto visit = [&](auto &visit, Operation *op) -> void {
    if (ops.contains(op))
      return;
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition && (isPlace(definition) || within.contains(definition)))
        visit(visit, definition);
      else if (isDevice(operand))
        continue;
      else if (isa<IndexType, IntegerType, FloatType>(operand.getType()))
        inputs.insert(operand);
      else
        isComplete = false;
    }
    ops.insert(op);
  };
  for (Operation *op : run.effects)
    visit(visit, op);

  // 3. Nobody else uses what it computes.
  for (Operation *op : run.effects)
    for (Operation *user : op->getUsers())
      isComplete &= ops.contains(user);
  if (!isComplete)
    return std::nullopt;
  run.ops = ops.takeVector();
  run.inputs = inputs.takeVector();
  return run;
}

bool TaskRun::listsPositions(SlotOp slot) {
  constexpr uint64_t kMostPositions = 16;
  return slot.getPlacesAttr() || slot.getRing().value_or(1) <= kMostPositions;
}

SmallVector<int64_t> TaskRun::getNumbers(const ProgramTable &table) const {
  SmallVector<int64_t> numbers;
  for (Operation *op : ops) {
    if (auto mark = dyn_cast<MarkOp>(op))
      numbers.push_back(table.getTask(mark.getTask()));
    else if (auto scratch = dyn_cast<ScratchOp>(op))
      numbers.push_back(static_cast<int64_t>(scratch.getAt().value_or(0)));
    else if (auto slot = dyn_cast<SlotOp>(op)) {
      if (!listsPositions(slot))
        numbers.append(
            {slot.getOffset(0), slot.getOffset(1) - slot.getOffset(0)});
      else
        for (uint64_t i : llvm::seq(slot.getRing().value_or(1)))
          numbers.push_back(slot.getOffset(static_cast<int64_t>(i)));
    }
  }
  return numbers;
}

/// All that is the same in equal runs.
TaskRuns::Key TaskRuns::getKey(const TaskRun &run, const ProgramTable &table) {
  Key key;
  auto addNumber = [&](uint64_t number) {
    key.push_back(reinterpret_cast<const void *>(number));
  };
  llvm::DenseMap<Value, uint64_t> numbers;
  for (Value input : run.inputs) {
    numbers.try_emplace(input, numbers.size());
    key.push_back(input.getType().getAsOpaquePointer());
  }
  for (Operation *op : run.ops) {
    key.push_back(op->getName().getAsOpaquePointer());
    for (Value operand : op->getOperands())
      if (!isDevice(operand))
        addNumber(numbers.lookup(operand));
    addNumber(op->getNumResults());
    for (Value result : op->getResults()) {
      numbers.try_emplace(result, numbers.size());
      key.push_back(result.getType().getAsOpaquePointer());
    }
    if (auto slot = dyn_cast<SlotOp>(op)) {
      addNumber(slot.getRing().value_or(1));
      addNumber(TaskRun::listsPositions(slot));
    } else if (auto parameter = dyn_cast<HyperparameterOp>(op)) {
      addNumber(table.getHyperparameter(parameter.getName()));
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      key.push_back(call.getCalleeAttr().getAsOpaquePointer());
    } else if (!isa<MarkOp, ScratchOp>(op)) {
      key.push_back(op->getPropertiesAsAttribute().getAsOpaquePointer());
      key.push_back(op->getDiscardableAttrDictionary().getAsOpaquePointer());
    }
  }
  return key;
}

void TaskRuns::count(ModuleOp module, const ProgramTable &table) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kDeviceAttr))
      function.walk([&](MarkOp mark) {
        if (std::optional<TaskRun> run = TaskRun::find(mark))
          ++entries[getKey(*run, table)].count;
      });
}

LLVM::LLVMFuncOp *TaskRuns::find(const TaskRun &run,
                                 const ProgramTable &table) {
  auto known = entries.find(getKey(run, table));
  if (known == entries.end() || known->second.count < 2)
    return nullptr;
  return &known->second.function;
}
