//===- GradientProgram.h - A function and its backward, compiled -*- C++ -*-==//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything is lowered by upstream passes to scalar loops, so that a wrong
// kernel cannot hide a wrong derivative, nor the other way round.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTPROGRAM_H
#define PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTPROGRAM_H

#include "GradientHarness.h"

#include "penstock/Autodiff/Autodiff.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"

namespace penstock::test {

/// Elements of a tensor: f64, or integers of 32 or 64 bits.
struct Buffer {
  mlir::RankedTensorType type;
  std::vector<double> floats;
  std::vector<int64_t> wide;
  std::vector<int32_t> narrow;

  explicit Buffer(mlir::Type tensor)
      : type(llvm::cast<mlir::RankedTensorType>(tensor)) {
    size_t count = type.getNumElements();
    if (isFloat())
      floats.resize(count);
    else if (type.getElementType().isInteger(32))
      narrow.resize(count);
    else
      wide.resize(count);
  }
  bool isFloat() const {
    return llvm::isa<mlir::Float64Type>(type.getElementType());
  }
  void *data() {
    return isFloat()         ? static_cast<void *>(floats.data())
           : !narrow.empty() ? static_cast<void *>(narrow.data())
                             : static_cast<void *>(wide.data());
  }
};
using Buffers = std::vector<Buffer>;

/// A differentiated case, compiled.
class GradientProgram {
public:
  explicit GradientProgram(const GradientCase &testCase) : testCase(testCase) {}

  /// Parses and differentiates the case; the message if that fails.
  std::string differentiate();
  /// Lowers both functions and compiles them; the message if that fails.
  std::string compile();
  Differentiation backward;
  mlir::func::FuncOp forward;
  llvm::SmallVector<mlir::Type> argumentTypes, resultTypes, residualTypes;
  /// Where each residual is: an argument, or else a result of the forward.
  std::vector<std::pair<bool, unsigned>> residualSources;
  /// Copies, as lowering replaces the functions.
  mlir::FunctionType forwardType, backwardType;

  Buffers run(llvm::StringRef function, Buffers arguments,
              llvm::ArrayRef<mlir::Type> results) const;

private:
  const GradientCase &testCase;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<mlir::ExecutionEngine> engine;
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTPROGRAM_H
