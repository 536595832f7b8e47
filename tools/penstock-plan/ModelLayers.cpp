//===- ModelLayers.cpp - The layers of an ONNX model ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ModelLayers.h. The model is lowered as far as the compiler's own planner
// sees it, with the same costs.
//===----------------------------------------------------------------------===//

#include "ModelLayers.h"

#include "passes/Frontend/Passes.h"
#include "penstock/Driver/Profile.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Partition/Units.h"
#include "penstock/Support/CommandLine.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

using namespace mlir;
using namespace penstock;

static LogicalResult lower(ModuleOp module, StringRef loss) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  if (loss.empty()) {
    manager.addPass(createOnnxResolveShapes());
  } else {
    LowerOnnxToGraphOptions frontend;
    frontend.loss = loss.str();
    buildCompleteOnnxPipeline(manager, frontend);
  }
  manager.addPass(createConvertOnnxToGraph());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createFoldTransposes());
  manager.addPass(createCSEPass());
  return manager.run(module);
}

std::optional<LayerGraph>
penstock::loadModelLayers(StringRef path, const ImportOptions &options,
                          StringRef loss, bool profile,
                          std::optional<MachineRates> rates) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  ModelDiagnosticHandler handler(&context, path);
  // A textual model has no bytes that weights could refer to; they go beside.
  llvm::SmallString<128> copy;
  if (llvm::sys::fs::createTemporaryFile("penstock-plan", "onnx", copy)) {
    reportError("penstock-plan", "no temporary file can be made", llvm::errs());
    return std::nullopt;
  }
  llvm::FileRemover remover(copy);
  ImportOptions import = options;
  import.onlyLossOutput = true;
  import.binaryCopy = copy.str().str();
  OwningOpRef<ModuleOp> module = importModel(&context, path, import);
  if (!module || failed(lower(*module, loss)))
    return std::nullopt;
  FailureOr<ForwardProgram> program = ForwardProgram::find(*module);
  if (failed(program))
    return std::nullopt;
  std::string reason;
  if (profile && loss.empty()) {
    reportError("penstock-plan",
                "--profile trains the model, which needs --loss=...",
                llvm::errs());
    return std::nullopt;
  }
  if (profile && !profileUnits(*module, CompileOptions(), reason)) {
    reportError("penstock-plan", "--profile: " + reason, llvm::errs());
    return std::nullopt;
  }
  (*module)->setAttr(pipeline::kPlanTargetAttr,
                     getTargets(&context, CompileOptions()).front());
  Units units = Units::collect(*program, rates);
  LayerGraph graph = units.getLayerGraph(*program);
  if (graph.layers.empty()) {
    reportError(path, "has no node that computes", llvm::errs());
    return std::nullopt;
  }
  return graph;
}
