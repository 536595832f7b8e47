//===- Partition.cpp - Cut the forward function into stages ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The units of the linear order are ONNX nodes: runs of ops with one node name.
// A cut between two units carries the values that are defined before and used
// after it; what later stages can compute by themselves (constants, expressions
// of parameters) is not carried.
//===----------------------------------------------------------------------===//

#include "passes/Partition/Passes.h"

#include "ForwardProgram.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Planner/LinearPartition.h"
#include "penstock/Support/NodeName.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPARTITION
#include "passes/Partition/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {
/// A run of ops that came from one ONNX node.
struct Unit {
  StringRef name;
  SmallVector<Operation *> ops;
};

class PartitionPass
    : public penstock::impl::PipelinePartitionBase<PartitionPass> {
public:
  using PipelinePartitionBase::PipelinePartitionBase;
  void runOnOperation() override;

private:
  FailureOr<SmallVector<int64_t>> getExplicitCuts(ForwardProgram &program);
  LinearProblem buildProblem(ForwardProgram &program);
  void explain(const LinearProblem &problem, ArrayRef<int64_t> cuts);

  SmallVector<Unit> units;
};
} // namespace

static SmallVector<Unit> collectUnits(ForwardProgram &program) {
  SmallVector<Unit> units;
  for (Operation &op :
       program.function.getBody().front().without_terminator()) {
    if (program.isRecomputable(&op))
      continue;
    StringRef name = getNodeName(op.getLoc());
    if (units.empty() || units.back().name != name || name.empty())
      units.push_back({name, {}});
    units.back().ops.push_back(&op);
  }
  return units;
}

FailureOr<SmallVector<int64_t>>
PartitionPass::getExplicitCuts(ForwardProgram &program) {
  SmallVector<int64_t> cuts;
  for (const std::string &name : splitAt) {
    int64_t after = -1;
    for (auto [index, unit] : llvm::enumerate(units))
      for (Operation *op : unit.ops)
        if (llvm::is_contained(getAllNames(op->getLoc()), name))
          after = index;
    if (after < 0)
      return program.function.emitError()
             << "--split-at: the model has no node or value named '" << name
             << "' that reaches the loss";
    int64_t cut = after + 1;
    if (cut == static_cast<int64_t>(units.size()))
      return program.function.emitError() << "--split-at: nothing comes after '"
                                          << name << "', it cannot end a stage";
    if (!cuts.empty() && cut <= cuts.back())
      return program.function.emitError()
             << "--split-at: '" << name << "' does not come after '"
             << splitAt[cuts.size() - 1]
             << "'; list the cuts in the order of the model";
    cuts.push_back(cut);
  }
  return cuts;
}

LinearProblem PartitionPass::buildProblem(ForwardProgram &program) {
  MachineRates rates;
  LinearProblem problem;
  int64_t count = units.size();
  problem.cutSeconds.assign(count + 1, 0);
  llvm::DenseMap<Operation *, int64_t> unitOf;
  for (auto [index, unit] : llvm::enumerate(units)) {
    double seconds = 0;
    for (Operation *op : unit.ops) {
      seconds += getTrainingSeconds(getAnalyticCost(op), rates);
      unitOf[op] = index;
    }
    problem.unitSeconds.push_back(seconds);
  }
  // A value is carried over every cut between its definition and its last use:
  // the activation forward, its cotangent back.
  for (Unit &unit : units) {
    for (Operation *op : unit.ops) {
      int64_t from = unitOf[op];
      for (Value value : op->getResults()) {
        int64_t last = from;
        for (Operation *user : program.getUsersInFunction(value))
          if (auto it = unitOf.find(user); it != unitOf.end())
            last = std::max(last, it->second);
        double seconds =
            2 * getTypeBytes(value.getType()) / rates.bytesPerSecond;
        for (int64_t cut = from + 1; cut <= last; ++cut)
          problem.cutSeconds[cut] += seconds;
      }
    }
  }
  return problem;
}

void PartitionPass::explain(const LinearProblem &problem,
                            ArrayRef<int64_t> cuts) {
  MachineRates rates;
  int64_t begin = 0;
  for (auto [index, cut] : llvm::enumerate(cuts)) {
    units[cut].ops.front()->emitRemark()
        << llvm::formatv(
               "stage {0} begins here, after '{1}': it carries {2:F0} bytes; "
               "stage {3} takes {4:F2} us",
               index + 1, units[cut - 1].name,
               problem.cutSeconds[cut] * rates.bytesPerSecond / 2, index,
               getStageSeconds(problem, begin, cut) * 1e6)
               .str();
    begin = cut;
  }
}

void PartitionPass::runOnOperation() {
  FailureOr<ForwardProgram> program = ForwardProgram::find(getOperation());
  if (failed(program))
    return signalPassFailure();
  if (!program->function.getOps<pipeline::BoundaryOp>().empty())
    return;

  units = collectUnits(*program);
  FailureOr<SmallVector<int64_t>> cuts = getExplicitCuts(*program);
  if (failed(cuts))
    return signalPassFailure();
  LinearProblem problem = buildProblem(*program);
  int64_t count = units.size();
  if (cuts->empty()) {
    int64_t wanted = std::max<int64_t>(stages, 1);
    if (wanted > std::max<int64_t>(count, 1)) {
      program->function.emitError()
          << "--stages=" << wanted << ": the model has " << count
          << " nodes that compute, so at most " << count << " stages";
      return signalPassFailure();
    }
    if (wanted > 1)
      cuts = partitionLinearly(problem, wanted).cuts;
  } else if (stages > 0 && stages != static_cast<int64_t>(cuts->size()) + 1) {
    program->function.emitError()
        << "--stages=" << stages.getValue()
        << " contradicts --split-at, which names " << cuts->size()
        << " cuts for " << cuts->size() + 1 << " stages";
    return signalPassFailure();
  }

  OpBuilder builder(&getContext());
  for (auto [index, cut] : llvm::enumerate(*cuts)) {
    builder.setInsertionPoint(units[cut].ops.front());
    pipeline::BoundaryOp::create(builder, program->function.getLoc(),
                                 builder.getI64IntegerAttr(index + 1));
  }
  explain(problem, *cuts);
}
