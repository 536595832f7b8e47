//===- Level.cpp - The levels of a program --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Level.h. From the last level up: what only that level has.
//===----------------------------------------------------------------------===//

#include "penstock/Levels/Level.h"

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static constexpr llvm::StringLiteral kNames[] = {
    "onnx", "graph", "stages", "training", "schedule", "program", "llvm"};

StringRef penstock::getLevelName(Level level) {
  return kNames[static_cast<int>(level)];
}

std::optional<Level> penstock::parseLevel(StringRef name) {
  const auto *it = llvm::find(kNames, name);
  if (it == std::end(kNames))
    return std::nullopt;
  return static_cast<Level>(it - std::begin(kNames));
}

Level penstock::detectLevel(ModuleOp module) {
  auto tasks = module.getOps<TaskOp>();
  auto functions = module.getOps<func::FuncOp>();
  if (tasks.empty() && functions.empty())
    return Level::Llvm;
  if (llvm::any_of(functions, [](func::FuncOp function) {
        return function->hasAttr(kDeviceAttr);
      }))
    return Level::Program;
  if (!module.getOps<ScheduleOp>().empty())
    return Level::Schedule;
  if (llvm::any_of(tasks, [](TaskOp task) {
        return task.getKind() != TaskKind::Forward;
      }))
    return Level::Training;
  bool hasNodes =
      module.walk([](onnx::NodeOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (hasNodes)
    return Level::Onnx;
  return llvm::range_size(module.getOps<StageOp>()) > 1 ? Level::Stages
                                                        : Level::Graph;
}
