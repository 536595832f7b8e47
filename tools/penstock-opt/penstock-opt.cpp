//===- penstock-opt.cpp - Runs passes on IR files ---------------------------
//===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt with all dialects and passes of Penstock beside the upstream ones.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Frontend/Passes.h"
#include "passes/Lowering/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Program/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Training/Passes.h"
#include "passes/Verify/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  penstock::registerFrontendPasses();
  penstock::registerFrontendPipelines();
  penstock::registerPartitionPasses();
  penstock::registerPartitionPipelines();
  penstock::registerTrainingPasses();
  penstock::registerTrainingPipelines();
  penstock::registerSchedulePasses();
  penstock::registerSchedulePipelines();
  penstock::registerProgramPasses();
  penstock::registerProgramPipelines();
  penstock::registerLoweringPasses();
  penstock::registerLoweringPipelines();
  penstock::registerVerifyPasses();
  registry.insert<penstock::onnx::OnnxDialect, penstock::nn::NnDialect,
                  penstock::pipeline::PipelineDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Penstock optimizer driver\n", registry));
}
