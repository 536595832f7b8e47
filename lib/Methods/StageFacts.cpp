//===- StageFacts.cpp - Stages as methods see them ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Read off the orders of a schedule.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/Method.h"

#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace penstock;
using namespace penstock::schedule;

std::vector<StageFacts> penstock::describeStages(const Imported &imported) {
  const Model &model = imported.model;
  std::vector<int64_t> lags = computeForwardLags(model, imported.orders);
  std::vector<StageFacts> facts;
  // Each worker is a line.
  std::map<int, llvm::SmallVector<llvm::ArrayRef<int>>> lines;
  for (auto [index, stage] : llvm::enumerate(model.stages)) {
    llvm::SmallVector<llvm::ArrayRef<int>> &places = lines[stage.worker];
    if (!llvm::is_contained(places, llvm::ArrayRef<int>(stage.devices)))
      places.push_back(stage.devices);
    StageFacts &fact = facts.emplace_back();
    fact.index = index;
    fact.stages = model.stages.size();
    fact.position =
        llvm::find(places, llvm::ArrayRef<int>(stage.devices)) - places.begin();
    fact.replicas = stage.devices.size();
    fact.ahead = lags[index];
    fact.mostAhead = lags.empty() ? 0 : *llvm::max_element(lags);
    fact.microbatches = model.microbatches;
  }
  for (auto [stage, fact] : llvm::zip_equal(model.stages, facts))
    fact.depth = lines[stage.worker].size();
  return facts;
}
