//===- CompiledPlan.cpp - Plans with the memory of their programs ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See CompiledPlan.h. PipeDream's programme proposes, and what a stage was
// found to need too much for is not proposed again.
//===----------------------------------------------------------------------===//

#include "CompiledPlan.h"

#include "penstock/Driver/CompiledMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <limits>

using namespace llvm;
using namespace penstock;

bool penstock::isLine(const std::vector<PlanState> &states) {
  return llvm::all_of(enumerate(states), [](const auto &state) {
    return state.value().layers.count() == state.index() + 1 &&
           state.value().layers.find_last() == static_cast<int>(state.index());
  });
}

static StageShape getShape(int64_t first, int64_t last, int64_t replicas,
                           int64_t after) {
  return {first, last + 1, replicas, after};
}

std::optional<Plan> penstock::planCompiled(const LayerGraph &graph,
                                           const std::vector<PlanState> &states,
                                           PipeDreamOptions options,
                                           CompileOptions compile, bool &fits) {
  StageSearchProblem problem;
  problem.limit = options.memory.limit > 0
                      ? static_cast<int64_t>(options.memory.limit)
                      : std::numeric_limits<int64_t>::max();
  options.memory.limit = 0;
  options.countsMemory = false;
  auto getStages = [&](const Plan &plan) {
    StagePlan stages;
    stages.seconds = plan.slowestSeconds;
    for (const PlanStage &stage : plan.stages) {
      if (stage.first > 0)
        stages.cuts.push_back(stage.first);
      stages.replicas.push_back(stage.replicas);
    }
    return stages;
  };
  problem.propose =
      [&](StageShapeFilter isAllowed) -> std::optional<StagePlan> {
    options.allows = [&](int64_t first, int64_t last, int64_t replicas,
                         int64_t after) {
      return isAllowed(getShape(first, last, replicas, after));
    };
    std::optional<Plan> plan = planPipeDream(states, options);
    if (!plan)
      return std::nullopt;
    return getStages(*plan);
  };
  for (const Layer &layer : graph.layers) {
    problem.floorBytes.push_back(layer.weightBytes);
    problem.activationBytes.push_back(layer.weightBytes + layer.outputBytes);
  }
  compile.product = Product::Ir;
  compile.level = Level::Program;
  compile.choosesStages = true;
  compile.devices = options.devices.front();
  // Weights of a textual model stand beside what is compiled of it.
  SmallString<128> place;
  if (sys::fs::createTemporaryFile("penstock-plan", "", place))
    return std::nullopt;
  FileRemover remover(place), copyRemover(place + ".onnx");
  compile.output = place.str().str();
  std::string reason;
  std::optional<StageSearchResult> found =
      searchCompiled(compile, problem, reason);
  if (!found) {
    errs() << "penstock-plan: note: " << compile.input
           << ": its memory is reckoned "
           << "from sizes of layers, since " << StringRef(reason).trim()
           << "\n";
    return std::nullopt;
  }
  fits = found->fits;
  auto count = static_cast<int64_t>(states.size());
  std::vector<StageShape> shapes = found->plan.getShapes(count);
  options.allows = [&](int64_t first, int64_t last, int64_t replicas,
                       int64_t after) {
    return is_contained(shapes, getShape(first, last, replicas, after));
  };
  // Without a limit it can also be said how fast other cuts would be.
  options.countsMemory = true;
  PipeDreamOptions unlimited = options;
  unlimited.allows = nullptr;
  std::optional<Plan> plan = planPipeDream(states, unlimited);
  if (plan && getStages(*plan).getShapes(count) != shapes)
    plan = planPipeDream(states, options);
  if (!plan || plan->stages.size() != found->bytes.size())
    return std::nullopt;
  for (auto [stage, bytes] : zip_equal(plan->stages, found->bytes))
    stage.memoryBytes = static_cast<double>(bytes);
  plan->isCompiled = true;
  return plan;
}
