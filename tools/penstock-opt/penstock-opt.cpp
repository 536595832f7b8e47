//===- penstock-opt.cpp - Runs passes on IR files -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt with all dialects and passes of Penstock beside the upstream ones.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Registration.h"
#include "penstock/Support/CommandLine.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  penstock::respectNoColor();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  penstock::registerDialects(registry);
  penstock::registerPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Penstock optimizer driver\n", registry);
  // Plug-ins have been loaded, and may have brought dialects of targets.
  penstock::registerDialects(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
