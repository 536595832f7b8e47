//===- WaveRule.cpp - When waves are pushed and folded --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See WaveRule.h.
//===----------------------------------------------------------------------===//

#include "WaveRule.h"

#include "Tables.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

WaveRule::WaveRule(const Model &model, int64_t updates)
    : model(model), updates(updates) {
  if (llvm::none_of(model.tasks,
                    [](const Task &task) { return task.perWave(); }))
    return;
  stages.resize(model.stages.size());
  for (auto [id, task] : llvm::enumerate(model.tasks)) {
    StageTasks &own = stages[task.stage];
    int number = static_cast<int>(id);
    if (task.letter == 'U')
      own.update = number;
    else if (task.letter == 'P')
      own.push = number;
    else if (task.letter == 'S')
      own.fold = number;
  }
}

std::string WaveRule::check(const Event &event,
                            llvm::ArrayRef<int64_t> runs) const {
  const Task &task = model.tasks[event.id];
  if (stages.empty() || !task.perWave())
    return "";
  const StageTasks &own = stages[task.stage];
  auto wrong = [&](int other, int64_t due) {
    return describe(model, event) + " comes after " +
           formatCount(runs[other], "run") + " of @" + model.tasks[other].name +
           ", not " + std::to_string(due);
  };
  if (own.update < 0 || own.push < 0 || own.fold < 0)
    return describe(model, event) +
           " is of a stage that does not update, push and fold";
  // A push is of the wave that was just made; the folds of the last waves of a
  // segment wait for no further ones.
  bool isPush = task.letter == 'P';
  int64_t made = std::min(event.number + 1 + (isPush ? 0 : model.distance),
                          updates / model.wave);
  if (runs[own.update] != made * model.wave)
    return wrong(own.update, made * model.wave);
  if (!isPush && runs[own.push] != made)
    return wrong(own.push, made);
  int64_t folded = std::max<int64_t>(0, event.number - model.distance);
  if (isPush && runs[own.fold] != folded)
    return wrong(own.fold, folded);
  return "";
}

std::string WaveRule::checkRead(const Event &event, int variable,
                                int64_t version,
                                llvm::ArrayRef<int64_t> runs) const {
  int fold = model.variables[variable].folder;
  if (fold < 0 || model.tasks[event.id].perWave())
    return "";
  int64_t due = std::max<int64_t>(0, version / model.wave - model.distance);
  if (runs[fold] >= due)
    return "";
  return describe(model, event) + " reads version " + std::to_string(version) +
         " of @" + model.variables[variable].name + " before @" +
         model.tasks[fold].name + " has folded wave " +
         std::to_string(due - 1) + " into it";
}

} // namespace penstock::schedule
