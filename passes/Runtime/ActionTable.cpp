//===- ActionTable.cpp - Calls that a device may record -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime says before and after the calls of an action whether they are to
// be issued, or issued again.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/ActionTable.h"

#include "passes/Runtime/AbiStructs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace penstock;

/// Bytes of a scalar.
static constexpr int64_t kWord = 8;

LogicalResult ActionTable::collect(ModuleOp root) {
  WalkResult result = root.walk([&](kernel::ActionOp action) {
    Action entry = {static_cast<int64_t>(action.getKeys()),
                    static_cast<int64_t>(action.getScalars())};
    if (actions.insert({action.getNameAttr(), entry}).second)
      return WalkResult::advance();
    action.emitError() << "there is another action " << action.getNameAttr();
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  result = root.walk([&](kernel::ScalarOp scalar) {
    const auto *action = actions.find(scalar.getActionAttr());
    if (action != actions.end() &&
        static_cast<int64_t>(scalar.getIndex()) < action->second.scalars)
      return WalkResult::advance();
    scalar.emitError() << "no action " << scalar.getActionAttr()
                       << " has a scalar " << scalar.getIndex();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

Value ActionTable::getNumber(OpBuilder &builder, Location loc,
                             RuntimeCalls &runtime, StringAttr name) const {
  return runtime.number(builder, loc, actions.find(name) - actions.begin());
}

void ActionTable::convert(RuntimeCalls &runtime,
                          kernel::ActionOp action) const {
  OpBuilder builder(action);
  Location loc = action.getLoc();
  Value device = RuntimeCalls::getDevice(action);
  Value number = getNumber(builder, loc, runtime, action.getNameAttr());
  Value key =
      arith::IndexCastOp::create(builder, loc, runtime.i64, action.getKey());
  Value zero = runtime.number(builder, loc, 0);
  Value begun = runtime.call(builder, loc, "penstock_begin", runtime.i32,
                             {device, number, key});
  auto loop = scf::WhileOp::create(
      builder, loc, TypeRange(), ValueRange(begun),
      [&](OpBuilder &before, Location loc, ValueRange arguments) {
        Value isIssued = arith::CmpIOp::create(
            before, loc, arith::CmpIPredicate::ne, arguments.front(), zero);
        scf::ConditionOp::create(before, loc, isIssued, ValueRange());
      },
      [&](OpBuilder &after, Location loc, ValueRange) {
        Value ended = runtime.call(after, loc, "penstock_end", runtime.i32,
                                   {device, number});
        scf::YieldOp::create(after, loc, ended);
      });
  Block &body = loop.getAfter().front();
  body.getOperations().splice(body.begin(),
                              action.getBody().front().getOperations());
  action.erase();
}

void ActionTable::convert(RuntimeCalls &runtime,
                          kernel::ScalarOp scalar) const {
  OpBuilder builder(scalar);
  Location loc = scalar.getLoc();
  Value device = RuntimeCalls::getDevice(scalar);
  Value first = runtime.call(
      builder, loc, "penstock_find_scalars", runtime.pointer,
      {device, getNumber(builder, loc, runtime, scalar.getActionAttr())});
  auto offset = static_cast<int32_t>(scalar.getIndex() * kWord);
  Value address =
      LLVM::GEPOp::create(builder, loc, runtime.pointer, builder.getI8Type(),
                          first, ArrayRef<LLVM::GEPArg>{offset});
  scalar.replaceAllUsesWith(runtime.makeBuffer(
      builder, loc, cast<MemRefType>(scalar.getType()), address));
  scalar.erase();
}

LogicalResult ActionTable::convert(RuntimeCalls &runtime) const {
  return runtime.convertAll<kernel::ActionOp, kernel::ScalarOp>(
      [&](auto op) { convert(runtime, op); });
}

std::vector<Constant>
ActionTable::getActions(ConstantBuilder &constants) const {
  std::vector<Constant> table;
  for (auto &[name, action] : actions)
    table.push_back(abi::action{.name = constants.string(name.getValue()),
                                .keys = action.keys,
                                .scalar_count = action.scalars}
                        .get());
  return table;
}
