//===- Product.cpp - What the compiler leaves behind --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule as a table, the report, and the program itself: printed, as an
// object file, or linked with the runtime.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "passes/Cpu/Passes.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Target/Cpu/ObjectFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cstdlib>

using namespace mlir;
using namespace penstock;

/// The training schedule as a table.
int Compilation::writeSchedule() {
  if (options.emitSchedule.empty())
    return kDone;
  OutputFile file(options.emitSchedule);
  if (!writeScheduleTable(*module, options.emitTransfers, file.stream()))
    return fail("--emit-schedule=" + options.emitSchedule +
                ": there is no training schedule at this level");
  return file.commit(log) ? kDone : kUserError;
}

int Compilation::writeReports() {
  if (options.report) {
    report.print(llvm::outs());
    if (!flushOutput("penstockc", log))
      return kUserError;
  }
  if (options.reportJson.empty())
    return kDone;
  OutputFile file(options.reportJson);
  file.stream() << llvm::formatv("{0:2}", report.toJson()) << "\n";
  return file.commit(log) ? kDone : kUserError;
}

/// A library of the runtime, beside the compiler: in an installation, or in a
/// build. Empty when it is not there.
static std::string findRuntimeLibrary(StringRef name) {
  std::string self = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&findRuntimeLibrary));
  StringRef folder = llvm::sys::path::parent_path(self);
  for (StringRef place : {"../lib", "../runtime"}) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, place, name);
    llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return "";
}

int Compilation::writeProduct() {
  if (options.product == Product::Ir && options.level != Level::Llvm) {
    // Locations name ONNX nodes: what comes until the stages are cut needs
    // them.
    OpPrintingFlags flags;
    if (level <= Level::Stages)
      flags.enableDebugInfo();
    else
      flags.printNameLocAsPrefix();
    module->print(output->stream(), flags);
    return output->commit(log) ? kDone : kUserError;
  }

  TargetOptions target;
  target.march = options.march;
  FailureOr<TargetCpu> cpu = resolveTargetCpu(options.march, module->getLoc());
  if (failed(cpu))
    return kUserError;
  if (level == Level::Program) {
    bool done = runPasses([&](OpPassManager &manager) {
      LowerProgramToLlvmOptions lowering;
      lowering.threads = options.threads;
      lowering.vectorWidth = cpu->vectorWidth;
      lowering.cpu = cpu->name;
      lowering.features = cpu->required;
      lowering.plan = llvm::formatv("{0}", report.toJson()).str();
      buildLowerProgramToLlvmPipeline(manager, lowering);
    });
    if (!done)
      return isModel ? kDefect : kUserError;
    level = Level::Llvm;
  }

  if (options.product == Product::Ir) {
    OpPrintingFlags flags;
    module->print(output->stream(), flags);
    return output->commit(log) ? kDone : kUserError;
  }
  // Machine code has no place for it.
  if (pipeline::TrainingOp training = pipeline::getTraining(*module))
    training.erase();
  if (options.product == Product::Object) {
    if (failed(emitObject(*module, target, output->stream())))
      return kDefect;
    return output->commit(log) ? kDone : kUserError;
  }

  std::string start = findRuntimeLibrary("libpenstock_start.a");
  std::string runtime = findRuntimeLibrary("libpenstock_runtime.a");
  std::string devices = findRuntimeLibrary("libpenstock_cpu.a");
  if (start.empty() || runtime.empty() || devices.empty())
    return fail(
        "cannot find libpenstock_runtime.a beside the compiler; install "
        "Penstock with cmake --install");
  OutputFile object((output->temporaryPath() + ".o").str());
  if (failed(emitObject(*module, target, object.stream())))
    return kDefect;
  object.flush();
  if (!object.check(log))
    return kUserError;
  // The kind of the devices comes out of its library where its symbol is asked
  // for: penstock_NAME of libpenstock_NAME.a. Tests put another one before the
  // CPU's.
  std::string kind = devices;
  if (const char *other = std::getenv("PENSTOCK_DEVICE_LIBRARY"))
    kind = other;
  StringRef symbol = llvm::sys::path::stem(kind);
  symbol.consume_front("lib");
  std::vector<std::string> libraries = {start,    ("-Wl,-u," + symbol).str(),
                                        kind,     devices,
                                        runtime,  "-ldl",
                                        "-lgomp", "-lpthread",
                                        "-lm"};
  // A runtime that was built with sanitizers needs theirs.
  if (StringRef sanitize = PENSTOCK_SANITIZE; !sanitize.empty())
    libraries.push_back(("-fsanitize=" + sanitize).str());
  if (failed(linkExecutable({object.temporaryPath().str()},
                            output->temporaryPath(), libraries,
                            module->getLoc())))
    return kUserError;
  return output->commit(log) ? kDone : kUserError;
}
