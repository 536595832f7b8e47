//===- Dimensions.h - Sizes of the inputs -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is compiled for fixed shapes. What the model leaves open is bound
// by options here, once, and everything else follows from the inputs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_DIMENSIONS_H
#define PENSTOCK_LIB_IMPORT_DIMENSIONS_H

#include "ModelFile.h"

#include "penstock/Import/Import.h"

namespace penstock::onnx {

struct BoundInputs {
  llvm::SmallVector<mlir::RankedTensorType> types;
  /// Set when the inputs had a leading 1, and have this size instead.
  std::optional<int64_t> reboundBatch;
};

/// Static types for `inputs`. An error names every dimension that no option
/// binds, with its input and the option to use.
llvm::Expected<BoundInputs>
bindInputs(mlir::MLIRContext *context,
           llvm::ArrayRef<const ::onnx::ValueInfoProto *> inputs,
           const ImportOptions &options);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_DIMENSIONS_H
