//===- SendParameters.cpp - One owner for what several stages read --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The owner's forward makes a copy of what it reads, which is an activation
// from there on: it travels with the microbatch, and its cotangent travels back
// into the owner's gradient. So all stages see one version, whatever the
// method. A statistic moves with what each of its nodes sees, and no copy of it
// could: stages that share one are rejected by pipeline-outline-stages.
//===----------------------------------------------------------------------===//

#include "passes/Partition/Passes.h"

#include "penstock/Partition/ForwardProgram.h"
#include "penstock/Support/Structured.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESENDPARAMETERS
#include "passes/Partition/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

struct SendParameters
    : penstock::impl::PipelineSendParametersBase<SendParameters> {
  void runOnOperation() override {
    FailureOr<ForwardProgram> found = ForwardProgram::find(getOperation());
    if (failed(found))
      return signalPassFailure();
    program = &*found;
    Block &block = program->function.getBody().front();

    // 1. The stages that read each parameter, directly or in an expression of
    // parameters that they evaluate themselves.
    llvm::MapVector<Value, llvm::SmallSetVector<unsigned, 2>> readers;
    SmallVector<Operation *> ends;
    for (Operation &op : block) {
      if (isa<BoundaryOp>(op) || op.hasTrait<OpTrait::IsTerminator>())
        ends.push_back(&op);
      else if (!program->isRecomputable(&op))
        for (Value value : getUsedValues(&op))
          findParameters(value, [&](Value parameter) {
            readers[parameter].insert(ends.size());
          });
    }

    // 2. The owner's copy, at the end of its ops.
    std::vector<IRMapping> sent(ends.size());
    for (auto &[parameter, stages] : readers) {
      if (stages.size() < 2 || !isTrained(parameter))
        continue;
      unsigned owner = *llvm::min_element(stages);
      OpBuilder builder(ends[owner]);
      Value copy = createCopy(builder, parameter);
      for (unsigned stage : stages)
        if (stage != owner)
          sent[stage].map(parameter, copy);
    }

    // 3. The others use it.
    unsigned stage = 0;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (stage < ends.size() && &op == ends[stage]) {
        ++stage;
        continue;
      }
      if (program->isRecomputable(&op))
        continue;
      OpBuilder builder(&op);
      for (Value value : getUsedValues(&op)) {
        Value other = rewrite(value, sent[stage], builder);
        if (other != value)
          op.walk([&](Operation *inner) {
            inner->replaceUsesOfWith(value, other);
          });
      }
    }
  }

  bool isTrained(Value parameter) {
    auto read = program->getRead(cast<BlockArgument>(parameter).getArgNumber());
    auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(
        read, read.getVariableAttr());
    return variable && !variable.getFrozen() &&
           variable.getRole() != Role::Statistic &&
           isa<FloatType>(variable.getTensorType().getElementType());
  }

  void findParameters(Value value, llvm::function_ref<void(Value)> visit) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument) {
      if (argument.getOwner() == &program->function.getBody().front() &&
          program->getRead(argument.getArgNumber()))
        visit(value);
      return;
    }
    if (program->isRecomputable(value.getDefiningOp()))
      for (Value used : getUsedValues(value.getDefiningOp()))
        findParameters(used, visit);
  }

  /// `value`, with what was sent in the place of parameters.
  Value rewrite(Value value, IRMapping &sent, OpBuilder &builder) {
    if (Value known = sent.lookupOrNull(value))
      return known;
    Operation *producer = value.getDefiningOp();
    if (!producer || !program->isRecomputable(producer))
      return value;
    bool any = false;
    for (Value used : getUsedValues(producer))
      any |= rewrite(used, sent, builder) != used;
    if (!any)
      return value;
    builder.clone(*producer, sent);
    return sent.lookup(value);
  }

  /// Named like the parameter, and so is the channel that it will go through.
  Value createCopy(OpBuilder &builder, Value parameter) {
    auto read = program->getRead(cast<BlockArgument>(parameter).getArgNumber());
    Location loc = NameLoc::get(builder.getStringAttr(read.getVariable()));
    Value copy = Structured(builder, loc).copy(parameter);
    copy.getDefiningOp()->setAttr(
        kSentAttr, FlatSymbolRefAttr::get(read.getVariableAttr().getAttr()));
    return copy;
  }

  ForwardProgram *program = nullptr;
};

} // namespace
