//===- Timeline.cpp - Executions as text ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cell is the shortest task, or a hundredth of the whole if that is too fine.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Timeline.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace llvm;

namespace penstock::schedule {

double computeBubble(const Model &model, const Execution &execution) {
  double busy = 0;
  int devices = 0;
  for (int device = 0; device < model.devices; ++device)
    if (llvm::any_of(model.stages, [&](const Stage &stage) {
          return llvm::is_contained(stage.devices, device);
        })) {
      ++devices;
      busy += execution.busy[device];
    }
  double total = devices * execution.makespan;
  return total > 0 ? std::max(0.0, 1 - busy / total) : 0;
}

std::vector<std::string> drawTimeline(const Model &model,
                                      const Execution &execution) {
  // 1. The size of a cell, and whether names need the stage.
  double first = 0, cell = 0;
  bool any = false;
  std::map<int, int> stageOf;
  bool several = false;
  for (const Interval &run : execution.runs) {
    first = any ? std::min(first, run.start) : run.start;
    any = true;
    double length = run.end - run.start;
    if (length > 0)
      cell = cell > 0 ? std::min(cell, length) : length;
    int stage = model.tasks[run.task].stage;
    several |= stageOf.try_emplace(run.device, stage).first->second != stage;
  }
  if (cell == 0 || execution.makespan / cell > 400)
    cell = std::max(execution.makespan / 100, 1e-30);

  // 2. Cells.
  std::vector<std::vector<std::string>> cells(model.devices);
  size_t width = 1;
  for (int device = 0; device < model.devices; ++device) {
    std::vector<Interval> runs;
    llvm::copy_if(execution.runs, std::back_inserter(runs),
                  [&](const Interval &run) { return run.device == device; });
    std::vector<std::string> &row = cells[device];
    for (auto [index, run] : llvm::enumerate(runs)) {
      const Task &task = model.tasks[run.task];
      std::string text(several ? std::to_string(task.stage) : "");
      text += task.letter;
      if (!task.perUpdate())
        text += std::to_string(run.number);
      if (run.end == run.start && !row.empty()) {
        bool trailing = std::all_of(
            runs.begin() + index, runs.end(),
            [](const Interval &later) { return later.end == later.start; });
        if (trailing)
          row.push_back(text);
        else
          row.back() += task.letter;
        continue;
      }
      size_t at = std::llround((run.start - first) / cell);
      size_t end = std::llround((run.end - first) / cell);
      while (row.size() < at)
        row.push_back(".");
      row.push_back(text);
      while (row.size() < end)
        row.push_back("-");
    }
    for (const std::string &text : row)
      width = std::max(width, text.size());
  }

  // 3. Lines.
  std::vector<std::string> lines;
  for (std::vector<std::string> &row : cells) {
    std::string line;
    for (const std::string &text : row)
      line += text + std::string(width + 1 - text.size(), ' ');
    lines.push_back(StringRef(line).rtrim().str());
  }
  return lines;
}

} // namespace penstock::schedule
