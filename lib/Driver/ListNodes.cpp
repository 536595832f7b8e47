//===- ListNodes.cpp - What --split-at and --recompute can name -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model as a line of nodes: what each is expected to take, and what a cut
// behind it carries.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "penstock/Partition/Units.h"
#include "penstock/Planner/PlanPrinter.h"
#include "penstock/Support/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

int Compilation::listNodes() {
  installDiagnostics();
  if (!llvm::sys::fs::exists(options.input))
    return fail(options.input + ": no such file");
  // Weights in text have bytes in a copy only, which is needed until the end.
  llvm::SmallString<128> copy;
  llvm::sys::fs::createUniquePath("penstockc-%%%%%%%%.onnx", copy,
                                  /*MakeAbsolute=*/true);
  llvm::FileRemover remover(copy);
  binaryCopy = copy.str();
  if (!load() || !lowerTo(Level::Graph))
    return kUserError;
  notePlanTarget();
  measureNodes();
  FailureOr<ForwardProgram> program = ForwardProgram::find(*module);
  if (failed(program))
    return kUserError;
  Units units = Units::collect(*program);
  double total = 0;
  for (const Unit &unit : units.units)
    total += units.getSeconds(unit);
  llvm::outs() << "     time     weights   cut behind  node\n";
  for (auto [index, unit] : llvm::enumerate(units.units)) {
    double seconds = units.getSeconds(unit);
    bool isLast = index + 1 == units.units.size();
    // Names are last and whole: they are there to be copied.
    llvm::outs() << llvm::formatv(
        "{0,7:F1} % {1,11}  {2,11}  {3}\n",
        total > 0 ? 100 * seconds / total : 0, formatBytes(unit.weightBytes),
        isLast ? "" : formatBytes(units.cutBytes[index + 1]),
        toOneLine(unit.name.str()));
  }
  return flushOutput("penstockc", log) ? kDone : kUserError;
}
