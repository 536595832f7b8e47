//===- TieParameters.cpp - Copies of a parameter stay equal ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parameter that several stages read has a copy on each. Synchronous training
// adds up the gradients of the copies and updates them alike.
//===----------------------------------------------------------------------===//

#include "passes/Partition/Passes.h"

#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINETIEPARAMETERS
#include "passes/Partition/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
struct TieParametersPass
    : public penstock::impl::PipelineTieParametersBase<TieParametersPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // 1. Copies, by what they are copies of.
    llvm::MapVector<Attribute, SmallVector<VariableOp>> copies;
    for (auto variable : module.getOps<VariableOp>())
      if (auto original =
              variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
          original && variable.getRole() == Role::Parameter)
        copies[original].push_back(variable);
    llvm::DenseMap<StringAttr, unsigned> numbers;
    for (auto stage : module.getOps<StageOp>())
      numbers.try_emplace(stage.getSymNameAttr(), numbers.size());

    // 2. A group of each.
    SymbolTable symbols(module);
    OpBuilder builder(&getContext());
    for (auto &[name, variables] : copies) {
      auto original =
          symbols.lookup<VariableOp>(cast<FlatSymbolRefAttr>(name).getValue());
      if (!original) {
        variables.front().emitOpError("is a copy of ")
            << name << ", which is no variable";
        return signalPassFailure();
      }
      variables.insert(variables.begin(), original);
      llvm::sort(variables, [&](VariableOp a, VariableOp b) {
        return numbers.lookup(a.getStageAttr().getAttr()) <
               numbers.lookup(b.getStageAttr().getAttr());
      });
      SmallVector<Attribute> members;
      for (VariableOp variable : variables)
        members.push_back(
            builder.getArrayAttr(FlatSymbolRefAttr::get(variable)));
      builder.setInsertionPointAfter(variables.back());
      auto group = GroupOp::create(builder, original.getLoc(),
                                   (original.getSymName() + ".tied").str(),
                                   builder.getArrayAttr(members));
      group->remove();
      symbols.insert(group, std::next(variables.back()->getIterator()));
    }
  }
};
} // namespace
