//===- Partition.cpp - Cut the forward function into stages ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuts that the user names, or those of the dynamic program over the line
// of ONNX nodes (Units.h).
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Partition/Passes.h"

#include "dialects/Onnx/Onnx.h"
#include "penstock/Partition/Units.h"
#include "penstock/Planner/LinearPartition.h"
#include "penstock/Support/NodeName.h"
#include "penstock/Target/PlannedCost.h"
#include "penstock/nearest.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPARTITION
#include "passes/Partition/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {
class PartitionPass
    : public penstock::impl::PipelinePartitionBase<PartitionPass> {
public:
  using PipelinePartitionBase::PipelinePartitionBase;
  void runOnOperation() override;

private:
  FailureOr<SmallVector<int64_t>> getExplicitCuts(ForwardProgram &program,
                                                  ArrayRef<Unit> units);
  FailureOr<LinearProblem> getProblem(ForwardProgram &program,
                                      const Units &units, int64_t stages);
};
} // namespace

/// Returns all that a cut may be named after.
static std::vector<std::string> getNames(ArrayRef<Unit> units) {
  std::vector<std::string> names;
  for (const Unit &unit : units)
    for (Operation *op : unit.ops)
      for (StringRef name : getAllNames(op->getLoc()))
        if (names.empty() || names.back() != name)
          names.push_back(name.str());
  return names;
}

/// Returns what to write for a name that does not exist: one that it is likely
/// to mean, or the nearest ones of those that --list-nodes lists.
static std::string suggestNames(StringRef wanted, ArrayRef<Unit> units) {
  std::string near = suggestNearest(wanted, getNames(units));
  if (!near.empty())
    return near;
  constexpr size_t kMostNames = 3, kMostLetters = 128;
  SmallVector<std::pair<size_t, size_t>> order;
  for (auto [index, unit] : llvm::enumerate(units))
    if (!unit.name.empty())
      order.emplace_back(getEditDistance(wanted.take_front(kMostLetters),
                                         unit.name.take_front(kMostLetters)),
                         index);
  llvm::sort(order);
  SmallVector<std::string> names;
  for (auto [distance, index] : ArrayRef(order).take_front(kMostNames))
    names.push_back("'" + units[index].name.str() + "'");
  if (names.empty())
    return "";
  return (names.size() == 1 ? "; the nearest is " : "; the nearest are ") +
         llvm::join(names, ", ");
}

FailureOr<SmallVector<int64_t>>
PartitionPass::getExplicitCuts(ForwardProgram &program, ArrayRef<Unit> units) {
  SmallVector<int64_t> cuts;
  auto findLast = [&](StringRef name) {
    int64_t after = -1;
    for (auto [index, unit] : llvm::enumerate(units))
      for (Operation *op : unit.ops)
        if (llvm::is_contained(getAllNames(op->getLoc()), name))
          after = index;
    return after;
  };
  // What is gone by now was the value of another node in another shape.
  auto passedOn =
      getOperation()->getAttrOfType<DictionaryAttr>(onnx::kPassedOnAttr);
  for (const std::string &name : splitAt) {
    int64_t after = findLast(name);
    StringRef own = name;
    for (size_t steps = 0; after < 0 && passedOn && steps < passedOn.size();
         ++steps) {
      auto former = passedOn.getAs<StringAttr>(own);
      if (!former)
        break;
      own = former.getValue();
      after = findLast(own);
    }
    if (after < 0)
      return program.function.emitError()
             << "--split-at: the model has no node or value named '" << name
             << "' that reaches the loss" << suggestNames(name, units)
             << " (--list-nodes lists them)";
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

/// The dynamic program over cuts into so many stages.
FailureOr<LinearProblem> PartitionPass::getProblem(ForwardProgram &program,
                                                   const Units &units,
                                                   int64_t stages) {
  LinearProblem problem = units.getLinearProblem();
  problem.speeds.assign(speeds.begin(), speeds.end());
  if (!speeds.empty() && static_cast<int64_t>(speeds.size()) != stages)
    return program.function.emitError()
           << "there are speeds of " << speeds.size() << " devices, and "
           << stages << " stages";
  if (targets.empty())
    return problem;

  auto list =
      dyn_cast_or_null<ArrayAttr>(parseAttribute(targets, &getContext()));
  if (!list || !llvm::all_of(list, [](Attribute each) {
        return isa<pipeline::TargetAttrInterface>(each);
      }))
    return program.function.emitError()
           << "'" << targets << "' is no list of targets";
  if (static_cast<int64_t>(list.size()) != stages)
    return program.function.emitError()
           << "there are targets of " << list.size() << " devices, and "
           << stages << " stages";
  // A transfer takes as long as the slower of two kinds needs.
  llvm::DenseMap<Attribute, LinearProblem> kinds;
  for (Attribute target : list) {
    auto [kind, isNew] = kinds.try_emplace(target);
    if (isNew) {
      auto costs = PlannedCost::get(
          getOperation(), cast<pipeline::TargetAttrInterface>(target));
      kind->second = Units::collect(program, costs).getLinearProblem();
    }
    problem.secondsByStage.push_back(kind->second.unitSeconds);
    for (auto [seconds, own] :
         llvm::zip_equal(problem.cutSeconds, kind->second.cutSeconds))
      seconds = std::max(seconds, own);
  }
  return problem;
}

void PartitionPass::runOnOperation() {
  // Nobody asks for a node by name behind the cut.
  auto forget = llvm::scope_exit([&] {
    getOperation()->removeAttr(onnx::kPassedOnAttr);
    getOperation()->removeAttr(pipeline::kPlanTargetAttr);
    getOperation()->removeAttr(pipeline::kPlanUpdateAttr);
  });
  FailureOr<ForwardProgram> program = ForwardProgram::find(getOperation());
  if (failed(program))
    return signalPassFailure();
  Units units = Units::collect(*program);
  if (!program->function.getOps<pipeline::BoundaryOp>().empty())
    return noteStageSeconds(getOperation(), *program, units);

  FailureOr<SmallVector<int64_t>> cuts = getExplicitCuts(*program, units.units);
  if (failed(cuts))
    return signalPassFailure();
  int64_t count = units.units.size(), named = cuts->size() + 1;
  bool areNamed = !cuts->empty();
  if (areNamed && stages > 0 && stages != named) {
    program->function.emitError()
        << "--stages=" << stages.getValue()
        << " contradicts --split-at, which names " << cuts->size()
        << " cuts for " << named << " stages";
    return signalPassFailure();
  }
  int64_t wanted = areNamed ? named : std::max<int64_t>(stages, 1);
  if (!areNamed && wanted > std::max<int64_t>(count, 1)) {
    program->function.emitError()
        << "--stages=" << wanted << ": the model has " << count
        << " nodes that compute, so at most " << count << " stages";
    return signalPassFailure();
  }
  FailureOr<LinearProblem> problem = getProblem(*program, units, wanted);
  if (failed(problem))
    return signalPassFailure();
  if (!areNamed && wanted > 1)
    cuts = partitionLinearly(*problem, wanted).cuts;

  insertBoundaries(*program, units, *cuts);
  noteStageSeconds(getOperation(), *program, units);
  units.explain(*cuts, [&](int64_t stage, int64_t begin, int64_t end) {
    return getStageSeconds(*problem, stage, begin, end);
  });
}
